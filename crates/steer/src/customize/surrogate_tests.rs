//! What the model of the reward makes of one's own trials and of what others found.

use super::*;

/// Trials at these places of one knob.
fn memory(trials: &[(f64, f64)]) -> Memory {
    let mut memory = Memory::default();
    trials.iter().for_each(|(at, reward)| memory.add(&[*at], *reward, 1.0, 64));
    memory
}

/// `times` trials at each of two places, whose rewards are one below and one above 5.
fn two_places(times: usize) -> Memory {
    memory(&[(0.2, 4.0), (0.8, 6.0)].repeat(times))
}

fn seen<'a>(own: &'a Memory, before: &'a Memory) -> Seen<'a> {
    Seen { own, before, others: Vec::new(), fleet: &[], choice: false }
}

fn fit(own: &Memory) -> Surrogate {
    Surrogate::fit(&seen(own, &Memory::default()), &Shape::new(1)).unwrap()
}

/// A finding of other aggregates, of so many trials.
fn finding(at: f64, advantage: f64, trials: u32) -> Cell {
    let mut memory = Memory::default();
    (0..trials).for_each(|_| memory.add(&[at], advantage, 1.0, 1));
    memory.cells()[0].clone()
}

#[test]
fn of_nothing_known_there_is_no_model() {
    let nothing = Memory::default();
    assert!(Surrogate::fit(&seen(&nothing, &nothing), &Shape::new(1)).is_none());
}

#[test]
fn the_more_trials_the_nearer_to_their_mean_and_the_surer() {
    let [few, many] = [3, 40].map(|times| fit(&two_places(times)).expected(&[0.8]));
    assert!((many.mean - 6.0).abs() < (few.mean - 6.0).abs(), "{few:?} {many:?}");
    assert!((many.mean - 6.0).abs() < 0.05 && many.error < 0.5 * few.error, "{few:?} {many:?}");
}

#[test]
fn far_from_all_trials_it_is_unsure() {
    let own = memory(&[(0.1, 4.0), (0.1, 4.2), (0.2, 6.0), (0.2, 5.8)].repeat(5));
    let model = fit(&own);
    let errors = [0.15, 0.4, 1.0].map(|at| model.expected(&[at]).error);
    assert!(errors.is_sorted() && errors[2] > 3.0 * errors[0], "{errors:?}");
}

#[test]
fn the_quick_mean_is_the_mean() {
    let model = fit(&two_places(5));
    for at in [0.0, 0.2, 0.5, 0.77, 1.0] {
        assert!((model.mean_at(&[at]) - model.expected(&[at]).mean).abs() < 1e-9, "{at}");
    }
}

/// Rewards of another unit and level are the same rewards.
#[test]
fn it_reckons_in_deviations_of_the_rewards() {
    let trials = [(0.2, 4.0), (0.5, 4.5), (0.8, 6.0)].repeat(4);
    let scaled: Vec<_> = trials.iter().map(|(at, r)| (*at, 100.0 + 8.0 * r)).collect();
    let (model, other) = (fit(&memory(&trials)), fit(&memory(&scaled)));
    let (expected, of_other) = (model.expected(&[0.6]), other.expected(&[0.6]));
    assert!((100.0 + 8.0 * expected.mean - of_other.mean).abs() < 1e-3);
    assert!((8.0 * expected.error - of_other.error).abs() < 1e-3);
    assert!((8.0 * model.noise() - other.noise()).abs() < 1e-3);
    assert!((model.deviations(1.0) - other.deviations(8.0)).abs() < 1e-3);
}

/// Covariance times weights is what was seen: the factor and both ways of solving are right.
#[test]
fn the_weights_solve_the_covariance() {
    let own = memory(&[(0.1, 1.0), (0.4, 3.0), (0.5, 2.5), (0.9, 7.0), (0.4, 3.5)]);
    let (before, other) = (two_places(2), two_places(3));
    let fleet = [finding(0.3, 1.5, 5), finding(0.7, -0.5, 2)];
    let others = vec![&other];
    let seen = Seen { own: &own, before: &before, others, fleet: &fleet, choice: false };
    let model = Surrogate::fit(&seen, &Shape::new(1)).unwrap();
    assert_eq!(model.rows.len(), 5 + 4 + 6 + 2, "a row for each cell");
    for (i, row) in model.rows.iter().enumerate() {
        let covariance = |(j, other): (usize, &Row)| {
            let own = if i == j { row.noise } else { 0.0 };
            model.covariance(row.at(), row.group, other) + own
        };
        let parts = model.rows.iter().enumerate().map(covariance).zip(&model.weights);
        let value: f64 = parts.map(|(covariance, weight)| covariance * weight).sum();
        assert!((value - row.value).abs() < 1e-5, "row {i}: {value} {}", row.value);
    }
}

/// The normal distribution's, for two cells and the noise within them, up to a constant.
#[test]
fn the_evidence_is_that_of_the_normal_distribution() {
    let by_hand = |own: &Memory| {
        let model = fit(own);
        let [a, b] = &model.rows[..] else { panic!("two cells") };
        let common = model.covariance(a.at(), a.group, b);
        let [aa, bb] = [a, b].map(|r| model.covariance(r.at(), r.group, r) + r.noise);
        let determinant = aa * bb - common * common;
        let (x, y) = (a.value, b.value);
        let fit = (bb * x * x - 2.0 * common * x * y + aa * y * y) / determinant;
        let between = -0.5 * (fit + libm::log(determinant));
        let repeated = own.weight() - 2.0;
        let within = own.within() / model.deviation.powi(2);
        let repeats = -0.5 * (within / model.noise + repeated * libm::log(model.noise));
        (model.evidence(own), between + repeats)
    };
    // Four trials in two cells, and two.
    let mut four = Memory::default();
    let trials = [(0.2, 4.0), (0.2, 4.4), (0.8, 6.0), (0.8, 6.3)];
    trials.iter().for_each(|(at, reward)| four.add(&[*at], *reward, 1.0, 2));
    assert!(four.within() > 0.0);
    for own in [four, memory(&[(0.2, 4.0), (0.8, 6.0)])] {
        let (got, expected) = by_hand(&own);
        assert!((got - expected).abs() < 1e-5, "{got} {expected}");
    }
}

/// Matérn's covariance with ν = 5/2 at the distance of one length is 0.524.
#[test]
fn rewards_are_related_by_how_near_they_are() {
    assert_eq!(related(&[0.3, 0.4], &[0.3, 0.4], &[2.0, 3.0]), 1.0);
    assert!((related(&[0.0], &[1.0], &[1.0]) - 0.523_994).abs() < 1e-6);
    assert!((related(&[0.75], &[0.25], &[2.0]) - 0.523_994).abs() < 1e-6);
    // Both knobs count, 3/5 and 4/5 of a length.
    assert!((related(&[0.3, 0.9], &[0.0, 0.1], &[2.0, 1.0]) - 0.523_994).abs() < 1e-6);
    assert!(related(&[0.0], &[1.0], &[10.0]) < 1e-6);
}

#[test]
fn who_is_more_akin_tells_more() {
    let own = memory(&[(0.2, 1.0), (0.8, 1.0), (0.2, 1.2), (0.8, 1.2)]);
    // All found that 0.5 is good.
    let found = memory(&[(0.2, 4.0), (0.5, 6.0), (0.8, 4.0)].repeat(8));
    let fleet = [finding(0.2, -1.0, 64), finding(0.5, 1.0, 64), finding(0.8, -1.0, 64)];
    let nothing = Memory::default();
    let gain = |before: &Memory, others: Vec<&Memory>, fleet: &[Cell]| {
        let seen = Seen { own: &own, before, others, fleet, choice: false };
        let model = Surrogate::fit(&seen, &Shape::new(1)).unwrap();
        model.deviations(model.mean_at(&[0.5]) - model.mean_at(&[0.2]))
    };
    let alone = gain(&nothing, Vec::new(), &[]);
    let of_context = gain(&nothing, vec![&found], &[]);
    let of_before = gain(&found, Vec::new(), &[]);
    let of_fleet = gain(&nothing, Vec::new(), &fleet);
    assert!(of_context > of_before && of_context > of_fleet, "{of_context} {of_before} {of_fleet}");
    assert!(of_before > alone + 0.1 && of_fleet > alone + 0.1, "{of_before} {of_fleet} {alone}");
}

/// Trials of one other aggregate are much alike, so eight of them count as one.
#[test]
fn a_finding_counts_as_an_eighth_of_its_trials() {
    let (own, nothing) = (memory(&[(0.2, 4.0), (0.8, 6.0)]), Memory::default());
    let fleet = [finding(0.5, 1.0, 8), finding(0.6, 1.0, 1)];
    let seen = Seen { fleet: &fleet, ..seen(&own, &nothing) };
    let model = Surrogate::fit(&seen, &Shape::new(1)).unwrap();
    let noise = |at: f64| model.rows.iter().find(|row| row.knobs == [at]).unwrap().noise;
    assert!((noise(0.5) / noise(0.2) - 1.0).abs() < 1e-6);
    assert!((noise(0.6) / noise(0.2) - 8.0).abs() < 1e-6);
}

/// An aggregate that is wholly apart goes by itself, and one that knows itself goes by others less.
#[test]
fn what_others_found_counts_less_where_one_is_apart_or_knows_oneself() {
    let fleet = [finding(0.2, -1.0, 64), finding(0.5, 3.0, 64), finding(0.8, -1.0, 64)];
    let nothing = Memory::default();
    let gain = |own: &Memory, fleet: &[Cell], apart: u8| {
        let seen = Seen { own, before: &nothing, others: Vec::new(), fleet, choice: false };
        let model = Surrogate::fit(&seen, &Shape { apart, ..Shape::new(1) }).unwrap();
        model.mean_at(&[0.5]) - model.mean_at(&[0.2])
    };
    let own = two_places(3);
    let gains: Vec<f64> = (0..=APART).map(|apart| gain(&own, &fleet, apart)).collect();
    assert!(gains.is_sorted_by(|a, b| a > b), "{gains:?}");
    assert!((gains[usize::from(APART)] - gain(&own, &[], 0)).abs() < 1e-6, "{gains:?}");
    let share = |times: usize| {
        let own = two_places(times);
        Surrogate::fit(&Seen { fleet: &fleet, ..seen(&own, &nothing) }, &Shape::new(1))
            .map(|model| model.fleet / FLEET)
    };
    // Thirty trials halve it, ninety halve it again.
    assert!((share(15).unwrap() - 0.5).abs() < 1e-6 && (share(45).unwrap() - 0.25).abs() < 1e-6);
}

/// The cells of others that stand for most trials are read, and no more than there is time for.
#[test]
fn the_heaviest_cells_of_others_are_read() {
    let (own, nothing) = (two_places(2), Memory::default());
    let mut other = Memory::default();
    for i in 0..24_u32 {
        // The later, the more trials.
        let mut cell = Memory::default();
        (0..=i).for_each(|_| cell.add(&[f64::from(i) / 24.0], 1.0, 1.0, 1));
        (0..=i).for_each(|_| other.add(&[f64::from(i) / 24.0], f64::from(i), 1.0, 64));
    }
    let seen = Seen { others: vec![&other], ..seen(&own, &nothing) };
    let model = Surrogate::fit(&seen, &Shape::new(1)).unwrap();
    let others = model.rows.iter().filter(|r| r.group == Group::Context(1));
    assert_eq!(others.count(), OTHERS_MAX);
}

/// With one trial or two there is no deviation, so that of others is taken, or a tenth of the mean.
#[test]
fn a_few_trials_borrow_their_deviation() {
    let (few, nothing) = (memory(&[(0.5, 10.0)]), Memory::default());
    let deviation = |own: &Memory, others: Vec<&Memory>| {
        let seen = Seen { others, ..seen(own, &nothing) };
        Surrogate::fit(&seen, &Shape::new(1)).unwrap().deviation
    };
    let wild = memory(&[(0.2, 0.0), (0.8, 10.0)].repeat(4));
    assert!((deviation(&few, Vec::new()) - 1.0).abs() < 1e-6);
    assert!((deviation(&few, vec![&wild]) - 5.0).abs() < 1e-6);
    assert!((deviation(&two_places(2), vec![&wild]) - 1.0).abs() < 1e-6, "four have their own");
    assert!((deviation(&memory(&[(0.5, 10.0); 4]), Vec::new()) - 0.01).abs() < 1e-6);
}

/// Rewards of a sawtooth of three periods, and of a straight line, with little noise.
fn rewards(of: fn(f64) -> f64) -> Memory {
    let trials: Vec<_> = (0..40).map(|i| f64::from(i * 17 % 41) / 40.0).collect();
    let noise = |at: f64| 0.02 * ((at * 7919.0).sin());
    memory(&trials.into_iter().map(|at| (at, of(at) + noise(at))).collect::<Vec<_>>())
}

#[test]
fn the_shape_becomes_likelier_and_fits_the_rewards() {
    let nothing = Memory::default();
    let learnt = |own: &Memory| {
        let (seen, mut shape) = (seen(own, &nothing), Shape::new(1));
        let mut likely = f64::NEG_INFINITY;
        for turn in 0..40 {
            shape.improve(&seen);
            let now = shape.evidence(&seen) + shape.plausibility();
            assert!(now > likely - 1e-6, "{turn}: {likely} to {now}");
            likely = now;
        }
        shape
    };
    let rough = learnt(&rewards(|at| (18.0 * at).sin()));
    let smooth = learnt(&rewards(|at| at));
    assert!(rough.lengths[0] < smooth.lengths[0], "{rough:?} {smooth:?}");
    // Hardly anything of either is noise.
    assert!(rough.noise < Shape::new(1).noise && smooth.noise < Shape::new(1).noise);
    let noisy = learnt(&memory(&[(0.3, -1.0), (0.3, 1.0), (0.6, 1.0), (0.6, -1.0)].repeat(10)));
    assert!(noisy.noise > smooth.noise, "{noisy:?} {smooth:?}");
}

#[test]
fn an_aggregate_that_contradicts_the_others_is_apart() {
    let nothing = Memory::default();
    let own = rewards(|at| at);
    let apart = |sign: f64| {
        let fleet: Vec<Cell> = (0..8)
            .map(|i| finding(f64::from(i) / 8.0, sign * (f64::from(i) / 2.0 - 2.0), 64))
            .collect();
        let mut shape = Shape::new(1);
        for _ in 0..12 {
            shape.improve(&Seen { fleet: &fleet, ..seen(&own, &nothing) });
        }
        shape.apart
    };
    assert!(apart(-1.0) > apart(1.0), "{} {}", apart(-1.0), apart(1.0));
    let mut alone = Shape::new(1);
    (0..12).for_each(|_| alone.improve(&seen(&own, &nothing)));
    assert_eq!(alone.apart, 0);
}

#[test]
fn what_is_usual_is_most_plausible() {
    let usual = Shape::new(2);
    for which in 0..4 {
        for by in [-8, 8] {
            let mut odd = usual.clone();
            *odd.at(which) += by;
            assert!(odd.plausibility() < usual.plausibility() - 0.3, "{which} {by}: {odd:?}");
        }
    }
}

#[test]
fn of_equally_likely_values_the_first_is_taken() {
    let mut shape = Shape::new(1);
    let mut take = |values: [u8; 3], likely: fn(u8) -> f64| {
        shape.likeliest(values, |shape, value| shape.apart = value, |shape| likely(shape.apart));
        shape.apart
    };
    assert_eq!(take([2, 0, 4], |_| -7.0), 2);
    assert_eq!(take([2, 0, 4], f64::from), 4);
    assert_eq!(take([2, 0, 4], |value| -f64::from(value)), 0);
}
