//! Logs of mm-link: any bytes are a log in the order of its times, or an error with one line to show.

use trimtab_net::mahimahi_log::Log;

pub(crate) fn target(text: &[u8]) {
    if let Err(error) = Log::parse(text) {
        assert!(!error.to_string().contains('\n'));
    }
}
