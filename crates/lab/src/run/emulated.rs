//! The links of a run for an emulator in real time, which delays packets behind the queue and not
//! before it.

use trimtab_net::{Capacity, DelayConfig, LinkConfig};
use trimtab_units::{Duration, Rate, Time};

use crate::conform::Scene;
use crate::run::course;
use crate::run::prepare::Prepared;
use crate::scenario::{Delay, Job};

/// The link of a run as the simulator has it: towards the client, and back.
pub fn link(prepared: &Prepared, job: &Job) -> (LinkConfig, LinkConfig) {
    // There the packets are delayed on their way to the queue, here behind it: so that they meet the
    // trace at the same moment of the run, it is that much ahead. Where the delay steps, that holds
    // for the first one.
    let (there, back) = job.cell.rtt.halves();
    let capacity = ahead(course::capacity(prepared, job), there.at(Time::ZERO));
    let down = course::bottleneck(prepared, job, capacity).jitter(course::jitter(job)).delay(there);
    (down, delay(back))
}

/// The link of a scene as the simulator has it: towards the client, and back.
pub fn scene(scene: &Scene) -> (LinkConfig, LinkConfig) {
    let half = scene.rtt.map(|delay| delay / 2);
    let mut down = scene.link.clone().delay(half.clone());
    down.capacity = ahead(down.capacity, half.at(Time::ZERO));
    (down, delay(half))
}

/// A path without its bottleneck, which only delays: towards the client, and back. `rtt` is the one
/// that the run begins with.
pub fn path(rtt: Duration) -> (LinkConfig, LinkConfig) {
    let (there, back) = Delay::from(rtt).halves();
    (delay(there), delay(back))
}

/// A direction that only delays.
fn delay(by: impl Into<DelayConfig>) -> LinkConfig {
    LinkConfig::new(Capacity::Constant(Rate::MAX)).delay(by)
}

/// The same capacity, `by` later in its trace.
fn ahead(mut capacity: Capacity, by: Duration) -> Capacity {
    if let Capacity::Trace { offset, .. } = &mut capacity {
        *offset += by;
    }
    capacity
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::prepare::prepare;
    use crate::scenario::Scenario;

    /// The link has the whole round-trip time, and the trace is where the simulator's would be.
    #[test]
    fn a_link_is_that_of_the_simulator() {
        let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/wifi-steady.trace.gz");
        let text = format!(
            "transport = \"tcp\"\ncc = [\"cubic\"]\ntraces = [{trace:?}]\n\
             rtt = [\"41ms\", \"20ms\"]\nseeds = 2\n[[app]]\nkind = \"download\"\n"
        );
        let plan = Scenario::parse(&text).unwrap().plan().unwrap();
        let prepared = prepare(&plan).unwrap();
        assert_eq!(plan.jobs.len(), 4);
        for job in &plan.jobs {
            let (down, up) = link(&prepared, job);
            let (there, back) = job.cell.rtt.halves();
            let by = there.at(Time::ZERO).as_millis();
            assert_eq!((down.delay, up.delay), (there, back));
            assert_eq!(up.capacity.mean_rate(), Rate::MAX);
            let simulated = course::capacity(&prepared, job);
            for ms in [0, 1, 250, 4000] {
                let at = Time::from_millis(ms);
                let (begin, end) = (at, at + Duration::from_millis(100));
                let (later, until) = (Time::from_millis(ms + by), Time::from_millis(ms + by + 100));
                assert_eq!(
                    down.capacity.bytes_between(begin, end),
                    simulated.bytes_between(later, until),
                    "at {ms} ms"
                );
            }
        }
    }

    #[test]
    fn a_constant_rate_has_no_place_to_move_to() {
        let by = Duration::from_millis(20);
        let moved = ahead(Capacity::Constant(Rate::from_mbps(8.0)), by);
        assert!(matches!(moved, Capacity::Constant(rate) if rate == Rate::from_mbps(8.0)));
        assert_eq!(delay(by).delay, by.into());
    }

    /// Half of the round trip is on each way at any time, and the trace is half of it ahead.
    #[test]
    fn a_scene_is_that_of_the_simulator() {
        let ms = Duration::from_millis;
        let steps = [(ms(1000), Rate::from_mbps(8.0)), (ms(1000), Rate::from_mbps(24.0))];
        let capacity = Capacity::trace(trimtab_net::generate::steps(&steps).unwrap());
        let link = LinkConfig::new(capacity.clone());
        let rtt = DelayConfig::steps([(ms(500), ms(40)), (ms(9500), ms(100))]);
        let app = trimtab_apps::App::bulk(&trimtab_apps::BulkConfig::default());
        let (down, up) = scene(&Scene { link, rtt, app, seed: 1 });
        for (at, half) in [(0, 20), (499, 20), (501, 50)] {
            let at = Time::from_millis(at);
            assert_eq!([down.delay.at(at), up.delay.at(at)], [ms(half); 2]);
        }
        let bytes = |of: &Capacity, from| {
            of.bytes_between(Time::from_millis(from), Time::from_millis(from + 100))
        };
        assert_eq!(bytes(&down.capacity, 930), bytes(&capacity, 950));
        assert_ne!(bytes(&down.capacity, 930), bytes(&capacity, 930));
        assert_eq!(up.capacity.mean_rate(), Rate::MAX);
    }
}
