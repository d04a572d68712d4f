//! Time, duration, rate and bytes as types.
//!
//! A bare `u64` or `f64` never means a time, a rate or a size across a function boundary in Trimtab:
//! these newtypes do, and they have only the operators that make physical sense.
//!
//! ```
//! use trimtab_units::{Bytes, Duration, Rate, Time};
//!
//! let rate: Rate = "12 Mbit/s".parse().unwrap();
//! let packet = Bytes::new(1500);
//! assert_eq!(packet / rate, Duration::from_millis(1));
//! assert_eq!(rate * Duration::from_millis(20), Bytes::new(30_000));
//! assert_eq!(Time::ZERO + Duration::from_millis(3), Time::from_millis(3));
//! assert!("12".parse::<Rate>().is_err(), "a number without a unit is an error");
//! ```
//!
//! All arithmetic saturates: no order of events, however odd, makes it panic or wrap. A duration
//! between two times in the wrong order is zero.
#![no_std]

mod arithmetic;
mod parse;
mod rate;
mod size;
mod time;

pub use parse::ParseUnitError;
pub use rate::Rate;
pub use size::Bytes;
pub use time::{Duration, Time};
