use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64Mcg;

use super::*;

/// Aggregates of a town, in three days of 20 minutes each.
const COUNT: usize = 14;
const INTERVALS: u64 = 216;

fn prefix(n: usize) -> Prefix {
    format!("10.0.{n}.0/24").parse().unwrap()
}

/// What clients saw, where the logarithm of the round-trip time is given by aggregate, interval and
/// a source of deviates.
fn town(
    (seed, count): (u64, usize),
    tried: impl Fn(usize, u64) -> &'static str,
    mut log_rtt: impl FnMut(usize, u64, &mut dyn FnMut() -> f64) -> f64,
) -> Vec<Sighting> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut deviate = || StandardNormal.sample(&mut random);
    let mut all = Vec::new();
    for interval in 0..INTERVALS {
        for n in 0..count {
            let key = format!("tv/{}", prefix(n)).parse().unwrap();
            let log_rtt = -3.0 + log_rtt(n, interval, &mut deviate);
            let under = (tried(n, interval).to_owned(), "weekday".to_owned(), None);
            all.push(Sighting { key, interval, under, weight: (20, 1), log_rtt });
        }
    }
    all
}

/// The pairs that were found, by number.
fn found(sharing: &Sharing) -> Vec<(Prefix, Prefix)> {
    let mut found: Vec<_> = sharing.found.iter().map(|one| (one.one, one.other)).collect();
    found.sort();
    found
}

/// A queue of two: a deviate for each interval, which the first of them draws.
fn shared(queue: &mut f64, n: usize, deviate: &mut dyn FnMut() -> f64) -> f64 {
    if n.is_multiple_of(2) {
        *queue = deviate();
    }
    *queue
}

#[test]
fn who_shares_a_queue_is_found_and_nobody_else() {
    for seed in 0..20 {
        let mut queue = 0.0;
        let seen = town(
            (seed, COUNT),
            |n, t| if (t / 5 + n as u64).is_multiple_of(3) { "bbr" } else { "cubic" },
            |n, t, deviate| {
                let hour = (t as f64 / 72.0 * std::f64::consts::TAU).sin();
                let of_bbr = if (t / 5 + n as u64).is_multiple_of(3) { 0.4 } else { 0.0 };
                let own = 0.15 * deviate();
                // The first three pairs have one queue each.
                let same =
                    if n < 6 { 0.3 * shared(&mut queue, n, deviate) } else { 0.3 * deviate() };
                // Busy hours are not equally busy everywhere.
                (0.5 + 0.01 * n as f64) * hour + of_bbr + own + same
            },
        );
        let sharing = Sharing::of(seen).unwrap();
        assert_eq!((sharing.aggregates, sharing.left_out, sharing.pairs), (14, 0, 91));
        let pairs = [(0, 1), (2, 3), (4, 5)].map(|(one, other)| (prefix(one), prefix(other)));
        assert_eq!(found(&sharing), pairs, "seed {seed}");
        // 0.09 of 0.1125 is common.
        let strength = sharing.found.iter().map(|one| one.correlation);
        strength.for_each(|r| assert!((0.65..0.92).contains(&r), "{r}"));
        let groups = "10.0.0.0/24 10.0.1.0/24\n10.0.2.0/24 10.0.3.0/24\n10.0.4.0/24 10.0.5.0/24\n";
        assert_eq!(sharing.added_to(Together::default()).to_string(), groups);
    }
}

/// Taking the mean of the others out moves pairs apart that share nothing. That hides nobody.
#[test]
fn many_and_large_groups_are_found() {
    for (groups, size) in [(5, 2), (3, 5), (5, 3), (4, 5), (12, 3)] {
        for seed in 0..5 {
            let mut queue = 0.0;
            let seen = town(
                (seed, groups * size),
                |_, _| "cubic",
                |n, _, deviate| {
                    if n.is_multiple_of(size) {
                        queue = deviate();
                    }
                    0.3 * queue + 0.15 * deviate()
                },
            );
            let sharing = Sharing::of(seen).unwrap();
            let true_pairs = groups * size * (size - 1) / 2;
            let is_true = |one: &&Shared| {
                let place =
                    |prefix: Prefix| (0..groups * size).position(|n| self::prefix(n) == prefix);
                place(one.one).map(|n| n / size) == place(one.other).map(|n| n / size)
            };
            let right = sharing.found.iter().filter(is_true).count();
            assert_eq!(right, sharing.found.len(), "{groups} of {size}, seed {seed}");
            assert_eq!(right, true_pairs, "{groups} of {size}, seed {seed}");
        }
    }
}

/// Arms of an experiment that change everywhere at the same time are no queue, knobs and all.
#[test]
fn a_switchback_is_no_shared_queue() {
    for seed in 0..10 {
        let treated = |t: u64| (t / 3 + seed).is_multiple_of(2);
        let mut seen = town(
            (seed, COUNT),
            |_, _| "vivace",
            |n, t, deviate| {
                let responds = if n < 3 { 1.0 } else { 0.1 };
                f64::from(u8::from(treated(t))) * responds + 0.1 * deviate()
            },
        );
        seen.iter_mut().for_each(|one| one.under.2 = Some((1, u8::from(treated(one.interval)))));
        assert_eq!(Sharing::of(seen).unwrap().found, [], "seed {seed}");
    }
}

/// Series that wander correlate by chance. Without whitening most seeds find a pair.
#[test]
fn what_lasts_is_no_shared_queue() {
    for seed in 0..20 {
        let mut stands = [0.0; COUNT];
        let seen = town(
            (seed, COUNT),
            |_, _| "cubic",
            |n, _, deviate| {
                stands[n] = 0.97 * stands[n] + 0.1 * deviate();
                stands[n]
            },
        );
        let sharing = Sharing::of(seen).unwrap();
        assert_eq!(sharing.found, [], "seed {seed}");
    }
}

/// All of a service look around at the same time, which is no queue of theirs.
#[test]
fn what_is_tried_at_the_same_time_is_no_shared_queue() {
    for seed in 0..20 {
        let draw = Pcg64Mcg::seed_from_u64(seed).random::<u64>();
        let bbr = |n: usize, t: u64| n < 4 && (draw >> (t % 64)) & 1 == 1;
        let seen = town(
            (seed, COUNT),
            |n, t| if bbr(n, t) { "bbr" } else { "cubic" },
            |n, t, deviate| f64::from(u8::from(bbr(n, t))) + 0.1 * deviate(),
        );
        assert_eq!(Sharing::of(seen).unwrap().found, [], "seed {seed}");
    }
}

/// Two have an outage of some hours at the same time, once, around the middle of the log.
#[test]
fn one_outage_at_the_same_time_is_no_shared_queue() {
    for seed in 0..20 {
        let seen = town(
            (seed, COUNT),
            |_, _| "cubic",
            |n, t, deviate| {
                let out = n < 2 && (88..128).contains(&t);
                if out { 1.0 + deviate().abs() } else { 0.1 * deviate() }
            },
        );
        assert_eq!(Sharing::of(seen).unwrap().found, [], "seed {seed}");
    }
}

#[test]
fn too_few_aggregates_or_intervals_are_refused() {
    let all = town((1, COUNT), |_, _| "cubic", |_, _, deviate| deviate());
    let short = |s: &Sighting, from: usize| s.key.prefix < prefix(from) || s.interval < 47;
    let left: Vec<_> = all.iter().filter(|s| short(s, 12)).cloned().collect();
    assert_eq!(Sharing::of(left).map(|s| (s.aggregates, s.left_out)), Ok((12, 2)));
    let left: Vec<_> = all.iter().filter(|s| short(s, 9)).cloned().collect();
    let refused = Sharing::of(left).unwrap_err();
    assert!(refused.to_string().starts_with("9 aggregates have 48 intervals"), "{refused}");
    assert_eq!(Sharing::of([]), Err(SharingError::Few { aggregates: 0 }));
}

#[test]
fn the_order_of_the_log_says_nothing() {
    let mut queue = 0.0;
    let seen = town(
        (3, COUNT),
        |_, _| "cubic",
        |n, _, deviate| shared(&mut queue, n, deviate) + deviate(),
    );
    // A version that ended within an interval says less of it than the one that had most of it.
    let ended = |one: &Sighting| Sighting { weight: (3, 7), log_rtt: 0.0, ..one.clone() };
    let mut back: Vec<Sighting> =
        seen.iter().chain(&seen.iter().map(ended).collect::<Vec<_>>()).cloned().collect();
    back.reverse();
    let sharing = Sharing::of(seen).unwrap();
    assert_eq!(Sharing::of(back), Ok(sharing.clone()));
    let text = serde_json::to_string(&sharing).unwrap();
    assert_eq!(serde_json::from_str::<Sharing>(&text).unwrap(), sharing);
}

#[test]
fn equal_values_share_a_rank_and_constant_ones_say_nothing() {
    let series = [(0, 2.0), (1, 1.0), (2, 2.0), (3, 5.0)];
    let ranks = ranked(&series);
    assert_eq!(ranks[0].1, ranks[2].1);
    assert!(ranks[1].1 < ranks[0].1 && ranks[0].1 < ranks[3].1, "{ranks:?}");
    assert!((ranks[0].1).abs() < 1e-9, "the middle of four and one more: {ranks:?}");
    assert_eq!(correlation(&[(1.0, 1.0), (1.0, 2.0)]), 0.0);
    assert_eq!(correlation(&[]), 0.0);
    let flat = town((1, COUNT), |_, _| "cubic", |_, _, _| 0.0);
    assert_eq!(Sharing::of(flat).unwrap().found, []);
}
