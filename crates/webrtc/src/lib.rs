//! Runs of a comparison over WebRTC: calls by the interceptors of `rtc-interceptor`, with congestion
//! control of `trimtab-rtc`.
//!
//! With the feature `browser`, [`Browsers`] carries calls from a live encoder to Chromium behind an
//! emulated link, in real time. The viewer's frames are those that the browser presented, and VMAF is
//! measured on them. The feature compiles `rtc`, whose TLS has ring, and openh264, which is C++.
//!
//! What to read first: `live/mod.rs`.
#![deny(missing_docs)]

#[cfg(feature = "browser")]
mod admission;
#[cfg(feature = "browser")]
mod error;
#[cfg(feature = "browser")]
mod live;

#[cfg(feature = "browser")]
pub use error::WebrtcError;
#[cfg(feature = "browser")]
pub use live::{
    Browsers, CLOCK_RATE, Called, Clip, Encoded, Encoder, FPS, Listener, Live, Peer, Requests,
    Size, Stats, Studio, call,
};
