//! BBR: model the path by its bandwidth and its minimum round-trip time, and send at that operating
//! point.
//!
//! [`Bbr`] (version 1) does what Linux' `tcp_bbr.c` does. Its windowed filter, round counter and
//! gains are files here; each phase and estimator is a file of its own below `v1`.
//!
//! Read first: Cardwell et al., "BBR: Congestion-Based Congestion Control" (ACM Queue 14:5, 2016).

mod gain;
mod round;
mod v1;
mod windowed_max;

pub use v1::Bbr;

#[cfg(test)]
mod testlink;
