//! What a sender does when nothing comes back: probes (RFC 9002 §6.2, RFC 8985 §7), persistent
//! congestion (RFC 9002 §7.6), retransmission timeouts (RFC 6298), and how it goes on.

use trimtab_apps::{App, Application, BulkConfig, DownloadConfig, Outcome, Workload};
use trimtab_net::{Capacity, LinkConfig, LossConfig, QueueConfig, generate};
use trimtab_sim::{Control, FlowConfig, LossDetection, Transport, World, WorldConfig};
use trimtab_units::{Duration, Rate, Time};

const TRANSPORTS: [Transport; 2] = [Transport::quic(), Transport::linux_tcp()];

fn world(cc: &str, transport: Transport, app: App, link: LinkConfig) -> World {
    let control = Control::Algorithm { spec: cc.parse().unwrap(), steerer: None };
    let flow = FlowConfig::new(control, transport, app, Duration::from_millis(20));
    World::new(&WorldConfig { links: vec![(link, 1)], flows: vec![flow] })
}

/// 96 Mbit/s (a packet is gone in 125 µs) with these packets lost.
fn fast(lost: &[u64]) -> LinkConfig {
    LinkConfig::new(Capacity::Constant(Rate::from_mbps(96.0)))
        .queue(QueueConfig::drop_tail_packets(200))
        .loss(LossConfig::Listed(lost.into()))
}

/// A response of eight packets, which is sent at once, with these of its connection's packets lost:
/// its completion time, and the timeouts that it took.
fn response(transport: Transport, lost: &[u64]) -> (Duration, u64) {
    let size = transport.payload() * 8;
    let workload = Workload::parse(&format!("0 {}", size.get())).unwrap();
    let app = App::download(DownloadConfig::new(workload));
    let mut world = world("newreno", transport, app, fast(lost));
    world.run_until(Time::from_secs(30));
    let flow = &world.flows()[0];
    let Outcome::Requests(records) = flow.app().outcome(world.now()) else { unreachable!() };
    (records[0].completion_time().expect("it is answered"), flow.sent().timeouts)
}

/// How much longer a response takes than without losses, in milliseconds, and its timeouts.
fn longer(transport: Transport, lost: &[u64]) -> (f64, u64) {
    let (without, none) = response(transport, &[]);
    assert_eq!(none, 0);
    let (with, timeouts) = response(transport, lost);
    ((with - without).as_millis_f64(), timeouts)
}

/// RFC 9002 §6.2.1 and §6.2.4: the probe of a lost tail leaves one probe timeout after it, and each
/// that is lost doubles the wait. No acknowledgement comes in between, so the timeout stays.
#[test]
fn quic_probes_a_lost_tail_and_backs_off() {
    let quic = Transport::quic();
    let (pto, timeouts) = longer(quic, &[7]);
    // 20 ms, 25 ms of the peer's delay, and four times a variation that began at half of 20 ms.
    assert!((50.0..70.0).contains(&pto), "{pto} ms");
    for (probes_lost, waits) in [(1u64, 3.0), (2, 7.0), (3, 15.0)] {
        let lost: Vec<u64> = (7..=7 + probes_lost).collect();
        let (wait, more) = longer(quic, &lost);
        assert!((wait / pto - waits).abs() < 0.05, "{probes_lost}: {wait} ms after {pto} ms");
        assert_eq!(
            (timeouts, more),
            (0, 0),
            "one packet again and again is no persistent congestion"
        );
    }
    // Two lost: the probe repeats the older one, whose acknowledgement shows the other to be late.
    let (wait, _) = longer(quic, &[6, 7]);
    assert!((wait - pto - 21.0).abs() < 5.0, "{wait} ms: a probe and a round trip");
}

/// noq lets the wait for a probe grow by 2 s at most, where RFC 9002 §6.2.1 doubles it: after eight lost
/// probes that is 8 s less.
#[test]
fn the_probes_of_noq_back_off_by_two_seconds_at_most() {
    let lost: Vec<u64> = (7..=7 + 8).collect();
    let [quic, noq] = [Transport::quic(), Transport::noq()].map(|transport| {
        let (pto, _) = longer(transport, &[7]);
        (pto, longer(transport, &lost).0)
    });
    assert!((quic.1 / quic.0 / 511.0 - 1.0).abs() < 0.01, "{quic:?}");
    // Seven waits double, the last of them to 64 timeouts; two more are 2 and 4 s longer than that.
    let waits = noq.0 * (127.0 + 2.0 * 64.0) + 6000.0;
    assert!((noq.1 / waits - 1.0).abs() < 0.01, "{noq:?}, expected {waits}");
}

/// RFC 8985 §7: two round trips and 2 ms after the last packet a tail loss probe repeats it, and its
/// acknowledgement shows the hole before it: no retransmission timeout.
#[test]
fn tcp_probes_a_lost_tail() {
    let (wait, timeouts) = longer(Transport::linux_tcp(), &[6, 7]);
    assert_eq!(timeouts, 0);
    // 2 · 20 + 2 ms, and a round trip for the other packet.
    assert!((wait - 62.0).abs() < 4.0, "{wait} ms");
}

/// RFC 6298 §5 with Linux's floor: when the probe is lost too, the timer of at least 200 ms rings, and
/// then at twice the time each.
#[test]
fn tcp_times_out_and_backs_off_when_the_probe_is_lost() {
    let tcp = Transport::linux_tcp();
    // A single packet in flight is probed after the timeout's time: the peer may delay its answer.
    let (rto, timeouts) = longer(tcp, &[7]);
    assert!((rto - 220.0).abs() < 3.0 && timeouts == 0, "{rto} ms, {timeouts}");
    for (again_lost, waits) in [(1u64, 2.0), (2, 4.0), (3, 8.0)] {
        let lost: Vec<u64> = (7..=7 + again_lost).collect();
        let (wait, timeouts) = longer(tcp, &lost);
        assert!((wait / rto / waits - 1.0).abs() < 0.01, "{again_lost}: {wait} ms after {rto} ms");
        assert_eq!(timeouts, again_lost);
    }
}

/// A bulk flow of Reno over 12 Mbit/s that loses `count` packets in a row from packet `first` on.
fn hole(transport: Transport, first: u64, count: u64) -> World {
    let lost: Vec<u64> = (first..first + count).collect();
    let link = LinkConfig::new(Capacity::Constant(Rate::from_mbps(12.0)))
        .queue(QueueConfig::drop_tail_packets(20))
        .loss(LossConfig::Listed(lost.into()));
    world("newreno", transport, App::bulk(&BulkConfig::default()), link)
}

/// How many packets leave after packet `first` when none of them arrives.
fn packets_until_silence(transport: Transport, first: u64) -> u64 {
    let mut world = hole(transport, first, 1_000_000);
    let (mut before, mut quiet) = (0, 0);
    // TCP's peer may hold back its last acknowledgement for 40 ms; probes take longer.
    while quiet < 45 {
        world.run_until(world.now() + Duration::from_millis(1));
        let sent = world.flows()[0].sent().packets;
        quiet = if sent < first || sent > before { 0 } else { quiet + 1 };
        before = sent;
    }
    before - first
}

/// The smallest window in packets that a flow has until packet `until` has left, and its timeouts.
fn smallest_window(mut world: World, until: u64) -> (u64, u64) {
    let mut smallest = u64::MAX;
    while world.flows()[0].sent().packets < until {
        world.run_until(world.now() + Duration::from_millis(1));
        smallest = smallest.min(world.flows()[0].window().get() / 1500);
    }
    (smallest, world.flows()[0].sent().timeouts)
}

/// RFC 9002 §7.6: when everything that was sent over three probe timeouts is lost, the window falls to
/// its minimum; when a probe comes through before, it is halved, however many packets were lost.
#[test]
fn quic_tells_persistent_congestion_from_a_burst_of_losses() {
    let (quic, first) = (Transport::quic(), 3000);
    let burst = packets_until_silence(quic, first);
    assert!(burst >= 20, "a window: {burst}");
    // The first probe is lost too; the second timeout's two arrive.
    let (smallest, times) = smallest_window(hole(quic, first, burst + 1), 4000);
    assert!(times == 0 && smallest >= burst / 2 - 10 && smallest > 5, "{smallest}, {times}");
    // Those of the first three timeouts are lost: one and twice two, over seven probe timeouts.
    let (smallest, times) = smallest_window(hole(quic, first, burst + 5), 4000);
    assert_eq!(times, 1);
    assert!(smallest <= 3, "2 packets, and what their acknowledgements add: {smallest}");
}

/// The same on TCP: the tail loss probe finds the hole when it arrives, and each one that does not is
/// followed by a timeout.
#[test]
fn tcp_times_out_once_its_probe_is_lost() {
    let (tcp, first) = (Transport::linux_tcp(), 3000);
    let burst = packets_until_silence(tcp, first);
    for lost in 0..4 {
        let (smallest, timeouts) = smallest_window(hole(tcp, first, burst + lost), 4000);
        assert_eq!((smallest, timeouts), (1, lost), "recovery and timeouts begin at a packet");
    }
}

/// Goodput in Mbit/s from one to four seconds after an outage of the 12 Mbit/s link, whose queue keeps
/// its 20 packets meanwhile, and the timeouts until then.
fn after_outage(cc: &str, transport: Transport, outage: Duration) -> (f64, u64) {
    let rate = Rate::from_mbps(12.0);
    let seconds = Duration::from_secs;
    let steps = [(seconds(10), rate), (outage, Rate::ZERO), (seconds(60), rate)];
    let link = LinkConfig::new(Capacity::trace(generate::steps(&steps).unwrap()))
        .queue(QueueConfig::drop_tail_packets(20));
    let mut world = world(cc, transport, App::bulk(&BulkConfig::default()), link);
    let goodput_until = |world: &mut World, time| {
        world.run_until(time);
        world.flows()[0].received().goodput
    };
    let end = Time::from_secs(10) + outage;
    let before = goodput_until(&mut world, end + seconds(1));
    let after = goodput_until(&mut world, end + seconds(4));
    ((after - before).bits() / 3.0 / 1e6, world.flows()[0].sent().timeouts)
}

/// A second after an outage of half a second every algorithm is back, on either transport.
#[test]
fn flows_go_on_after_an_outage() {
    for transport in TRANSPORTS {
        for cc in [
            "newreno",
            "cubic",
            "cubic:linux",
            "bbr",
            "bbr3",
            "copa",
            "vegas",
            "westwood",
            "vivace",
            "ledbat",
            "illinois",
            "c2tcp",
            "allegro",
            "sprout",
            "verus",
        ] {
            let (goodput, timeouts) = after_outage(cc, transport, Duration::from_millis(500));
            // This link is as fast as any that Sprout knows, and it is cautious.
            let least = if cc == "sprout" { 4.5 } else { 9.0 };
            assert!(goodput > least, "{cc}: {goodput} Mbit/s");
            // The packets that waited in the queue arrive, so nothing is persistent congestion.
            let expected = u64::from(transport.loss_detection == LossDetection::RackTlp);
            assert_eq!(timeouts, expected, "{cc}");
        }
    }
}

/// After three seconds TCP is back as soon: its timeouts wrote off what the full queue dropped, and the
/// packets that waited in it show them to be spurious. QUIC has not written anything off, and its probe
/// timeout is made of round-trip times of three seconds, so a sender whose window is less than what was
/// dropped is silent for some 6 s more (RFC 9002 §6.2.1 knows no other way).
#[test]
fn after_a_long_outage_quic_waits_for_a_timeout_made_of_the_outage() {
    let outage = Duration::from_secs(3);
    for cc in ["newreno", "cubic:linux", "bbr", "copa"] {
        let (goodput, timeouts) = after_outage(cc, Transport::linux_tcp(), outage);
        assert!(goodput > 9.0 && timeouts >= 2, "{cc}: {goodput} Mbit/s, {timeouts} timeouts");
    }
    let (goodput, _) = after_outage("bbr", Transport::quic(), outage);
    assert!(goodput < 0.1, "silent: {goodput} Mbit/s");
}
