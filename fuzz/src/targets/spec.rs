//! `--cc`: any text is an algorithm that can be built, or an error with one line to show.

use trimtab_cc::{Config, CongestionControl, Spec};

pub(crate) fn target(text: &str) {
    match text.parse::<Spec>() {
        Ok(spec) => {
            let config = Config::default();
            let cca = spec.build(&config);
            // A knob of this name (Copa's) overrides the transport's initial window; the later setting holds.
            let set = spec.settings().iter().rev().find(|(name, _)| *name == "initial_window");
            let window = set
                .map_or(config.initial_window.as_f64(), |&(_, n)| n * config.mss.as_f64())
                .max(config.min_window.as_f64());
            assert!((cca.window().as_f64() - window).abs() <= 1.0, "{text:?}: {:?}", cca.window());
            for &(name, value) in spec.settings() {
                let knob = spec.algorithm().knobs.iter().find(|knob| knob.name == name);
                assert!(knob.is_some_and(|knob| knob.check(value).is_ok()), "{text:?}");
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{text:?}"),
    }
}
