//! `--cc`: any text is an algorithm that can be built, or an error with one line to show.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trimtab_cc::{Config, CongestionControl, Spec};

fuzz_target!(|text: &str| {
    match text.parse::<Spec>() {
        Ok(spec) => {
            let config = Config::default();
            let cca = spec.build(&config);
            assert_eq!(cca.window(), config.initial_window, "{text:?}");
            for &(name, value) in spec.settings() {
                let knob = spec.algorithm().knobs.iter().find(|knob| knob.name == name);
                assert!(knob.is_some_and(|knob| knob.check(value).is_ok()), "{text:?}");
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{text:?}"),
    }
});
