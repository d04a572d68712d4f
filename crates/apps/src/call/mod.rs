//! Calls: video and audio that one end makes as it goes and the other shows at once.
//!
//! Read first: `record.rs` for what a call comes to, and `quality.rs` for how pictures are scored.

mod curves;
mod quality;
mod record;

pub use quality::{Clip, Lag, Picture, Point, Quality, Rung};
pub use record::{AudioRecord, CallRecord, FrameRecord, Freezes};
