//! A connection that resumes what an earlier one to the same destination observed (RFC 9959).

use trimtab_apps::{App, Application, BulkConfig, DownloadConfig, Outcome, Workload};
use trimtab_cc::ALGORITHMS;
use trimtab_cc::resume::{Resumption, Saved, Stage, Trigger};
use trimtab_net::{Capacity, LinkConfig, QueueConfig};
use trimtab_sim::{Control, Flow, FlowConfig, Transport, World, WorldConfig};
use trimtab_units::{Bytes, Duration, Rate, Time};

/// A long path: 100 Mbit/s and 200 ms hold 2.5 MB.
const RTT: Duration = Duration::from_millis(200);
const TRANSPORTS: [Transport; 2] = [Transport::quic(), Transport::linux_tcp()];

fn capacity() -> Rate {
    Rate::from_mbps(100.0)
}

fn flow(cc: &str, transport: Transport, app: App) -> FlowConfig {
    let control = Control::Algorithm { spec: cc.parse().unwrap(), steerer: None };
    FlowConfig::new(control, transport, app, RTT)
}

/// A link whose buffer holds this part of what the first connection's path did.
fn world(rate: Rate, buffer: f64, flows: Vec<FlowConfig>) -> World {
    let queue = QueueConfig::drop_tail_bytes((capacity() * RTT).mul_f64(buffer));
    let link = LinkConfig::new(Capacity::Constant(rate)).queue(queue);
    World::new(&WorldConfig { links: vec![(link, 1)], flows })
}

fn bulk() -> App {
    App::bulk(&BulkConfig::default())
}

/// A client that asks for one file of this size.
fn file(size: Bytes) -> App {
    App::download(DownloadConfig::new(Workload::single(size)))
}

/// What a first connection of ten seconds observes, for one that begins at time zero.
fn observed(cc: &str, transport: Transport) -> Saved {
    let resume = Some(Resumption::default());
    let first = FlowConfig { resume, ..flow(cc, transport, bulk()) };
    let mut world = world(capacity(), 1.0, vec![first]);
    world.run_until(Time::from_secs(10));
    let state = world.flows()[0].governor().resume().expect("it observes");
    assert_eq!((state.stage(), state.trigger()), (Stage::Normal, Trigger::NothingSaved));
    let saved = state.observed(world.now()).expect("a long path is worth saving");
    assert_eq!(saved.expires, world.now() + Duration::from_secs(3600));
    Saved { expires: Time::from_secs(3600), ..saved }
}

/// How long the first flow of a world takes for its file.
fn took(world: &mut World) -> Duration {
    world.run_until(Time::from_secs(60));
    let Outcome::Requests(requests) = world.flows()[0].app().outcome(world.now()) else {
        panic!("a download has requests");
    };
    requests[0].completion_time().expect("a minute is enough")
}

fn resumed(saved: Saved, config: FlowConfig) -> FlowConfig {
    FlowConfig { resume: Some(saved.into()), ..config }
}

fn state(flow: &Flow) -> (Stage, Trigger) {
    let state = flow.governor().resume().expect("it resumes");
    (state.stage(), state.trigger())
}

/// RFC 9959 §3.1: what is observed is the path, without the queue in it.
#[test]
fn the_first_connection_observes_the_path() {
    for transport in TRANSPORTS {
        for cc in ["cubic", "bbr3", "copa"] {
            let saved = observed(cc, transport);
            let share = saved.window.ratio(capacity() * RTT);
            assert!((0.9..1.06).contains(&share), "{cc}: {share} of the path");
            let rtt = saved.rtt.as_millis_f64();
            assert!((200.0..203.0).contains(&rtt), "{cc}: {rtt} ms");
        }
    }
}

/// A file of 4 MB over 200 ms and 100 Mbit/s: slow start takes eight round trips, a jump saves half
/// of the time.
#[test]
fn the_second_connection_is_faster_with_every_algorithm() {
    let size = Bytes::new(4_000_000);
    for transport in TRANSPORTS {
        let saved = observed("cubic", transport);
        // Sprout forecasts no more than 12 Mbit/s of these 100: it cannot use what is resumed.
        for algorithm in ALGORITHMS.iter().filter(|algorithm| algorithm.name != "sprout") {
            let name = algorithm.name;
            let plain = flow(name, transport, file(size));
            let mut resuming = world(capacity(), 1.0, vec![resumed(saved, plain.clone())]);
            let fast = took(&mut resuming);
            let slow = took(&mut world(capacity(), 1.0, vec![plain]));
            let validated = (Stage::Normal, Trigger::LastUnvalidatedPacketAcknowledged);
            assert_eq!(state(&resuming.flows()[0]), validated, "{name}");
            assert!(fast < slow.mul_f64(0.62), "{name}: {fast} against {slow}");
        }
    }
}

/// When it is looked at how much a flow has received, in seconds.
const AFTER: [u64; 4] = [2, 5, 10, 30];

/// What a CUBIC flow receives in Mbit after so many seconds, from when another begins; and how the other ended, if it resumes.
fn next_to(
    newcomer: FlowConfig,
    buffer: f64,
    transport: Transport,
) -> ([f64; 4], Option<(Stage, Trigger)>) {
    let begins = Time::from_secs(10);
    let newcomer = FlowConfig { start: begins, ..newcomer };
    let flows = vec![newcomer, flow("cubic", transport, bulk())];
    let mut world = world(capacity().mul_f64(0.1), buffer, flows);
    let got = |world: &World| world.flows().last().expect("it is there").received().goodput;
    world.run_until(begins);
    let before = got(&world);
    let megabits = AFTER.map(|secs| {
        world.run_until(begins + Duration::from_secs(secs));
        (got(&world) - before).bits() / 1e6
    });
    let end = world.flows()[0].governor().resume();
    (megabits, end.map(|state| (state.stage(), state.trigger())))
}

/// RFC 9959 §3.5: the path carries a tenth of what it did, and a CUBIC flow fills it, when a
/// connection jumps to five times what it holds. The flow keeps what a fair share would be, and most
/// of what it has next to a connection that starts as usual.
#[test]
fn a_retreat_leaves_the_rest_of_the_path_to_others() {
    for transport in TRANSPORTS {
        let saved = observed("cubic", transport);
        let newcomer = flow("cubic", transport, file(Bytes::new(20_000_000)));
        for buffer in [0.1, 0.4] {
            let (usual, _) = next_to(newcomer.clone(), buffer, transport);
            let (got, end) = next_to(resumed(saved, newcomer.clone()), buffer, transport);
            assert_eq!(end, Some((Stage::Normal, Trigger::ExitRecovery)), "{buffer}");
            for ((secs, got), usual) in AFTER.into_iter().zip(got).zip(usual) {
                let fair = 5.0 * secs as f64;
                let what = format!("{buffer}, {secs} s: {got:.1} Mbit, usually {usual:.1}");
                assert!(got >= fair * if secs < 5 { 0.9 } else { 1.0 }, "{what}");
                assert!(secs < 5 || got >= usual * 0.75, "{what}");
            }
        }
    }
}

/// RFC 9959 §3.2: where the initial window is too much already, nothing is tried.
#[test]
fn a_loss_of_the_initial_window_leaves_the_start_as_it_was() {
    for transport in TRANSPORTS {
        let saved = observed("cubic", transport);
        let newcomer = flow("cubic", transport, file(Bytes::new(20_000_000)));
        let (usual, _) = next_to(newcomer.clone(), 0.02, transport);
        let (got, end) = next_to(resumed(saved, newcomer), 0.02, transport);
        assert_eq!((got, end), (usual, Some((Stage::Normal, Trigger::PacketLoss))));
    }
}
