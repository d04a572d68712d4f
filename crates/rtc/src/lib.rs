//! Congestion control steered by quality of experience, for WebRTC senders on `rtc-interceptor`,
//! which `rtc` and `webrtc` are built on.
//!
//! Any algorithm or scheme of Trimtab runs by its text, per peer connection, and is changed while
//! the connection lives. The encoder follows a [`Target`].
//!
//! ```
//! use std::time::Instant;
//!
//! use rtc_interceptor::{CongestionControlBuilder, Registry, Slot, TwccSenderBuilder};
//! use trimtab_rtc::{Bitrates, Config, HISTORY};
//!
//! // For each peer connection: the parts of a sender, and a handle for the application.
//! let (factory, handle) = Config::new("gcc")?.with_model("conference")?.connection();
//! let sender = factory.sender(Instant::now(), Bitrates::default());
//! let registry = Registry::new()
//!     .with(
//!         Slot::CongestionControl,
//!         CongestionControlBuilder::new(sender.estimator).with_prune_horizon(HISTORY).build(),
//!     )
//!     .with(Slot::TwccSender, TwccSenderBuilder::new().build())
//!     .with(Slot::Pacer, sender.pacer);
//! // Give the registry to `rtc::peer_connection::RTCPeerConnectionBuilder`.
//! # drop(registry);
//!
//! // Before each frame:
//! assert_eq!(sender.target.bitrate().mbps(), 0.3);
//! // At any time:
//! handle.set_scheme("bbr3")?;
//! # Ok::<(), trimtab_rtc::ConfigError>(())
//! ```
//!
//! Estimator and pacer belong together: the pacer numbers what leaves, and the estimator learns its
//! fate by that number. With an SSRC of its own for retransmissions (RTX), rtc-interceptor 0.21
//! neither numbers nor reports on them, so negotiate none where the estimate is to be true.
//!
//! There is no thread and no timer: the clock is the chain's `now`, so a connection in virtual time
//! is deterministic.
//!
//! What to read first: [`Config`], then [`Sender`], then [`Handle`].
#![deny(missing_docs)]

mod bitrates;
mod departures;
mod estimator;
mod factory;
mod pacer;
mod shared;

/// A scheme, the QoE model that it steers by, and a seed: what a sender begins with.
pub type Config = trimtab_stack::Config<Rtc>;

pub use bitrates::Bitrates;
pub use estimator::{Estimator, HISTORY};
pub use factory::{Rtc, Sender, SenderFactory};
pub use pacer::Pacer;
pub use shared::Target;
pub use trimtab_stack::{
    Arm, ConfigError, Factor, FactorError, Factors, Handle, Harm, Insight, KnobError, KnobValues,
    Metrics, Phase, Qlog, Reason, Report, Safety, SetKnobError, Share, Start, units,
};
