//! Wi-Fi-like capacity: a client that walks about an access point and shares the channel.
//!
//! The parameters are those of the Muses paper (section III-D and table II: path-loss exponent 4 to 6,
//! shadowing of 0 to 20 dB, location 0 to 500 m, speed 0 to 10 m/s; table III has two settings), which takes
//! its traces from an emulated radio. This is a model of such a radio:
//!
//! * The client walks straight to a random point of a disc, at a random speed, and then to the next (random
//!   waypoint).
//! * The received power is the transmitted one less 40 dB for the first metre (free space at 2.4 GHz),
//!   `10 * exponent * log10(distance)` for the rest, and normal shadowing, correlated in time and over the way
//!   walked.
//! * The fastest 802.11 modulation whose minimum sensitivity is met gives the rate of the radio.
//! * The client gets the channel in turns with a changing number of rivals, and sends what it can within one turn
//!   as one aggregated frame, so packets come in bunches.

use rand_pcg::Pcg64Mcg;
use trimtab_units::{Duration, Rate};

use crate::seed::{Purpose, exponential, generator, normal, uniform};
use crate::spread::Spread;
use crate::trace::Trace;

/// The minimum sensitivity in dBm and the rate in Mbit/s of each modulation, for a 20 MHz channel, one
/// spatial stream and the long guard interval: the VHT-MCS 0 to 8 of IEEE 802.11-2020 clause
/// 21 (receiver minimum input sensitivity, and the parameters of the MCSs).
const MODULATIONS: [(f64, f64); 9] = [
    (-82.0, 6.5),
    (-79.0, 13.0),
    (-77.0, 19.5),
    (-74.0, 26.0),
    (-70.0, 39.0),
    (-66.0, 52.0),
    (-65.0, 58.5),
    (-64.0, 65.0),
    (-59.0, 78.0),
];
/// Free-space loss of the first metre at 2.4 GHz, in dB.
const LOSS_FIRST_METRE_DB: f64 = 40.0;
/// Shadowing changes over this distance, a usual value indoors, in metres.
const SHADOWING_METRES: f64 = 3.0;
/// Shadowing also changes in time, since people walk around the client, in seconds.
const SHADOWING_SECONDS: f64 = 3.0;
/// From one turn to the next multipath moves the power by this much (standard deviation in dB).
const FADING_DB: f64 = 1.5;
/// A rival that is active has something to send for this long on average, in seconds; and so has one that is not.
const RIVAL_SECONDS: f64 = 2.0;
/// The longest stay without a modulation before the client looks again, in seconds.
const OUT_OF_RANGE: Duration = Duration::from_millis(20);

/// The parameters of Wi-Fi-like capacity. Powers are in dB and dBm, distances in metres.
#[derive(Clone, Debug, PartialEq)]
pub struct Wifi {
    /// The length of the trace; at least a millisecond. Default 120 s.
    pub duration: Duration,
    /// The path-loss exponent. Table II: 4 to 6. Default 4.5.
    pub path_loss_exponent: f64,
    /// The standard deviation of the shadowing, in dB (table II calls it variance): 0 to 20. Default 3.
    pub shadowing_db: f64,
    /// The radius of the disc around the access point in which the client walks, in metres. Table II's location is
    /// 0 to 500; with these exponents there is no signal beyond some 30 m. Default 12.
    pub radius_m: f64,
    /// The largest speed of the client, in m/s. Table II: 0 to 10. Default 1.2. At zero the client stays at
    /// `radius_m`, as in table III.
    pub speed_m_per_s: f64,
    /// The power that is sent, in dBm. Default 20.
    pub power_dbm: f64,
    /// Spatial streams, each with the rate of a modulation. Default 1.
    pub streams: u32,
    /// The mean number of other stations that have something to send. Twice as many are there. Default 1.
    pub rivals: f64,
    /// How long a station keeps the channel on its turn. Default 3 ms.
    pub turn: Duration,
    /// The share of a turn in which payload is sent; the rest is preambles, acknowledgements and backoff. Default
    /// 0.7.
    pub efficiency: f64,
}

impl Default for Wifi {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(120),
            path_loss_exponent: 4.5,
            shadowing_db: 3.0,
            radius_m: 12.0,
            speed_m_per_s: 1.2,
            power_dbm: 20.0,
            streams: 1,
            rivals: 1.0,
            turn: Duration::from_millis(3),
            efficiency: 0.7,
        }
    }
}

/// A generated trace, and what it was made from.
#[derive(Clone, Debug, PartialEq)]
pub struct WifiTrace {
    /// The trace.
    pub trace: Trace,
    /// Where the client was at each of its turns.
    pub positions: Vec<Position>,
}

/// The client at one of its turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// When, from the start of the trace.
    pub at: Duration,
    /// The distance to the access point in metres.
    pub distance_m: f64,
    /// The power received, with shadowing and without multipath fading, in dBm.
    pub signal_dbm: f64,
    /// The rate of the radio; zero out of range.
    pub radio: Rate,
}

impl Wifi {
    /// Generates a trace. The same parameters and seed give the same trace.
    pub fn generate(&self, seed: u64) -> WifiTrace {
        let mut random = generator(seed, Purpose::Wifi);
        let duration = self.duration.max(Duration::from_millis(1));
        let mut walk = Walk::new(self, &mut random);
        let mut shadowing = normal(&mut random);
        let mut rivals = Rivals::new(self, &mut random);
        let mut spread = Spread::default();
        let mut positions = Vec::new();
        while spread.duration() < duration {
            let distance_m = walk.distance_m();
            let signal_dbm = self.mean_signal_dbm(distance_m) + self.shadowing_db * shadowing;
            let radio = self.radio(signal_dbm + FADING_DB * normal(&mut random));
            positions.push(Position { at: spread.duration(), distance_m, signal_dbm, radio });

            let waited = rivals.turns(self.turn, &mut random);
            let round = if radio.is_zero() { OUT_OF_RANGE } else { self.turn + waited };
            let rest = duration - spread.duration();
            let round = round.max(Duration::from_micros(100)).min(rest);
            spread.add_burst(round, radio.mul_f64(self.efficiency), self.turn.min(round));

            let seconds = round.as_secs_f64();
            let metres = walk.advance(seconds, &mut random);
            let keep = libm::exp(-seconds / SHADOWING_SECONDS - metres / SHADOWING_METRES);
            shadowing = keep * shadowing + (1.0 - keep * keep).sqrt() * normal(&mut random);
            rivals.advance(seconds, &mut random);
        }
        let trace = spread.finish().expect("the trace lasts a millisecond at least");
        WifiTrace { trace, positions }
    }

    /// The power received at a distance, without shadowing (log-distance path loss).
    fn mean_signal_dbm(&self, distance_m: f64) -> f64 {
        let far = libm::log10(distance_m.max(1.0));
        self.power_dbm - LOSS_FIRST_METRE_DB - 10.0 * self.path_loss_exponent * far
    }

    /// The rate of the fastest modulation that this power carries.
    fn radio(&self, signal_dbm: f64) -> Rate {
        let fastest = MODULATIONS.iter().rev().find(|&&(sensitivity, _)| signal_dbm >= sensitivity);
        Rate::from_mbps(fastest.map_or(0.0, |&(_, mbps)| mbps * f64::from(self.streams)))
    }
}

/// The client's way: random waypoint in a disc around the access point.
struct Walk {
    radius_m: f64,
    speed_max: f64,
    place: (f64, f64),
    target: (f64, f64),
    speed: f64,
}

impl Walk {
    fn new(parameters: &Wifi, random: &mut Pcg64Mcg) -> Self {
        let (radius_m, speed_max) = (parameters.radius_m, parameters.speed_m_per_s);
        let still = (radius_m, 0.0);
        let mut walk = Self { radius_m, speed_max, place: still, target: still, speed: 0.0 };
        if speed_max > 0.0 {
            walk.place = walk.random_point(random);
            walk.set_off(random);
        }
        walk
    }

    fn random_point(&self, random: &mut Pcg64Mcg) -> (f64, f64) {
        loop {
            let [x, y] = [0; 2].map(|_| uniform(random, -1.0, 1.0));
            if x * x + y * y <= 1.0 {
                return (x * self.radius_m, y * self.radius_m);
            }
        }
    }

    fn set_off(&mut self, random: &mut Pcg64Mcg) {
        self.target = self.random_point(random);
        // From a tenth of the largest speed: from zero, a client would sooner or later stand for ever.
        self.speed = uniform(random, 0.1, 1.0) * self.speed_max;
    }

    fn distance_m(&self) -> f64 {
        libm::hypot(self.place.0, self.place.1)
    }

    /// Walks on, and returns how far. At a waypoint the rest of the time is spent turning round.
    fn advance(&mut self, seconds: f64, random: &mut Pcg64Mcg) -> f64 {
        let (dx, dy) = (self.target.0 - self.place.0, self.target.1 - self.place.1);
        let left = libm::hypot(dx, dy);
        let metres = self.speed * seconds;
        if metres < left {
            let share = metres / left;
            self.place = (self.place.0 + dx * share, self.place.1 + dy * share);
            return metres;
        }
        self.place = self.target;
        if self.speed_max > 0.0 {
            self.set_off(random);
        }
        left
    }
}

/// The other stations on the channel, each with something to send half of the time.
struct Rivals {
    present: f64,
    active: f64,
}

impl Rivals {
    fn new(parameters: &Wifi, random: &mut Pcg64Mcg) -> Self {
        let present = libm::round(parameters.rivals.max(0.0) * 2.0);
        let active = libm::floor(uniform(random, 0.0, present + 1.0)).min(present);
        Self { present, active }
    }

    /// How long the rivals keep the channel between two turns of the client.
    fn turns(&self, turn: Duration, random: &mut Pcg64Mcg) -> Duration {
        let turns = self.active as u32;
        let each = |_| exponential(random, turn.as_secs_f64()).min(4.0 * turn.as_secs_f64());
        Duration::from_secs_f64((0..turns).map(each).sum())
    }

    /// Stations start and stop sending.
    fn advance(&mut self, seconds: f64, random: &mut Pcg64Mcg) {
        let starts = (self.present - self.active) * seconds / RIVAL_SECONDS;
        let stops = self.active * seconds / RIVAL_SECONDS;
        let draw = uniform(random, 0.0, 1.0);
        if draw < starts {
            self.active = (self.active + 1.0).min(self.present);
        } else if draw < starts + stops {
            self.active = (self.active - 1.0).max(0.0);
        }
    }
}
