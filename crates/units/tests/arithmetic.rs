//! Arithmetic of units agrees with exact integers, rounds as documented, and never wraps.

use proptest::prelude::*;
use trimtab_units::{Bytes, Duration, Rate, Time};

const NANOS: u128 = 1_000_000_000;

/// The value where it fits in 64 bits, and the largest one where it does not.
fn saturated(exact: u128) -> u64 {
    u64::try_from(exact).unwrap_or(u64::MAX)
}

/// Small, usual and huge values in like shares: a uniform draw would make nearly all of them huge.
fn magnitude() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..64).prop_map(|(value, shift)| value >> shift)
}

proptest! {
    #[test]
    fn a_rate_over_a_time_is_the_exact_product_rounded_down(rate in magnitude(), ns in magnitude()) {
        let bytes = Rate::from_bytes_per_sec(rate) * Duration::from_nanos(ns);
        prop_assert_eq!(bytes.get(), saturated(u128::from(rate) * u128::from(ns) / NANOS));
    }

    #[test]
    fn bytes_at_a_rate_take_the_exact_quotient(bytes in magnitude(), rate in magnitude()) {
        let took = Bytes::new(bytes) / Rate::from_bytes_per_sec(rate);
        let exact = match (bytes, rate) {
            (0, 0) => 0,
            (_, 0) => u64::MAX,
            _ => saturated(u128::from(bytes) * NANOS / u128::from(rate)),
        };
        prop_assert_eq!(took.as_nanos(), exact);
    }

    #[test]
    fn bytes_in_a_time_are_the_exact_rate(bytes in magnitude(), ns in magnitude()) {
        let rate = Bytes::new(bytes) / Duration::from_nanos(ns);
        let exact = match (bytes, ns) {
            (0, 0) => 0,
            (_, 0) => u64::MAX,
            _ => saturated(u128::from(bytes) * NANOS / u128::from(ns)),
        };
        prop_assert_eq!(rate.bytes_per_sec(), exact);
    }

    /// What is sent in the time that sending takes is never more than there was, and short of it by
    /// less than one nanosecond of the rate, rounded up.
    #[test]
    fn the_time_to_send_carries_what_was_sent(bytes in 0u64..1 << 40, rate in 1u64..1 << 36) {
        let (bytes, rate) = (Bytes::new(bytes), Rate::from_bytes_per_sec(rate));
        let carried = rate * (bytes / rate);
        prop_assert!(carried <= bytes);
        let lost = bytes - carried;
        prop_assert!(lost.get() <= 1 + rate.bytes_per_sec() / 1_000_000_000, "{lost} of {bytes}");
    }

    #[test]
    fn sums_and_differences_saturate(a in magnitude(), b in magnitude()) {
        let (sum, difference) = (a.saturating_add(b), a.saturating_sub(b));
        prop_assert_eq!((Bytes::new(a) + Bytes::new(b)).get(), sum);
        prop_assert_eq!((Bytes::new(a) - Bytes::new(b)).get(), difference);
        let (x, y) = (Rate::from_bytes_per_sec(a), Rate::from_bytes_per_sec(b));
        prop_assert_eq!((x + y).bytes_per_sec(), sum);
        prop_assert_eq!((x - y).bytes_per_sec(), difference);
        let (x, y) = (Duration::from_nanos(a), Duration::from_nanos(b));
        prop_assert_eq!((x + y).as_nanos(), sum);
        prop_assert_eq!((x - y).as_nanos(), difference);
        prop_assert_eq!(x.abs_diff(y).as_nanos(), a.abs_diff(b));
        let (now, earlier) = (Time::from_nanos(a), Time::from_nanos(b));
        prop_assert_eq!((now + y).as_nanos(), sum);
        prop_assert_eq!((now - y).as_nanos(), difference);
        prop_assert_eq!(now.since(earlier).as_nanos(), difference, "never negative");
        prop_assert_eq!(now - earlier, now.since(earlier));
    }

    #[test]
    fn assigning_operators_are_their_plain_forms(a in magnitude(), b in magnitude()) {
        let (mut bytes, mut span, mut time) =
            (Bytes::new(a), Duration::from_nanos(a), Time::from_nanos(a));
        bytes += Bytes::new(b);
        span += Duration::from_nanos(b);
        time += Duration::from_nanos(b);
        let sum = a.saturating_add(b);
        prop_assert_eq!((bytes.get(), span.as_nanos(), time.as_nanos()), (sum, sum, sum));
        bytes -= Bytes::new(b);
        span -= Duration::from_nanos(b);
        prop_assert_eq!((bytes.get(), span.as_nanos()), (sum - b, sum - b));
    }

    #[test]
    fn whole_factors_multiply_and_divide_exactly(value in magnitude(), k in magnitude()) {
        let product = value.saturating_mul(k);
        prop_assert_eq!((Bytes::new(value) * k).get(), product);
        prop_assert_eq!((Duration::from_nanos(value) * k).as_nanos(), product);
        let quotient = value.checked_div(k).unwrap_or(u64::MAX);
        prop_assert_eq!((Bytes::new(value) / k).get(), quotient);
        prop_assert_eq!((Duration::from_nanos(value) / k).as_nanos(), quotient);
    }

    /// A factor of one changes nothing that a double can hold, and half is half to within one.
    #[test]
    fn real_factors_round_to_the_nearest(value in 0u64..1 << 52) {
        prop_assert_eq!(Bytes::new(value).mul_f64(1.0).get(), value);
        prop_assert_eq!(Duration::from_nanos(value).mul_f64(1.0).as_nanos(), value);
        prop_assert_eq!(Rate::from_bytes_per_sec(value).mul_f64(1.0).bytes_per_sec(), value);
        prop_assert_eq!(Bytes::new(value).mul_f64(0.5).get(), value.div_ceil(2));
    }

    /// Larger values than these have more digits than a double.
    #[test]
    fn text_gives_the_value_back(ns in magnitude(), bytes in 0u64..1 << 48, rate in 0u64..1 << 45) {
        let span = Duration::from_nanos(ns);
        let back: Duration = span.to_string().parse().unwrap();
        // Longer than 104 days, nanoseconds are finer than a double.
        let error = if ns < 1 << 52 { 1 } else { ns >> 51 };
        prop_assert!(back.abs_diff(span).as_nanos() <= error, "{span}: {back}");
        let bytes = Bytes::new(bytes);
        prop_assert_eq!(bytes.to_string().parse::<Bytes>().unwrap(), bytes, "{}", bytes);
        let rate = Rate::from_bytes_per_sec(rate);
        prop_assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate, "{}", rate);
    }

    #[test]
    fn no_text_makes_parsing_panic(text in "[ 0-9.a-zA-Zµ/-]{0,16}") {
        // A text that is a value in one unit is none in the others, zero aside.
        let parsed = (text.parse::<Duration>(), text.parse::<Bytes>(), text.parse::<Rate>());
        let valid = [parsed.0.is_ok(), parsed.1.is_ok(), parsed.2.is_ok()];
        let zero = matches!(parsed, (Ok(d), Ok(b), Ok(r)) if d.is_zero() && b.is_zero() && r.is_zero());
        prop_assert!(zero || valid.iter().filter(|&&ok| ok).count() <= 1, "{text:?}: {valid:?}");
    }
}

#[test]
fn real_numbers_that_are_no_quantity_are_zero() {
    for odd in [f64::NAN, -1.0, f64::NEG_INFINITY, -0.4] {
        assert_eq!(Bytes::from_f64(odd), Bytes::ZERO, "{odd}");
        assert_eq!(Rate::from_bytes_per_sec_f64(odd), Rate::ZERO, "{odd}");
        assert_eq!(Rate::from_mbps(odd), Rate::ZERO, "{odd}");
        assert_eq!(Duration::from_secs_f64(odd), Duration::ZERO, "{odd}");
        assert_eq!(Duration::from_millis_f64(odd * 1e-6), Duration::ZERO, "{odd}");
        assert_eq!(Time::from_secs_f64(odd), Time::ZERO, "{odd}");
        assert_eq!(Duration::from_secs(1).mul_f64(odd.min(-1.0)), Duration::ZERO, "{odd}");
    }
    assert_eq!(Bytes::from_f64(f64::INFINITY), Bytes::MAX);
    assert_eq!(Duration::from_secs_f64(1e300), Duration::MAX);
    assert_eq!(Rate::from_mbps(f64::INFINITY), Rate::MAX);
}

#[test]
fn units_convert_as_the_world_counts() {
    let minute = Duration::from_secs(60);
    assert_eq!((minute.as_millis(), minute.as_micros()), (60_000, 60_000_000));
    assert_eq!(Duration::from_micros(1_999).as_millis(), 1, "rounded down");
    assert_eq!(Duration::from_millis_f64(0.25), Duration::from_micros(250));
    assert!((Duration::from_micros(1_500).as_millis_f64() - 1.5).abs() < 1e-12);
    assert!((Duration::from_millis(1_500).as_secs_f64() - 1.5).abs() < 1e-12);
    // 12 Mbit/s is 1.5 MB/s.
    let rate = Rate::from_mbps(12.0);
    assert_eq!(rate.bytes_per_sec(), 1_500_000);
    assert_eq!(rate, Rate::from_bits_per_sec(12_000_000));
    assert!((rate.mbps() - 12.0).abs() < 1e-12 && (rate.bits_per_sec() - 12e6).abs() < 1e-6);
    assert_eq!(Rate::from_bits_per_sec(15).bytes_per_sec(), 1, "rounded down to a whole byte");
    assert_eq!(Bytes::new(3).bits(), 24.0);
    assert_eq!(Bytes::new(3).as_f64(), 3.0);
}

#[test]
fn ratios_are_those_of_real_numbers() {
    assert_eq!(Bytes::new(3).ratio(Bytes::new(2)), 1.5);
    assert_eq!(Duration::from_millis(1).ratio(Duration::from_secs(1)), 1e-3);
    assert_eq!(Rate::from_mbps(9.0).ratio(Rate::from_mbps(12.0)), 0.75);
    assert_eq!(Bytes::new(1).ratio(Bytes::ZERO), f64::INFINITY);
    assert!(Duration::ZERO.ratio(Duration::ZERO).is_nan());
    assert!(Rate::ZERO.ratio(Rate::ZERO).is_nan());
}

#[test]
fn sums_of_many_saturate_too() {
    let total: Bytes = (1..=4).map(Bytes::new).sum();
    assert_eq!(total, Bytes::new(10));
    let total: Rate = [Rate::MAX, Rate::from_mbps(1.0)].into_iter().sum();
    assert_eq!(total, Rate::MAX);
    let total: Duration = [Duration::from_secs(1), Duration::from_millis(1)].into_iter().sum();
    assert_eq!(total, Duration::from_millis(1_001));
    assert_eq!(core::iter::empty::<Bytes>().sum::<Bytes>(), Bytes::ZERO);
}

#[test]
fn text_takes_the_largest_unit_that_is_exact_enough() {
    for (nanos, text) in [
        (0, "0s"),
        (7, "7ns"),
        (1_500, "1.5us"),
        (20_000_000, "20ms"),
        (1_500_000_000, "1500ms"),
        (2_000_000_000, "2s"),
    ] {
        assert_eq!(Duration::from_nanos(nanos).to_string(), text);
        assert_eq!(Time::from_nanos(nanos).to_string(), text);
    }
    for (bytes, text) in
        [(0, "0B"), (1_500, "1.5KB"), (1_501, "1501B"), (150_000, "150KB"), (2_500_000, "2.5MB")]
    {
        assert_eq!(Bytes::new(bytes).to_string(), text);
    }
    for (bytes_per_sec, text) in [
        (0, "0bit/s"),
        (1, "8bit/s"),
        (12_500, "100kbit/s"),
        (1_500_000, "12Mbit/s"),
        (125_000_000, "1Gbit/s"),
    ] {
        assert_eq!(Rate::from_bytes_per_sec(bytes_per_sec).to_string(), text);
    }
}

/// The message names the quantity and lists its units: it is all that a user gets to see.
#[test]
fn errors_list_the_units() {
    let of = |text: &str| text.parse::<Rate>().unwrap_err().to_string();
    assert_eq!(
        of("12"),
        "a rate needs a unit (units: bit/s, kbit/s, Mbit/s, Gbit/s, or bps, kbps, Mbps, Gbps)"
    );
    assert!(of("12 MB/s").starts_with("this is no unit of rate"), "{}", of("12 MB/s"));
    assert!(
        of("1e9Gbps").starts_with("this is no unit of rate"),
        "no exponents: {}",
        of("1e9Gbps")
    );
    let size = "99999999999999GiB".parse::<Bytes>().unwrap_err().to_string();
    assert!(size.starts_with("this size is too large"), "{size}");
    let time = "1.2.3s".parse::<Duration>().unwrap_err().to_string();
    assert!(time.starts_with("a duration starts with a number"), "{time}");
}
