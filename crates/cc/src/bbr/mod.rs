//! BBR: model the path by its bandwidth and its minimum round-trip time, and send at that operating
//! point.
//!
//! [`Bbr`] (version 1) does what Linux' `tcp_bbr.c` does, [`Bbr3`] follows draft-ietf-ccwg-bbr. They
//! share the files here; each phase and estimator is a file of its own below `v1` and `v3`.
//!
//! Read first: Cardwell et al., "BBR: Congestion-Based Congestion Control" (ACM Queue 14:5, 2016).

mod bubble;
mod gain;
mod round;
mod v1;
mod v3;
mod windowed_max;

pub use v1::Bbr;
pub use v3::Bbr3;

#[cfg(test)]
mod chaos;
#[cfg(test)]
mod testlink;
