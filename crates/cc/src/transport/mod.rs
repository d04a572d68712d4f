//! The accounting between a transport and an algorithm, without I/O, clocks or allocation.
//!
//! A transport knows what it sent, and what of it was acknowledged or lost. An algorithm wants
//! batches: bytes in flight before and after, delivery-rate samples, whether the window was in use.
//! [`Tracker`] makes the second of the first. Loss detection, round-trip estimation and pacing stay
//! with the transport.
//!
//! A new packet size goes to the algorithm alone ([`CongestionControl::on_mtu`]).
//!
//! [`CongestionControl::on_mtu`]: crate::CongestionControl::on_mtu
//!
//! The simulator runs on the same tracker, so what a stack plugs in is what has been validated.
//! The order of calls for one acknowledgement, which is the order that
//! [`CongestionControl`](crate::CongestionControl) asks for:
//!
//! ```
//! use trimtab_cc::transport::Tracker;
//! use trimtab_cc::{Config, CongestionControl, Spec};
//! use trimtab_units::{Bytes, Duration, Time};
//!
//! let mut cca = "newreno".parse::<Spec>().unwrap().build(&Config::default());
//! let mut tracker = Tracker::new();
//! let (mut first, sent) = tracker.on_sent(Time::ZERO, Bytes::new(1500));
//! cca.on_sent(&sent);
//! let (mut second, sent) = tracker.on_sent(Time::ZERO, Bytes::new(1500));
//! cca.on_sent(&sent);
//!
//! // An acknowledgement covers the second packet and shows that the first is lost.
//! let now = Time::from_millis(40);
//! tracker.on_acked(&mut second);
//! if let Some(lost) = tracker.on_lost(now, &mut first, true) {
//!     cca.on_packet_lost(&lost);
//! }
//! if let Some(loss) = tracker.end_losses(now) {
//!     cca.on_loss(&loss);
//! }
//! let rtt = tracker.rtt_sample(now).unwrap();
//! if let Some(ack) = tracker.end_ack(now, rtt, rtt) {
//!     cca.on_ack(&ack);
//!     assert_eq!(ack.rate.unwrap().delivered, Bytes::new(1500));
//! }
//! assert_eq!(tracker.inflight(), Bytes::ZERO);
//! ```
//!
//! Read first: draft-cheng-iccrg-delivery-rate-estimation, then RFC 9002 §7 and its appendix B.

mod packet;
mod repairs;
mod reports;
#[cfg(test)]
mod tests;
mod tracker;

pub use packet::{Fate, Packet};
pub use repairs::Repairs;
pub use reports::Reports;
pub use tracker::Tracker;
