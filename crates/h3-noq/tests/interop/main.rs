//! HTTP/3 with clients that others wrote, each behind an emulated link and under `mortise`: Chromium
//! with pages and video, aioquic, libcurl with ngtcp2, and ngtcp2's own client.
//!
//! Skipped, with the reason, where a client or the rights are missing; CI has to have them.

#[path = "../../../engine/tests/common/browser.rs"]
#[expect(dead_code, reason = "the dashboard's tests use the rest")]
mod browser;
mod clients;
#[path = "../../examples/common/mod.rs"]
#[expect(dead_code, reason = "the programs use the rest")]
mod common;
#[path = "../../examples/file_server"]
mod file_server {
    use crate::common::{self, Failure};

    mod answer;
    mod kinds;
    mod range;
    pub(crate) mod site;
}
mod page;
mod room;
mod video;
#[path = "../../../agent/tests/agent/webm.rs"]
mod webm;
