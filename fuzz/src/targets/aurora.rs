//! Aurora's networks: any bytes are one that gives a change, or an error with one line to show.

use trimtab_cc::aurora::{Network, VALUES};
use trimtab_steer::rival::AuroraMlp;

pub(crate) fn target(bytes: &[u8]) {
    match AuroraMlp::parse(bytes) {
        Ok(network) => {
            for x in [0.0, 1.0, -3.5, 1000.0] {
                assert!(network.change(&[x; VALUES]).is_finite());
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
}
