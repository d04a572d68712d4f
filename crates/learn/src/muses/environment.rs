//! Networks to learn on and to be judged on: Tables II and III.
//!
//! The paper's Wi-Fi traces are of a single client and its access point, so on those of Table III nobody else has the
//! channel. Half of those to learn on, and those of [`Setting::SharedWifi`], have rivals that come and go: then what the link
//! carries changes from one round trip to the next, and there is more to learn.

use std::path::PathBuf;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use trimtab_net::Capacity;
use trimtab_net::generate::Wifi;
use trimtab_units::{Bytes, Duration, Rate};

use crate::links::{self, LinksError, NamedLink, Split};

/// Seeds of generated networks have these bits by their [`Part`].
const PART_BITS: u64 = 3 << 62;
/// The first of these many tries whose link carries anything worth a policy is taken.
const TRIES: u32 = 16;
/// A link slower than this on average is out of range of its access point.
const RATE_MIN: Rate = Rate::from_bits_per_sec(300_000);
/// The loss that a radio of 20 dBm bears beyond the first metre, in dB: down to -82 dBm, where the slowest
/// modulation ends.
const BUDGET_DB: f64 = 62.0;

/// From the least to the greatest.
type Range = (f64, f64);

/// Which table, and which of its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Table II, for learning: Wi-Fi and cellular links in equal parts.
    Global,
    /// Table III: a client that stands 5 m from its access point.
    SteadyWifi,
    /// Table III: one that walks within 20 m.
    FluctuatingWifi,
    /// Table III: cellular links.
    Lte,
    /// Steady Wi-Fi on a channel that others use too; not the paper's.
    SharedWifi,
}

impl Setting {
    /// Every setting.
    pub const ALL: [Self; 5] =
        [Self::Global, Self::SteadyWifi, Self::FluctuatingWifi, Self::Lte, Self::SharedWifi];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::SteadyWifi => "steady-wifi",
            Self::FluctuatingWifi => "fluctuating-wifi",
            Self::Lte => "lte",
            Self::SharedWifi => "shared-wifi",
        }
    }

    /// One-way delay in ms, loss as a share, buffer in kB.
    const fn path(self) -> (Range, Range, Range) {
        match self {
            Self::Global => ((5.0, 150.0), (0.0, 0.05), (1.5, 3000.0)),
            Self::SteadyWifi | Self::SharedWifi => ((20.0, 30.0), (0.0, 0.0), (300.0, 300.0)),
            Self::FluctuatingWifi => ((20.0, 50.0), (0.001, 0.001), (300.0, 300.0)),
            Self::Lte => ((20.0, 50.0), (0.0, 0.0), (300.0, 300.0)),
        }
    }
}

/// What networks are for. No link is in two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// To learn on.
    Train,
    /// To choose among models by: every other of the recordings that [`Split::Test`] holds back.
    Validation,
    /// To be judged on, when all is chosen: the rest of them.
    Test,
}

impl Part {
    const fn bits(self) -> u64 {
        match self {
            Self::Train => 0,
            Self::Validation => 1 << 62,
            Self::Test => 2 << 62,
        }
    }

    /// Those of the cellular links, in their order, that are of this part.
    fn of(self, links: Vec<NamedLink>) -> Vec<NamedLink> {
        let every_other = |odd: bool| {
            let mine = links.iter().enumerate().filter(|(i, _)| (i % 2 == 1) == odd);
            mine.map(|(_, link)| link.clone()).collect()
        };
        match self {
            // A single one is for both.
            _ if links.len() < 2 => links,
            Self::Train => links,
            Self::Validation => every_other(false),
            Self::Test => every_other(true),
        }
    }
}

/// What networks are drawn from.
#[derive(Clone, Debug)]
pub struct EnvironmentsConfig {
    /// The ranges.
    pub setting: Setting,
    /// To learn, to choose by or to be judged.
    pub part: Part,
    /// How long a flow lasts at most: generated Wi-Fi links are as long.
    pub length: Duration,
    /// A folder of recordings, and the kinds to take from it; without one, cellular links are generated.
    pub recorded: Option<(PathBuf, Vec<String>)>,
    /// How many cellular links are generated.
    pub generated: usize,
    /// The largest one-way delay to learn on, in place of Table II's (Muses Fig. 1b). Table III's settings are what is
    /// judged on, and stay as they are.
    pub delay_max: Option<Duration>,
    /// What labels the states.
    pub oracle: Oracle,
}

/// What knows the optimal window: the volume of a round trip, times α (Eq. 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oracle {
    /// α in percent, 1 to 1000. The paper's is 120.
    pub alpha_percent: u32,
    /// Of which round trip: the last one, as in Eq. 1; or, where this is set, the one that what is under way now needs, from
    /// one delay ago, when the link carried what is acknowledged now, to one delay ahead, when it gets what is sent now.
    ///
    /// Where capacity changes within a round trip, Eq. 1 follows what is over. The other half is not known to who learns,
    /// which makes its labels ask for what is to be expected.
    pub ahead: bool,
}

impl Oracle {
    /// The paper's.
    pub const PAPER: Self = Self { alpha_percent: 120, ahead: false };
}

/// Networks, ready to draw from.
#[derive(Clone, Debug)]
pub struct Environments {
    setting: Setting,
    part: Part,
    length: Duration,
    delay_max: Option<Duration>,
    oracle: Oracle,
    cellular: Vec<NamedLink>,
}

/// A network: the tuple (trace, delay, loss, buffer) of §III-D.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The name of its link.
    pub name: String,
    /// What its link carries.
    pub capacity: Capacity,
    /// One-way delay of the data path, and of the acknowledgements' path.
    pub delay: Duration,
    /// Share of packets lost at random, 0 to 1.
    pub loss: f64,
    /// The link's buffer.
    pub buffer: Bytes,
    /// What labels the states.
    pub oracle: Oracle,
}

impl Environments {
    /// Generates the cellular links or reads the recordings.
    ///
    /// # Errors
    /// A recording cannot be read, or there is none.
    pub fn new(config: &EnvironmentsConfig) -> Result<Self, LinksError> {
        let split = if config.part == Part::Train { Split::Train } else { Split::Test };
        let cellular = match &config.recorded {
            Some((root, kinds)) => links::recorded(root, kinds, split)?,
            None => links::generated(config.generated.max(1), split),
        };
        Ok(Self {
            setting: config.setting,
            part: config.part,
            length: config.length,
            delay_max: config.delay_max,
            oracle: config.oracle,
            cellular: config.part.of(cellular),
        })
    }

    /// The network of a seed. The same seed gives the same network.
    pub fn draw(&self, seed: u64) -> Environment {
        let mut random = Pcg64Mcg::seed_from_u64((seed & !PART_BITS) | self.part.bits());
        let within =
            |random: &mut Pcg64Mcg, (low, high): Range| low + (high - low) * random.random::<f64>();
        let (mut delay, loss, buffer) = self.setting.path();
        if let (Setting::Global, Some(most)) = (self.setting, self.delay_max) {
            delay.1 = most.as_millis_f64().max(delay.0);
        }
        let delay = Duration::from_millis_f64(within(&mut random, delay));
        let loss = within(&mut random, loss);
        let buffer = Bytes::from_f64(1000.0 * within(&mut random, buffer));
        let is_wifi = match self.setting {
            Setting::Global => random.random::<f64>() < 0.5,
            Setting::SteadyWifi | Setting::FluctuatingWifi | Setting::SharedWifi => true,
            Setting::Lte => false,
        };
        let link = if is_wifi { self.wifi(&mut random) } else { self.cellular(&mut random) };
        let NamedLink { name, capacity } = link;
        Environment { name, capacity, delay, loss, buffer, oracle: self.oracle }
    }

    fn wifi(&self, random: &mut Pcg64Mcg) -> NamedLink {
        let mut uniform = |low: f64, high: f64| low + (high - low) * random.random::<f64>();
        let mut tries = TRIES;
        loop {
            let exponent = uniform(4.0, 6.0);
            // Up to 500 m and 20 m by the tables; beyond the reach of the radio there is no network.
            let reach = libm::pow(10.0, BUDGET_DB / (10.0 * exponent));
            let (shadowing_db, radius_m, speed_m_per_s) = match self.setting {
                Setting::SteadyWifi | Setting::SharedWifi => (3.0, 5.0, 0.0),
                Setting::FluctuatingWifi => (10.0, reach.min(20.0), 1.2),
                Setting::Global | Setting::Lte => {
                    (uniform(0.0, 20.0), uniform(1.0, reach.min(500.0)), uniform(0.0, 10.0))
                }
            };
            let is_shared = match self.setting {
                Setting::Global | Setting::Lte => uniform(0.0, 1.0) < 0.5,
                Setting::SharedWifi => true,
                Setting::SteadyWifi | Setting::FluctuatingWifi => false,
            };
            let rivals = if is_shared { uniform(0.0, 2.0) } else { 0.0 };
            let wifi = Wifi {
                duration: self.length,
                path_loss_exponent: exponent,
                shadowing_db,
                radius_m,
                speed_m_per_s,
                rivals,
                ..Wifi::default()
            };
            let seed = ((uniform(0.0, 1.0) * (1u64 << 53) as f64) as u64) | self.part.bits();
            let capacity = Capacity::trace(wifi.generate(seed).trace);
            tries -= 1;
            if capacity.mean_rate() >= RATE_MIN || tries == 0 {
                return NamedLink { name: format!("wifi:{seed}"), capacity };
            }
        }
    }

    /// Any of the cellular links, from any place in it.
    fn cellular(&self, random: &mut Pcg64Mcg) -> NamedLink {
        let at = random.random_range(0..self.cellular.len());
        let mut link = self.cellular[at].clone();
        if let Capacity::Trace { trace, offset, .. } = &mut link.capacity {
            *offset = trace.period().mul_f64(random.random());
        }
        link
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environments(setting: Setting, part: Part) -> Environments {
        Environments::new(&EnvironmentsConfig {
            setting,
            part,
            length: Duration::from_secs(5),
            recorded: None,
            generated: 8,
            delay_max: None,
            oracle: Oracle::PAPER,
        })
        .unwrap()
    }

    #[test]
    fn draws_stay_in_the_ranges_of_table_2() {
        let all = environments(Setting::Global, Part::Train);
        let drawn: Vec<_> = (0..200).map(|seed| all.draw(seed)).collect();
        let of = |f: &dyn Fn(&Environment) -> f64| {
            let values = drawn.iter().map(f);
            values.fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)))
        };
        let (low, high) = of(&|e| e.delay.as_millis_f64());
        assert!((5.0..10.0).contains(&low) && high > 145.0 && high <= 150.0, "{low} to {high} ms");
        let (low, high) = of(&|e| e.loss);
        assert!(low < 0.001 && high > 0.049 && high <= 0.05, "{low} to {high}");
        let (low, high) = of(&|e| e.buffer.as_f64());
        assert!((1_500.0..60_000.0).contains(&low) && high <= 3_000_000.0, "{low} to {high}");
        let wifi = drawn.iter().filter(|e| e.name.starts_with("wifi")).count();
        assert!((80..=120).contains(&wifi), "{wifi} of 200");
        assert!(of(&|e| e.capacity.mean_rate().mbps()).0 >= 0.3);
    }

    #[test]
    fn a_seed_is_a_network_and_the_parts_have_none_in_common() {
        let [train, valid, test] = [Part::Train, Part::Validation, Part::Test]
            .map(|part| environments(Setting::SteadyWifi, part));
        let same = (train.draw(3), train.draw(3));
        assert_eq!((&same.0.name, same.0.delay), (&same.1.name, same.1.delay));
        let names = |e: &Environments| (0..40).map(|s| e.draw(s).name).collect::<Vec<_>>();
        let judged = names(&test);
        assert!(names(&train).iter().all(|name| !judged.contains(name)));
        assert!(names(&valid).iter().all(|name| !judged.contains(name)));
        let cellular = [Part::Train, Part::Validation, Part::Test]
            .map(|part| names(&environments(Setting::Lte, part)));
        for (i, links) in cellular.iter().enumerate() {
            let others = cellular.iter().enumerate().filter(|(j, _)| *j != i);
            assert!(others.flat_map(|(_, other)| other).all(|name| !links.contains(name)));
        }
        let slow = |e: &Environments| e.draw(7).delay >= Duration::from_millis(20);
        assert!(slow(&train) && slow(&test));
    }

    #[test]
    fn the_range_of_delays_can_be_narrowed() {
        let narrow = Environments {
            delay_max: Some(Duration::from_millis(10)),
            ..environments(Setting::Global, Part::Train)
        };
        assert!((0..50).all(|seed| narrow.draw(seed).delay <= Duration::from_millis(10)));
        for setting in [Setting::SteadyWifi, Setting::Lte] {
            let table = environments(setting, Part::Test);
            let judged = Environments { delay_max: narrow.delay_max, ..table.clone() };
            assert!((0..5).all(|seed| judged.draw(seed).delay == table.draw(seed).delay));
        }
    }
}
