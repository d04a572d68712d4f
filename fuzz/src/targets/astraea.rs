//! Astraea's networks: any bytes are one that gives an action, or an error with one line to show.

use trimtab_cc::actor::Actor;
use trimtab_cc::astraea::VALUES;
use trimtab_steer::rival::LeakyMlp;

pub(crate) fn target(bytes: &[u8]) {
    match LeakyMlp::astraea(bytes) {
        Ok(network) => {
            for x in [0.0, 1.0, -3.5, 1000.0] {
                let action = network.act(&[x; VALUES]);
                assert!(action.is_nan() || action.abs() <= 1.0, "{action}");
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
}
