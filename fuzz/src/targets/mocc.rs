//! MOCC's networks: any bytes are one that gives a change, or an error with one line to show.

use trimtab_cc::aurora::VALUES;
use trimtab_cc::aurora::mocc::Chooser;
use trimtab_steer::rival::MoccMlp;

pub(crate) fn target(bytes: &[u8]) {
    match MoccMlp::parse(bytes) {
        Ok(network) => {
            for x in [0.0, 1.0, -3.5, 1000.0] {
                assert!(network.change(&[x; VALUES], &[0.8, 0.1, 0.1]).is_finite());
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
}
