//! Models of learnt policies: any bytes are one that decides, or an error with one line to show.

use trimtab_steer::select::{FEATURES_LEN, Model};

pub(crate) fn target(bytes: &[u8]) {
match Model::parse(bytes) {
    Ok(model) => {
        for x in [0.0, 1.0, -1.0, f32::MAX, f32::INFINITY, f32::NAN] {
            let state = [x; FEATURES_LEN];
            if let Ok(choice) = model.decide(&state, None) {
                let logits = model.logits(&state, None).expect("it has decided");
                assert!(logits[..model.candidates().len()].iter().all(|l| *l <= logits[choice]));
            }
        }
        assert!(model.first() < model.candidates().len() && !model.period().is_zero());
    }
    Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
}
}
