//! Indigo's networks: any bytes are one that decides in every state, or an error with one line to show.

use std::sync::Arc;

use trimtab_cc::indigo::{Action, VALUES};
use trimtab_steer::rival::IndigoLstm;

pub(crate) fn target(bytes: &[u8]) {
    match IndigoLstm::parse(bytes) {
        Ok(lstm) => {
            let mut network = Arc::new(lstm).network();
            for x in [0.0, 1.0, 5000.0, f64::MAX, f64::NAN] {
                let action = network.decide(&[x; VALUES]);
                assert!(Action::ALL.contains(&action));
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
}
