//! What each algorithm does alone on one link, end to end: the bands of expected.md §17, and the
//! reference table of its §3 for buffers of a quarter to two bandwidth-delay products.

use trimtab_apps::{App, BulkConfig};
use trimtab_net::{Capacity, LinkConfig, LossConfig, QueueConfig};
use trimtab_sim::{Control, FlowConfig, Transport, World, WorldConfig};
use trimtab_units::{Duration, Rate, Time};

/// Packets per second of the link: 48 Mbit/s.
const CAPACITY: f64 = 4000.0;
/// Looked at from here…
const FROM: Time = Time::from_secs(10);
/// …to here.
const UNTIL: Time = Time::from_secs(60);

/// What one bulk flow made of the link.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Share of the link's packets.
    utilisation: f64,
    /// Mean of the packets in the queue.
    queue: f64,
    /// Mean window in packets.
    window: f64,
    /// Share of the packets sent that were dropped.
    loss: f64,
}

/// One flow over 48 Mbit/s and 20 ms (80 packets), QUIC, a buffer of so many packets.
fn alone(cc: &str, buffer: u32, random: f64) -> Seen {
    alone_over(cc, buffer, random, Duration::from_millis(20))
}

/// The same over another round-trip time.
fn alone_over(cc: &str, buffer: u32, random: f64, rtt: Duration) -> Seen {
    let link = LinkConfig::new(Capacity::Constant(Rate::from_mbps(48.0)))
        .queue(QueueConfig::drop_tail_packets(buffer))
        .loss(LossConfig::Independent(random));
    let control = Control::Algorithm { spec: cc.parse().unwrap(), steerer: None };
    let app = App::bulk(&BulkConfig::default());
    let flow = FlowConfig::new(control, Transport::quic(), app, rtt);
    let mut world = World::new(&WorldConfig { links: vec![(link, 1)], flows: vec![flow] });
    world.run_until(FROM);
    let counts = |w: &World| {
        let flow = &w.flows()[0];
        (flow.sent().packets, flow.received().dropped, w.link_stats(0).departures.packets)
    };
    let before = counts(&world);
    let (mut queue, mut window, mut looks) = (0.0, 0.0, 0.0);
    let mut now = FROM;
    while now < UNTIL {
        // No multiple of the round trip.
        now += Duration::from_micros(7_300);
        world.run_until(now);
        queue += world.queue(0).as_f64() / 1500.0;
        window += world.flows()[0].window().as_f64() / 1500.0;
        looks += 1.0;
    }
    let after = counts(&world);
    let sent = (after.0 - before.0) as f64;
    Seen {
        utilisation: (after.2 - before.2) as f64 / CAPACITY / now.since(FROM).as_secs_f64(),
        queue: queue / looks,
        window: window / looks,
        loss: (after.1 - before.1) as f64 / sent,
    }
}

fn within(got: f64, band: std::ops::RangeInclusive<f64>, what: &str, seen: Seen) {
    assert!(band.contains(&got), "{what}: {got} is outside of {band:?} ({seen:?})");
}

/// expected.md §17, steady state: utilisation, packets queued, losses. A probe of BBRv3 raises the
/// rate by a quarter for three rounds at least, which comes near to filling a buffer of one BDP:
/// some of its probes lose, by where they begin.
#[test]
fn every_algorithm_keeps_its_band() {
    for (cc, utilisation, queue, loss) in [
        ("newreno", 0.97, 40.0..=60.0, 0.005),
        ("newreno:linux", 0.97, 40.0..=60.0, 0.005),
        ("cubic", 0.97, 40.0..=60.0, 0.005),
        ("vegas", 0.98, 2.0..=4.0, 0.0),
        ("bbr", 0.95, 5.0..=40.0, 0.0),
        ("bbr3", 0.95, 0.0..=20.0, 0.005),
        ("copa:delta=0.5", 0.95, 1.5..=3.5, 0.0),
        ("copa:delta=0.04", 0.99, 21.0..=41.0, 0.0),
        ("ledbat", 0.97, 40.0..=65.0, 0.005),
        ("ledbat:target=5", 0.97, 15.0..=25.0, 0.0),
        ("illinois", 0.97, 40.0..=65.0, 0.005),
        ("c2tcp", 0.97, 20.0..=65.0, 0.01),
        // Its utility knows losses alone, of which it bears 5%.
        ("allegro", 0.97, 30.0..=80.0, 0.05),
        // Its aim of up to six times the least delay is above this buffer: losses alone hold it.
        ("verus", 0.90, 20.0..=80.0, 0.06),
        // Up to a tenth of lost packets it holds its rate, and a queue of 20 ms is no trend.
        ("gcc", 0.95, 0.0..=80.0, 0.10),
        ("nada", 0.93, 0.0..=60.0, 0.02),
        ("scream", 0.95, 0.0..=80.0, 0.01),
        ("vivace", 0.95, 0.0..=20.0, 0.01),
        ("vivace:plain", 0.90, 0.0..=20.0, 0.01),
    ] {
        let seen = alone(cc, 80, 0.0);
        within(seen.utilisation, utilisation..=1.001, &format!("{cc} utilisation"), seen);
        within(seen.queue, queue, &format!("{cc} queue"), seen);
        within(seen.loss, 0.0..=loss, &format!("{cc} loss"), seen);
    }
}

/// Liu, Başar and Srikant 2008: with no queue a random loss takes an eighth of the window, which
/// comes back by ten packets in a round trip. Over 100 ms that is several times NewReno's rate.
#[test]
fn random_losses_over_a_long_path_cost_illinois_less_than_reno() {
    for (random, least, most) in [(1e-3, 0.55, 0.17), (1e-4, 0.98, 0.5)] {
        let of = |cc: &str| alone_over(cc, 1000, random, Duration::from_millis(100)).utilisation;
        let (illinois, reno) = (of("illinois"), of("newreno"));
        assert!(illinois > least && reno < most, "{random}: {illinois} and {reno}");
    }
}

/// The reference table of expected.md §3, of which R5 (full use from a buffer of 1 BDP on, less below)
/// and C12 (CUBIC: from 0.43 BDP on) are cases. Utilisation to 3%, as it says; queue and window to 5%
/// (and half a packet).
#[test]
fn loss_based_flows_use_what_the_buffer_lets_them() {
    let table = [
        ("newreno", 20, 0.895, 5.1, 77.7),
        ("newreno", 40, 0.965, 16.1, 94.3),
        ("newreno", 80, 1.00, 44.8, 125.8),
        ("newreno", 160, 1.00, 107.7, 188.7),
        ("cubic", 20, 0.980, 7.5, 87.1),
        ("cubic", 40, 1.00, 23.2, 104.5),
        ("cubic", 80, 1.00, 60.3, 141.5),
        ("cubic", 160, 1.00, 133.8, 215.0),
    ];
    for (cc, buffer, utilisation, queue, window) in table {
        let seen = alone(cc, buffer, 0.0);
        let band = |want: f64, share: f64, more: f64| {
            want * (1.0 - share) - more..=want * (1.0 + share) + more
        };
        let what = |metric: &str| format!("{cc}, {buffer} packets, {metric}");
        within(seen.utilisation, band(utilisation, 0.03, 0.0), &what("utilisation"), seen);
        within(seen.queue, band(queue, 0.05, 0.5), &what("queue"), seen);
        within(seen.window, band(window, 0.05, 0.5), &what("window"), seen);
    }
}

/// expected.md R6, as far as a link has it that sends in pairs: nearly no buffer and a window that
/// falls to half of what the path holds leave about 75% of the link.
#[test]
fn without_a_buffer_reno_uses_three_quarters() {
    let seen = alone("newreno", 2, 0.0);
    within(seen.utilisation, 0.70..=0.80, "utilisation", seen);
}

/// expected.md C10: from 160 packets down to 112, and the next loss after 3.1 to 3.3 s, when Reno's
/// estimate is there, long before the cubic's plateau at K = 4.93 s. So 15 to 16 losses in 50 s.
#[test]
fn cubic_loses_when_renos_estimate_is_there() {
    let seen = alone("cubic", 80, 0.0);
    let losses = seen.loss * CAPACITY * UNTIL.since(FROM).as_secs_f64();
    within(losses, 14.5..=16.5, "losses", seen);
}

/// expected.md R4 end to end: Reno's mean window is sqrt(3 / 2p) with random losses.
#[test]
fn random_losses_hold_renos_window_down() {
    for (p, want) in [(1e-2, 12.2), (1e-3, 38.7)] {
        let seen = alone("newreno", 1000, p);
        within(seen.window, want * 0.85..=want * 1.15, &format!("window at {p}"), seen);
    }
}
