use std::net::IpAddr;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use trimtab_steer::customize::Outcome;

use super::*;
use crate::{Aggregate, Configuration, Control, Decision, Prefix, Sketch};

/// Intervals of a day of 20 minutes each.
const DAY: u64 = 72;
/// Clusters of a /24.
const CLUSTERS: usize = 16;

/// Clients of a /24 whose throughput goes up and down with the hour, by a factor of three. Some
/// clusters have better access than others, always; and each connection has its own chance.
struct World {
    random: Pcg64Mcg,
    /// Of each cluster, by what factor its connections are faster.
    factors: [f64; CLUSTERS],
    /// Connections of each cluster in an interval.
    connections: u64,
}

fn prefix() -> Prefix {
    "203.0.113.0/24".parse().unwrap()
}

fn client(cluster: usize) -> IpAddr {
    IpAddr::from([203, 0, 113, 16 * cluster as u8 + 5])
}

/// A standard normal number (Box and Muller 1958).
fn normal(random: &mut Pcg64Mcg) -> f64 {
    let (radius, turn): (f64, f64) = (random.random(), random.random());
    libm::sqrt(-2.0 * libm::log(1.0 - radius)) * libm::cos(std::f64::consts::TAU * turn)
}

impl World {
    /// Clusters differ by this deviation of logarithms.
    fn new(seed: u64, differ: f64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let factors = [(); CLUSTERS].map(|()| (differ * normal(&mut random)).exp());
        Self { random, factors, connections: 20 }
    }

    /// The mean throughput of an interval under the safe configuration, in Mbit/s.
    fn mean(&self, n: u64) -> f64 {
        let hour = std::f64::consts::TAU * n as f64 / DAY as f64;
        let spread = (0.5_f64 * 0.6 * 0.6).exp();
        let factor = self.factors.iter().sum::<f64>() / CLUSTERS as f64;
        10.0 * (1.0 + 0.5 * hour.sin()) * spread * factor
    }

    /// What connections see in an interval, by the arm of their cluster and then by that of the next
    /// interval; `gains` are by how much each arm is better than the safe configuration.
    fn seen(&mut self, n: u64, control: &Control, gains: [f64; 2]) -> [[Summary; 2]; 2] {
        let hour = std::f64::consts::TAU * n as f64 / DAY as f64;
        let mut values = [[(); 2]; 2].map(|arms| arms.map(|()| Vec::new()));
        for (cluster, factor) in self.factors.into_iter().enumerate() {
            let arm = |at| control.arm(&prefix(), client(cluster), Interval(at));
            let (now, next) = (arm(n), arm(n + 1));
            let mean = 10.0 * (1.0 + 0.5 * hour.sin()) * factor * (1.0 + gains[now]);
            for _ in 0..self.connections {
                values[now][next].push(mean * (0.6 * normal(&mut self.random)).exp());
            }
        }
        values.map(|arms| {
            arms.map(|values| {
                let mut summary = Summary::new(values.len() as u64);
                summary.set("throughput", Sketch::of(values)).unwrap();
                summary
            })
        })
    }
}

fn sum([one, other]: &[Summary; 2]) -> Summary {
    let mut both = one.clone();
    both.merge(other);
    both
}

fn service(seed: u64, share: Option<f64>) -> Service {
    let text = r#"
        name = "tv"
        reward = "mean(throughput)"
        incumbent = "cubic"
        others = ["bbr"]
        connections_min = 20
        [contexts]
        bands = [0]
        weekend = false
        [knobs]
        gamma = { min = 10, max = 5000, scale = "log" }
    "#;
    Service::parse(text).unwrap().with_seed(seed).with_side_by_side(share)
}

fn control(share: f64, seed: u64) -> Control {
    Control { version: 1, algorithm: "cubic".to_owned(), knobs: Vec::new(), share, seed }
}

/// What pairs of a run of three days show: errors of the difference without and with what is known
/// of before, each by the level of its hour, and whether the interval of 95% holds the truth.
fn errors(seed: u64, differ: f64, gain: f64) -> Vec<(f64, f64, bool)> {
    let service = service(seed, Some(0.5));
    let (mut world, control) = (World::new(seed, differ), control(0.5, seed));
    let (mut pairs, mut spread) = (Pairs::default(), Spread::default());
    let mut course = Vec::new();
    for n in 0..3 * DAY {
        let seen = world.seen(n, &control, [gain, 0.0]);
        let arms = [sum(&seen[TREATMENT]), sum(&seen[CONTROL])];
        let [ours, theirs] = &seen;
        let next = [
            sum(&[ours[0].clone(), theirs[0].clone()]),
            sum(&[ours[1].clone(), theirs[1].clone()]),
        ];
        spread.take(service.reward(), &sum(&arms));
        let pair = pairs.compare(&service, Interval(n), &arms, &spread);
        pairs.look_ahead(&service, Interval(n), Some(&next), &spread);
        // Chance may leave an arm with too few clusters.
        let Some(pair) = pair else { continue };
        let (level, truth) = (world.mean(n), gain * world.mean(n));
        let off = pair.difference - truth;
        let plain = off + pair.theta * pair.covariate.unwrap_or(0.0);
        course.push((plain / level, off / level, off.abs() <= 1.96 * pair.error.unwrap()));
    }
    // The first day is what moments and the placebo are gathered from.
    course.split_off(DAY as usize)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

/// Of 20 seeds: bias of a difference, its deviation without and with CUPED, the share of all
/// intervals that hold the truth, and in how many seeds the last one does.
fn shown(differ: f64, gain: f64) -> (f64, f64, f64, f64, usize) {
    let all: Vec<Vec<(f64, f64, bool)>> = (11..31).map(|seed| errors(seed, differ, gain)).collect();
    let each = || all.iter().flatten();
    let bias = mean(each().map(|of| of.1));
    let plain = mean(each().map(|of| of.0 * of.0)).sqrt();
    let adjusted = mean(each().map(|of| of.1 * of.1)).sqrt();
    let held = mean(each().map(|of| f64::from(u8::from(of.2))));
    let last = all.iter().filter(|course| course.last().unwrap().2).count();
    println!(
        "clusters differ by {differ}, true gain {gain}: bias {:.2}% of the level, deviation {:.1}% \
         and with CUPED {:.1}%; {:.1}% of the intervals hold the truth, the last one in {last} of 20 \
         seeds",
        100.0 * bias,
        100.0 * plain,
        100.0 * adjusted,
        100.0 * held
    );
    (bias, plain, adjusted, held, last)
}

/// With 144 intervals of each of 20 seeds a mean is off by a 54th of the deviation.
#[test]
fn what_clusters_showed_before_makes_differences_sharper_and_adds_no_bias() {
    for gain in [0.0, 0.05, 0.5] {
        let (bias, plain, adjusted, held, last) = shown(0.4, gain);
        assert!(bias.abs() < 4.0 * adjusted / 54.0, "{bias} {adjusted}");
        assert!(adjusted < 0.7 * plain, "{adjusted} {plain}");
        assert!(held > 0.92 && last >= 18, "{held} {last}");
    }
}

/// Where all clusters are alike, what they showed before is noise.
#[test]
fn a_covariate_that_says_nothing_does_no_harm() {
    for gain in [0.0, 0.05] {
        let (bias, plain, adjusted, held, last) = shown(0.0, gain);
        assert!(bias.abs() < 4.0 * adjusted / 54.0, "{bias} {adjusted}");
        assert!(adjusted < 1.01 * plain, "{adjusted} {plain}");
        assert!(held > 0.92 && last >= 18, "{held} {last}");
    }
}

/// Where the covariate of an interval is not known, e.g. after one without a control, the
/// difference stands as it is.
#[test]
fn the_covariate_of_another_interval_is_none() {
    let service = service(1, Some(0.5));
    let (mut world, control) = (World::new(1, 0.4), control(0.5, 1));
    let (mut pairs, spread) = (Pairs::default(), Spread::default());
    let seen = world.seen(5, &control, [0.0, 0.0]);
    pairs.look_ahead(&service, Interval(5), Some(&seen[0]), &spread);
    let of =
        |pairs: &mut Pairs, n| pairs.compare(&service, Interval(n), &seen[0], &spread).unwrap();
    let pair = of(&mut pairs.clone(), 7);
    assert_eq!((pair.covariate, pair.theta, pair.error), (None, 0.0, None));
    assert!(of(&mut pairs, 6).covariate.is_some());
}

/// A fleet's aggregate in the world: what was decided, and by how much the expected reward of each
/// interval was above the incumbent's, both arms together.
fn run(seed: u64, gain: f64, share: Option<f64>, days: u64) -> Vec<(Decision, f64)> {
    let service = service(seed, share);
    let mut aggregate = Aggregate::new("tv/203.0.113.0/24".parse().unwrap());
    let mut world = World::new(seed, 0.4);
    let gain_of = |algorithm: &str| match algorithm {
        "cubic" => 0.0,
        "bbr" => gain,
        _ => -0.1,
    };
    let mut course = Vec::new();
    for n in 0..days * DAY {
        let configuration = aggregate.open(&service, Interval(n));
        let Configuration { algorithm, control: side, .. } = &configuration;
        assert_eq!(side.as_ref().map(|c| c.version), aggregate.control_in(Interval(n)));
        let drawn = side.clone().unwrap_or_else(|| control(0.5, seed));
        let gains = [gain_of(algorithm), if side.is_some() { 0.0 } else { gain_of(algorithm) }];
        let seen = world.seen(n, &drawn, gains);
        let arms = [sum(&seen[TREATMENT]), sum(&seen[CONTROL])];
        let whole = sum(&arms);
        let [ours, theirs] = &seen;
        let next = [0, 1].map(|arm| sum(&[ours[arm].clone(), theirs[arm].clone()]));
        let observed = match side {
            Some(_) => Observed { summary: &arms[0], arms: Some(&arms), next: Some(&next) },
            None => (&whole).into(),
        };
        let decision = aggregate.close(&service, Interval(n), observed).unwrap();
        let above = gain_of(algorithm) * side.as_ref().map_or(1.0, |c| 1.0 - c.share);
        course.push((decision, above));
    }
    course
}

/// The trials after which bbr and cubic differ by three standard errors: of the mean of paired
/// differences, or of that of rewards of the one and of the other.
fn told(course: &[(Decision, f64)], is_paired: bool) -> Option<(usize, f64)> {
    let (mut ours, mut theirs): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    let variance = |all: &[f64]| {
        let centre = mean(all.iter().copied());
        all.iter().map(|v| (v - centre).powi(2)).sum::<f64>()
            / (all.len() as f64 - 1.0)
            / all.len() as f64
    };
    for (n, (decision, _)) in course.iter().enumerate() {
        let tried = &decision.algorithms.as_ref().unwrap().tried;
        match (&decision.side_by_side, tried.as_str()) {
            (Some(pair), "bbr") => ours.push(pair.difference),
            (None, "bbr") if !is_paired => ours.push(decision.reward.unwrap()),
            (None, "cubic") if !is_paired => theirs.push(decision.reward.unwrap()),
            _ => continue,
        }
        if ours.len() < 6 || (!is_paired && theirs.len() < 6) {
            continue;
        }
        let (other, error) = match is_paired {
            true => (0.0, variance(&ours).sqrt()),
            false => (mean(theirs.iter().copied()), (variance(&ours) + variance(&theirs)).sqrt()),
        };
        let z = (mean(ours.iter().copied()) - other) / error;
        if z.abs() > 3.0 {
            return Some((n + 1, z));
        }
    }
    None
}

/// How the learner fares in some runs of a week.
struct Fared {
    /// Runs in which bbr and cubic come to differ, and those with the right sign of them.
    told: usize,
    right: usize,
    /// Mean gain over the incumbent in the first three days, and after them.
    first: f64,
    later: f64,
}

/// Others than those that were looked at while the learner was mended, 11 to 26.
const SEEDS: std::ops::Range<u64> = 31..43;

fn fare(gain: f64, share: Option<f64>) -> Fared {
    let courses: Vec<_> = SEEDS.map(|seed| run(seed, gain, share, 7)).collect();
    let found: Vec<(usize, f64)> =
        courses.iter().filter_map(|course| told(course, share.is_some())).collect();
    let mut trials: Vec<usize> = found.iter().map(|of| of.0).collect();
    trials.sort_unstable();
    let right = found.iter().filter(|of| of.1 * gain > 0.0).count();
    let is_alarm = |of: &&(Decision, f64)| {
        of.0.lesson.anew || matches!(of.0.lesson.outcome, Outcome::FellBack { .. })
    };
    let alarms = courses.iter().flatten().filter(is_alarm).count();
    let (early, late) =
        (3 * DAY as usize, courses.iter().map(|course| &course[3 * DAY as usize..]));
    let first = mean(courses.iter().flat_map(|course| &course[..early]).map(|of| of.1));
    let later = mean(late.flatten().map(|of| of.1));
    let (told, runs) = (found.len(), courses.len());
    println!(
        "side by side {share:?}, true gain {gain}: told in {told} of {runs} runs, after {:?} \
         intervals in the median, {right} times with its sign; {alarms} alarms; vs. the incumbent \
         {:+.2}% in the first three days, {:+.2}% after them",
        trials.get(trials.len() / 2),
        100.0 * first,
        100.0 * later
    );
    Fared { told, right, first, later }
}

/// A week of one context with a load that goes up and down by a factor of three each day. Another
/// algorithm is as good as the incumbent, or 5% better.
#[test]
fn arms_side_by_side_tell_a_small_gain_in_spite_of_the_hour() {
    let [with, without] = [Some(0.25), None].map(|share| [0.0, 0.05].map(|gain| fare(gain, share)));
    let [alike, better] = with;
    assert!(alike.told <= 2, "false alarms: {}", alike.told);
    assert!(better.told >= 10 && better.right == better.told, "{} {}", better.told, better.right);
    // By the hours alone they differ, whatever they are.
    assert!(without[0].told >= 6, "{}", without[0].told);
    assert!(better.later > without[1].later, "{} {}", better.later, without[1].later);
    assert!(better.first > without[1].first, "{} {}", better.first, without[1].first);
}
