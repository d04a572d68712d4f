//! Antelope's models: any bytes are some that decide, or an error with one line to show.

use trimtab_steer::select::antelope::{Boosted, FEATURES_LEN};

pub(crate) fn target(bytes: &[u8]) {
match Boosted::parse(bytes) {
    Ok(models) => {
        for x in [0.0, 0.5, 1.0, -1.0, f32::MAX, f32::INFINITY, f32::NAN] {
            let inputs = [x; FEATURES_LEN];
            if let Ok(choice) = models.decide(&inputs) {
                let rewards = models.rewards(&inputs).expect("it has decided");
                assert!(rewards[..models.candidates().len()].iter().all(|r| *r <= rewards[choice]));
            }
        }
        assert!(models.first() < models.candidates().len() && !models.period().is_zero());
    }
    Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
}
}
