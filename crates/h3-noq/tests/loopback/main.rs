//! HTTP/3 over real sockets: the adapter's streams, and what the examples consist of.

mod adapter;
#[path = "../../examples/client"]
mod client {
    use crate::common::Failure;

    pub(crate) mod fetch;
    pub(crate) mod session;
    pub(crate) mod trust;
}
#[path = "../../examples/common/mod.rs"]
#[expect(dead_code, reason = "the programs use the rest")]
mod common;
mod faults;
#[path = "../../examples/file_server"]
mod file_server {
    use crate::common::{self, Failure};

    mod answer;
    mod kinds;
    mod range;
    pub(crate) mod site;
}
mod files;
mod forwarding;
#[path = "../../examples/proxy"]
mod proxy {
    use crate::common::{self, Failure};

    mod body;
    pub(crate) mod forward;
    mod headers;
}
mod support;
