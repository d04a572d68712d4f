//! Runs of a comparison over WebRTC: calls by the interceptors of `rtc-interceptor`, with congestion
//! control of `trimtab-rtc`.
//!
//! [`Virtual`] has the encoder, the receiver and the link of the simulator, and between them the
//! interceptors. No socket is opened and no clock is read: the same job gives the same record, always.
//!
//! With the feature `browser`, `Browsers` carries calls from a live encoder to Chromium behind an
//! emulated link, in real time. The viewer's frames are those that the browser presented, and VMAF is
//! measured on them. The feature compiles `rtc`, whose TLS has ring, and openh264, which is C++.
//!
//! What to read first: `virtual_world.rs`, then `live/mod.rs`.
#![deny(missing_docs)]

mod admission;
mod error;
#[cfg(feature = "browser")]
mod live;
mod rates;
mod virtual_time;
mod virtual_world;

pub use error::WebrtcError;
#[cfg(feature = "browser")]
pub use live::{
    Browsers, CLOCK_RATE, Called, Clip, Encoded, Encoder, Listener, Live, Peer, Requests, Scene,
    Size, Stats, Studio, call,
};
pub use virtual_time::Virtual;
