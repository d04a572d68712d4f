//! QoE formulas: any text is a model whose hints a controller can use anywhere, or an error with a place.

use trimtab_qoe::{Factors, Formula, Hints, OperatingPoint, Samples};
use trimtab_units::{Duration, Rate};

fn check(hints: Option<Hints>, text: &str) {
    let Some(Hints { lambda, beta }) = hints else { return };
    assert!((0.0..=Hints::MAX).contains(&lambda), "{text:?}: {lambda}");
    assert!((0.0..=Hints::MAX).contains(&beta), "{text:?}: {beta}");
}

pub(crate) fn target(text: &str) {
    let mut factors = Factors::new();
    factors.set_named("mine", 2.0).expect("a good name");
    match Formula::parse(text, &["mine"]) {
        Ok(formula) => {
            let usual = OperatingPoint {
                throughput: Rate::from_mbps(8.0),
                delay: Duration::from_millis(50),
                loss: 0.01,
            };
            let mut spread = Samples::default();
            for (mbps, ms, loss) in [(4.0, 20, 0.0), (8.0, 300, 0.1)] {
                spread.add_throughput(Rate::from_mbps(mbps));
                spread.add_delay(Duration::from_millis(ms), 1);
                spread.add_loss(loss);
            }
            for point in [usual, OperatingPoint::default()] {
                for samples in [&Samples::default(), &spread] {
                    check(formula.gradient_over(&point, samples, &factors).hints(), text);
                }
            }
        }
        Err(error) => {
            let column = error.column().expect("the problem is in the text");
            assert!((1..=text.chars().count() + 1).contains(&column), "{text:?}: {error}");
            let message = error.to_string();
            assert!(!message.contains('\n'), "{text:?}: {message}");
            // What our checks let through, the library must take.
            assert!(!message.contains(": the parser refuses it: "), "{text:?}: {message}");
        }
    }
}
