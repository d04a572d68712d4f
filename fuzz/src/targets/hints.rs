//! Hints of applications: any bytes are a message that means the same when it is written and read
//! again, or an error with one line to show. What it tells can be scored by.

use trimtab_app_sdk::wire::Message;
use trimtab_qoe::{Factors, Model, OperatingPoint};
use trimtab_units::{Duration, Rate};

/// Decimal numbers are read to within two units in the last place.
fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 4.0 * f64::EPSILON * a.abs()
}

fn scores((model, factors): &(Option<Model>, Factors)) -> [f64; 2] {
    let usual = OperatingPoint {
        throughput: Rate::from_mbps(8.0),
        delay: Duration::from_millis(50),
        loss: 0.01,
    };
    [usual, OperatingPoint::default()]
        .map(|point| model.as_ref().map_or(0.0, |model| model.score(&point, factors)))
}

pub(crate) fn target(bytes: &[u8]) {
match Message::parse(bytes) {
    Ok(message) => {
        let written = serde_json::to_vec(&message).expect("a message can be written");
        let again = Message::parse(&written).expect("its own words");
        assert_eq!(
            (again.cookie, &again.model, again.answer),
            (message.cookie, &message.model, message.answer)
        );
        assert!(again.factors.keys().eq(message.factors.keys()));
        assert!(again.factors.values().zip(message.factors.values()).all(|(a, b)| near(*a, *b)));
        // The same numbers to the bit: a formula may amplify the last place.
        let same = Message { factors: message.factors.clone(), ..again };
        match (message.content(), same.content()) {
            (Ok(first), Ok(second)) => {
                assert!(first.1.iter().all(|(_, value)| value.is_finite()));
                let bits = |all: [f64; 2]| all.map(f64::to_bits);
                assert_eq!(bits(scores(&first)), bits(scores(&second)), "{message:?}");
            }
            (Err(first), Err(second)) => {
                assert_eq!(first, second);
                assert!(!first.contains('\n'), "{first}");
            }
            _ => panic!("{message:?} is read in two ways"),
        }
    }
    Err(error) => assert!(!error.contains('\n'), "{error}"),
}
}
