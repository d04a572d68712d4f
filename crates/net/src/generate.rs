//! Made-up traces: cellular-like, Wi-Fi-like, and stepping wired ones.
//!
//! Each generator is a struct of parameters with a default, and gives the same trace for the same
//! parameters and seed on every machine. [`demo_set`] has the traces that ship in the folder `traces`;
//! `cargo run -p trimtab-net --example demo_traces -- traces` writes them again.

mod cellular;
mod wifi;

use trimtab_units::{Duration, Rate};

use crate::spread::Spread;
use crate::trace::{Trace, TraceError};

pub use cellular::{Cellular, CellularTrace};
pub use wifi::{Position, Wifi, WifiTrace};

/// A link that stays at each rate for its duration, and then starts again. A last millisecond without an
/// opportunity gets one, so that the trace has its length.
///
/// # Errors
/// [`TraceError::NoLength`] when the durations are less than a millisecond together.
pub fn steps(steps: &[(Duration, Rate)]) -> Result<Trace, TraceError> {
    let mut spread = Spread::default();
    for &(duration, rate) in steps {
        spread.add(duration, rate);
    }
    spread.finish()
}

/// The names and traces of the demo. A name and `.trace.gz` is the file in the folder `traces`.
pub fn demo_set() -> Vec<(&'static str, Trace)> {
    let duration = Duration::from_secs(75);
    let cellular = |seed, rate_min, rate_max, outages_per_minute| {
        let rates = (Rate::from_mbps(rate_min), Rate::from_mbps(rate_max));
        let parameters = Cellular {
            duration,
            rate_min: rates.0,
            rate_max: rates.1,
            outages_per_minute,
            ..Cellular::default()
        };
        parameters.generate(seed).trace
    };
    let wifi = |seed, radius_m, shadowing_db, speed_m_per_s, rivals| {
        let parameters =
            Wifi { duration, radius_m, shadowing_db, speed_m_per_s, rivals, ..Wifi::default() };
        parameters.generate(seed).trace
    };
    let quarter_minute = Duration::from_secs(15);
    let step = [24.0, 6.0, 36.0, 12.0].map(|mbps| (quarter_minute, Rate::from_mbps(mbps)));
    vec![
        ("cellular-stationary", cellular(1, 4.0, 50.0, 0.5)),
        ("cellular-walking", cellular(2, 2.0, 30.0, 2.0)),
        ("cellular-driving", cellular(3, 0.8, 24.0, 6.0)),
        // The two Wi-Fi settings of Muses, Table III.
        ("wifi-steady", wifi(4, 5.0, 3.0, 0.0, 2.0)),
        ("wifi-fluctuating", wifi(5, 20.0, 10.0, 1.2, 2.0)),
        ("wired-step", steps(&step).expect("the steps last a minute")),
    ]
}
