//! The breaker of a rule: when connections under it do worse than those of the control arms at the
//! same time, the rule lets go of all of them.
//!
//! Every five seconds the networks under the rule are compared with those in a control arm, over the
//! last ten: by losses, queueing delay and goodput, each network one number. It trips when one of
//! them is beyond its limit with certainty, by its mean or by ranks, twice in a row. A connection
//! that its guard took back counts for ten seconds with what it suffered. Without two networks in a
//! control arm nothing can be compared. Then it trips when the guard of connections took back half
//! of them within ten seconds.

use std::collections::BTreeMap;
use std::net::IpAddr;

use trimtab_fleet::Interval;
use trimtab_fleet::experiment::{excess, is_mostly_beyond};
use trimtab_steer::safety::{Arm, Measured};
use trimtab_units::{Duration, Time};

use super::{cluster, step};
use crate::config::{Breaker as Limits, Prefix, STEP};

/// Steps that are looked at. With more, what was before the harm counts for longer: controls that
/// had long queues when they began, too.
const STEPS: u64 = 2;
/// The time that is looked at.
pub(crate) const LOOKED_AT: Duration = Duration::from_nanos(STEPS * STEP.as_nanos());
/// A comparison of two that are just at the limit is beyond it half so rarely; and it has to be so
/// twice in a row. With a tenth of it, five control networks took 20 s longer to show that queues
/// were three times as long.
const ALPHA: f64 = 1e-2;
/// Looks in a row that have to find harm.
const LOOKS: u32 = 2;
/// Queueing delay that is nothing, whatever the controls have.
const DELAY_S: f64 = 0.02;
/// Networks of a rule that are looked at in a step; of more there is no need.
const CLUSTERS_MAX: usize = 2048;
/// Connections that the guard has to take back before they count as the rule's doing.
const TAKEN_BACK_MIN: u64 = 20;

/// Of a network, in a step.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    windows: f64,
    sent: f64,
    lost: f64,
    queueing_s: f64,
    busy: f64,
    /// Of the logarithms of throughputs.
    throughput: f64,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.windows += other.windows;
        self.sent += other.sent;
        self.lost += other.lost;
        self.queueing_s += other.queueing_s;
        self.busy += other.busy;
        self.throughput += other.throughput;
    }

    fn loss(&self) -> Option<f64> {
        (self.sent > 0.0).then(|| self.lost / self.sent)
    }

    fn queueing(&self) -> Option<f64> {
        (self.windows > 0.0).then(|| self.queueing_s / self.windows)
    }

    fn throughput(&self) -> Option<f64> {
        (self.busy > 0.0).then(|| self.throughput / self.busy)
    }
}

/// The latest steps of a rule.
#[derive(Clone, Debug, Default)]
struct OfRule {
    /// By step, arm and network.
    sums: BTreeMap<(Interval, Arm, Prefix), Sums>,
    /// By step: connections that were measured, and that their guard took back.
    connections: BTreeMap<Interval, (u64, u64)>,
    looked_at: Option<Interval>,
    bad: u32,
}

/// The breakers of all rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct Breakers {
    rules: BTreeMap<String, OfRule>,
}

impl Breakers {
    /// A second of a connection that is under the rule, or in a control arm.
    pub(crate) fn on_window(&mut self, rule: &str, client: IpAddr, arm: Arm, measured: &Measured) {
        let of = self.of(rule);
        let key = (step(measured.at), arm, cluster(client));
        if of.sums.len() >= CLUSTERS_MAX * STEPS as usize && !of.sums.contains_key(&key) {
            return;
        }
        let busy = f64::from(u8::from(measured.busy && !measured.point.throughput.is_zero()));
        of.sums.entry(key).or_default().add(&Sums {
            windows: 1.0,
            sent: measured.sent.as_f64(),
            lost: measured.lost.as_f64(),
            queueing_s: measured.queueing.as_secs_f64(),
            busy,
            throughput: if busy > 0.0 { measured.point.throughput.mbps().ln() } else { 0.0 },
        });
        if arm == Arm::Treated {
            of.connections.entry(step(measured.at)).or_default().0 += 1;
        }
    }

    /// The guard of a connection took it back.
    pub(crate) fn on_taken_back(&mut self, rule: &str, now: Time) {
        self.of(rule).connections.entry(step(now)).or_default().1 += 1;
    }

    fn of(&mut self, rule: &str) -> &mut OfRule {
        if !self.rules.contains_key(rule) {
            self.rules.insert(rule.to_owned(), OfRule::default());
        }
        self.rules.entry(rule.to_owned()).or_default()
    }

    /// What is known of a rule is forgotten: it has tripped, or is to begin anew.
    pub(crate) fn forget(&mut self, rule: &str) {
        self.rules.remove(rule);
    }

    /// The rules that do harm, and why that is so, when a step is over.
    pub(crate) fn look(&mut self, limits: &Limits, now: Time) -> Vec<(String, String)> {
        if !limits.on {
            return Vec::new();
        }
        let at = step(now);
        let trips = |(rule, of): (&String, &mut OfRule)| Some((rule.clone(), of.look(limits, at)?));
        self.rules.iter_mut().filter_map(trips).collect()
    }
}

impl OfRule {
    fn look(&mut self, limits: &Limits, at: Interval) -> Option<String> {
        if self.looked_at.replace(at) == Some(at) {
            return None;
        }
        let first = Interval(at.0.saturating_sub(STEPS));
        self.sums.retain(|(step, ..), _| *step >= first);
        self.connections.retain(|step, _| *step >= first);
        let why = self.harm(limits);
        self.bad = if why.is_some() { self.bad + 1 } else { 0 };
        why.filter(|_| self.bad >= LOOKS)
    }

    /// What harm the rule does, as far as that is certain.
    fn harm(&self, limits: &Limits) -> Option<String> {
        let treated = self.networks(Arm::Treated);
        let former = self.networks(Arm::Former);
        let holdback = self.networks(Arm::Holdback);
        // What connections would run otherwise says most, unless it has so few networks that
        // nothing they show is certain.
        let is_former = former.len() >= 2 && 2 * former.len() >= holdback.len();
        let (arm, control) =
            if is_former { (Arm::Former, former) } else { (Arm::Holdback, holdback) };
        if control.len() < 2 {
            return self.taken_back();
        }
        let of = |all: &[Sums], value: fn(&Sums) -> Option<f64>| -> Vec<f64> {
            all.iter().filter_map(value).collect()
        };
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
        let least = 1.0 - limits.goodput.get();
        // The mean of a·treated − b·control − c is above zero: that is beyond the limit.
        for (value, factors, shown) in [
            (
                Sums::loss as fn(&Sums) -> Option<f64>,
                (1.0, 1.0, limits.loss.get()),
                (|t, c| format!("lost {:.1}% vs. {:.1}%", t * 100.0, c * 100.0))
                    as fn(f64, f64) -> String,
            ),
            (Sums::queueing, (1.0, 1.0 + limits.delay.get(), DELAY_S), |t, c| {
                format!("queueing delay {:.0} ms vs. {:.0} ms", t * 1e3, c * 1e3)
            }),
            (Sums::throughput, (-1.0, -1.0, -least.ln()), |t, c| {
                format!("goodput {:.2} Mbit/s vs. {:.2} Mbit/s", t.exp(), c.exp())
            }),
        ] {
            let (ours, theirs) = (of(&treated, value), of(&control, value));
            let found = excess(&theirs, &ours, factors, ALPHA);
            // Networks differ much: a few controls that lose as much as those under the rule hide
            // harm from the mean, and hardly from the ranks.
            if found.is_some_and(|excess| excess.low > 0.0)
                || is_mostly_beyond(&theirs, &ours, factors, ALPHA / 2.0)
            {
                return Some(format!(
                    "{} in the {} arm ({} and {} networks)",
                    shown(mean(&ours), mean(&theirs)),
                    arm.name(),
                    ours.len(),
                    theirs.len()
                ));
            }
        }
        None
    }

    /// Each network of an arm, over all steps.
    fn networks(&self, arm: Arm) -> Vec<Sums> {
        let mut all: BTreeMap<Prefix, Sums> = BTreeMap::new();
        for ((_, of, network), sums) in &self.sums {
            if *of == arm {
                all.entry(*network).or_default().add(sums);
            }
        }
        all.into_values().collect()
    }

    /// Without a control arm: whether the guard took back half of the connections.
    fn taken_back(&self) -> Option<String> {
        let back: u64 = self.connections.values().map(|(_, back)| back).sum();
        // A connection has a window each second; those of the fullest step tell how many there are.
        let windows = self.connections.values().map(|(windows, _)| *windows).max().unwrap_or(0);
        let there = windows.div_ceil(5).max(back);
        (back >= TAKEN_BACK_MIN && back * 2 >= there).then(|| {
            format!(
                "the guard took back {back} of {there} connections within 10 s, and no control \
                 arm has two networks"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use trimtab_qoe::{OperatingPoint, Samples};
    use trimtab_units::{Bytes, Rate};

    use super::*;
    use crate::config::Config;

    fn limits() -> Limits {
        Config::parse(std::path::Path::new("agent.toml"), "").unwrap().breaker
    }

    /// A second with this loss, queueing delay and throughput.
    fn window(at: Time, loss: f64, queueing_ms: u64, mbps: f64) -> Measured {
        let sent = Bytes::new(1_000_000);
        let throughput = Rate::from_mbps(mbps);
        Measured {
            at,
            length: Duration::from_secs(1),
            point: OperatingPoint { throughput, delay: Duration::from_millis(50), loss },
            samples: Samples::default(),
            queueing: Duration::from_millis(queueing_ms),
            sent,
            lost: sent.mul_f64(loss),
            busy: true,
        }
    }

    /// The first step at which a rule trips, when its connections measure this and those of the
    /// former arm are usual; and why.
    fn trips(loss: f64, queueing_ms: u64, mbps: f64, controls: u8) -> Option<(u64, String)> {
        let mut breakers = Breakers::default();
        for second in 0..60 {
            let now = Time::from_secs(second);
            for network in 0..20_u8 {
                let client = |third| IpAddr::from([10, 0, third, network]);
                // Networks differ.
                let by = f64::from(network % 5) / 10.0;
                let more = u64::from(network % 5);
                let ours = window(now, loss + by / 100.0, queueing_ms + more, mbps + by);
                breakers.on_window("web", client(network), Arm::Treated, &ours);
                if network < controls {
                    let theirs = window(now, by / 100.0, 10 + more, 10.0 + by);
                    breakers.on_window("web", client(100 + network), Arm::Former, &theirs);
                }
            }
            if let Some((_, why)) = breakers.look(&limits(), now).pop() {
                return Some((second, why));
            }
        }
        None
    }

    #[test]
    fn each_kind_of_harm_trips_it_and_is_named() {
        for (loss, queueing_ms, mbps, says) in [
            (0.08, 10, 10.0, "lost 8.2% vs. 0.2% in the former arm"),
            (0.0, 200, 10.0, "queueing delay 202 ms vs. 12 ms"),
            (0.0, 10, 4.0, "goodput 4.20 Mbit/s"),
        ] {
            let (second, why) = trips(loss, queueing_ms, mbps, 8).expect(says);
            assert!(why.contains(says), "{why}");
            assert!(second <= 2 * STEP.as_secs_f64() as u64, "after {second} s");
        }
    }

    /// Two networks of one arm that differ say nothing, where eight of the other one do.
    #[test]
    fn the_control_arm_that_has_enough_networks_is_compared_with() {
        let mut breakers = Breakers::default();
        let mut why = None;
        for second in 0..=2 * STEP.as_secs_f64() as u64 {
            let now = Time::from_secs(second);
            for network in 0..20_u8 {
                let client = IpAddr::from([10, 0, network, 1]);
                let (arm, queueing_ms) = match network {
                    0 | 1 => (Arm::Former, 10 + 200 * u64::from(network)),
                    2..10 => (Arm::Holdback, 10 + u64::from(network)),
                    _ => (Arm::Treated, 250 + u64::from(network)),
                };
                breakers.on_window("web", client, arm, &window(now, 0.0, queueing_ms, 10.0));
            }
            why = breakers.look(&limits(), now).pop().or(why);
        }
        let (_, why) = why.expect("it trips");
        assert_eq!(why, "queueing delay 265 ms vs. 16 ms in the holdback arm (10 and 8 networks)");
    }

    #[test]
    fn what_is_within_the_limits_does_not_trip_it() {
        assert_eq!(trips(0.01, 25, 9.0, 8), None);
        // One network tells nothing of how much networks differ.
        assert_eq!(trips(0.5, 500, 1.0, 1), None);
    }

    /// Networks differ by half, and each from second to second; the arms do not.
    #[test]
    fn arms_that_are_alike_do_not_trip_it() {
        let mut chance = 1_u64;
        let mut normal = || {
            // The sum of twelve that are even (Irwin and Hall), by a linear congruence.
            let mut even = |_| {
                chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (chance >> 40) as f64 / f64::from(1 << 24)
            };
            (0..12).map(&mut even).sum::<f64>() - 6.0
        };
        let mut trips = 0;
        for _host in 0..200 {
            let mut breakers = Breakers::default();
            let levels: Vec<f64> = (0..28).map(|_| (0.5 * normal()).exp()).collect();
            for second in 0..60 {
                let now = Time::from_secs(second);
                for (network, level) in (0..28_u8).zip(&levels) {
                    let arm =
                        [Arm::Former, Arm::Holdback, Arm::Treated][usize::from(network / 6).min(2)];
                    let level = level * (0.5 * normal()).exp();
                    let queueing_ms = (50.0 * level) as u64;
                    let seen = window(now, (0.01 * level).min(1.0), queueing_ms, 10.0 / level);
                    breakers.on_window("web", IpAddr::from([10, 0, network, 1]), arm, &seen);
                }
                trips += breakers.look(&limits(), now).len();
            }
        }
        assert_eq!(trips, 0);
    }

    #[test]
    fn without_a_control_arm_the_guards_of_connections_decide() {
        for (back, trips) in [(10, false), (19, false), (60, true)] {
            let mut breakers = Breakers::default();
            let mut tripped = false;
            for second in 0..20 {
                let now = Time::from_secs(second);
                for connection in 0..100_u8 {
                    let client = IpAddr::from([10, 0, connection, 1]);
                    breakers.on_window("web", client, Arm::Treated, &window(now, 0.08, 10, 10.0));
                }
                if second == 7 {
                    (0..back).for_each(|_| breakers.on_taken_back("web", now));
                }
                tripped |= !breakers.look(&limits(), now).is_empty();
            }
            assert_eq!(tripped, trips, "{back} of 100");
        }
    }
}
