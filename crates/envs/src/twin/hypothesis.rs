//! What a path may be like: the parameters of a particle.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use trimtab_net::Capacity;
use trimtab_steer::select::{FEATURES, State, feature_index};
use trimtab_units::{Duration, Rate, Time};

use crate::condition::{Condition, PARAMETERS};
use crate::course::Course;
use crate::episode::{Asked, Draw};
use crate::links;
use crate::rivals::Rival;

/// Places of the unit cube that change: how far, as a standard deviation; the round-trip time is known
/// better.
const STEPS: [f64; PARAMETERS] = [0.005, 0.15, 0.1, 0.15];
/// By how much the logarithm of the rate changes, as a standard deviation.
const RATE_STEP: f64 = 0.15;
/// How uncertain the rate is that the highest throughput tells, likewise.
const RATE_SPREAD: f64 = 0.4;
/// How likely a link, the time of it and the rivals are drawn anew where a path changes a little.
const ANEW: f64 = 0.3;
/// Throughput is measured over about this time.
const MEASURED: Duration = Duration::from_millis(500);
/// The most that one correction changes the rate by.
const CORRECTION_MAX: f64 = 8.0;

/// A path.
#[derive(Clone, Debug)]
pub(super) struct Hypothesis {
    /// Its link, entered somewhere, with its rate scaled.
    link: Capacity,
    /// The rest, in the unit cube of [`Condition::at`].
    point: [f64; PARAMETERS],
    rivals: Vec<Rival>,
    luck: u64,
}

/// What a number of a state is in its unit.
fn quantity(state: &State, name: &str) -> f64 {
    feature_index(name).map_or(0.0, |i| FEATURES[i].scale.undo(state[i]))
}

/// A link with its rate multiplied.
fn scaled(link: &Capacity, by: f64) -> Capacity {
    match link.clone() {
        Capacity::Trace { trace, offset, opportunity } => {
            Capacity::Trace { trace, offset, opportunity: opportunity.mul_f64(by) }
        }
        Capacity::Constant(rate) => Capacity::Constant(rate.mul_f64(by)),
        other => other,
    }
}

/// The highest rate that a link has within a first period.
fn highest(link: &Capacity, period: Duration) -> Rate {
    let steps = (period.as_nanos() / MEASURED.as_nanos()).max(1);
    let at = |i: u64| Time::ZERO + MEASURED * i;
    let rates = (0..steps).map(|i| link.bytes_between(at(i), at(i + 1)) / MEASURED);
    rates.fold(Rate::default(), Rate::max)
}

/// A sample of the normal distribution.
fn normal(random: &mut Pcg64Mcg) -> f64 {
    let (one, other): (f64, f64) = (random.random(), random.random());
    libm::sqrt(-2.0 * libm::log(1.0 - one)) * libm::cos(core::f64::consts::TAU * other)
}

/// A number that went past an end of 0 to 1 comes back as far.
fn reflected(x: f64) -> f64 {
    let x = libm::fmod(x.abs(), 2.0);
    if x > 1.0 { 2.0 - x } else { x }
}

impl Hypothesis {
    /// A path of the course, with the round-trip time and about the rate that were seen.
    pub(super) fn drawn(prior: &Course, seen: &State, random: &mut Pcg64Mcg) -> Self {
        let rules = prior.rules();
        let link = Self::any_link(prior, random);
        let rate = quantity(seen, "thpt_max");
        let peak = highest(&link, rules.period).bits_per_sec();
        let link = if rate > 0.0 && peak > 0.0 {
            scaled(&link, rate / peak * libm::exp(RATE_SPREAD * normal(random)))
        } else {
            link
        };
        let mut point: [f64; PARAMETERS] = random.random();
        let rtt = quantity(seen, "rtt_path");
        if rtt > 0.0 {
            point[0] = Condition::rtt_position(Duration::from_secs_f64(rtt));
        }
        let length = rules.period * u64::from(rules.periods);
        let rivals = prior.rivals().draw(length, random);
        Self { link, point, rivals, luck: random.random() }
    }

    fn any_link(prior: &Course, random: &mut Pcg64Mcg) -> Capacity {
        let links = prior.links();
        let mut link = links[random.random_range(0..links.len())].capacity.clone();
        links::enter_anywhere(&mut link, random);
        link
    }

    /// The same path with the rate and the round-trip time as they must be, for its state `has` to be
    /// what was `seen`; `None` where they nearly are.
    pub(super) fn corrected(&self, seen: &State, has: &State) -> Option<Self> {
        let ratio = |name| {
            let (seen, has) = (quantity(seen, name), quantity(has, name));
            if seen > 0.0 && has > 0.0 { seen / has } else { 1.0 }
        };
        let (rate, rtt) = (ratio("thpt_max"), ratio("rtt_path"));
        if libm::log(rate).abs() < RATE_STEP && (rtt - 1.0).abs() < 0.02 {
            return None;
        }
        let link = scaled(&self.link, rate.clamp(1.0 / CORRECTION_MAX, CORRECTION_MAX));
        let mut point = self.point;
        let [position, ..] = &mut point;
        *position = Condition::rtt_position(self.condition().rtt.mul_f64(rtt));
        Some(Self { link, point, ..self.clone() })
    }

    /// A path that is a little different, with other luck.
    pub(super) fn nearby(&self, prior: &Course, random: &mut Pcg64Mcg) -> Self {
        let mut next = self.clone();
        for (x, step) in next.point.iter_mut().zip(STEPS) {
            *x = reflected(*x + step * normal(random));
        }
        if random.random::<f64>() < ANEW {
            let other = Self::any_link(prior, random);
            let ratio = self.link.mean_rate().ratio(other.mean_rate());
            next.link = scaled(&other, ratio);
        } else if random.random::<f64>() < ANEW {
            links::enter_anywhere(&mut next.link, random);
        }
        next.link = scaled(&next.link, libm::exp(RATE_STEP * normal(random)));
        if random.random::<f64>() < ANEW {
            let rules = prior.rules();
            next.rivals = prior.rivals().draw(rules.period * u64::from(rules.periods), random);
        }
        next.luck = random.random();
        next
    }

    /// The path but for its link and its rivals.
    pub(super) fn condition(&self) -> Condition {
        Condition::at(&self.point)
    }

    /// The connections over this path that ask for what was asked for.
    pub(super) fn draw(&self, asked: Asked, start: usize) -> Draw {
        Draw {
            link: self.link.clone(),
            condition: self.condition(),
            traffic: asked.traffic,
            flows: asked.flows,
            rivals: self.rivals.clone(),
            start,
            seed: asked.seed,
            luck: self.luck,
        }
    }
}
