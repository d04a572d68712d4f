//! Flows in simulated networks: what algorithms and steering do there, and what the simulator
//! promises. One program, which compiles and runs in less time than many.

mod bands;
mod boldness;
mod copa;
mod digest;
mod ecn;
mod look;
mod media;
mod monitor;
mod muses_call;
mod recovery;
mod resume;
mod rfc8867;
mod rivals;
mod sharing;
mod steering;
mod switching;
mod truth;
mod vivace;
