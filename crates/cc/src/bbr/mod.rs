//! BBR: model the path by its bandwidth and its minimum round-trip time, and send at that operating
//! point.
//!
//! [`Bbr`] (version 1) does what Linux' `tcp_bbr.c` does, [`Bbr3`] follows draft-ietf-ccwg-bbr. They
//! share the files here; each phase and estimator is a file of its own below `v1` and `v3`.
//!
//! Read first: Cardwell et al., "BBR: Congestion-Based Congestion Control" (ACM Queue 14:5, 2016).

mod bubble;
mod full_bw;
mod gain;
mod probe_rtt;
mod round;
pub(crate) mod v1;
pub(crate) mod v3;
mod windowed_max;

#[cfg(test)]
mod chaos;
#[cfg(test)]
mod testlink;
