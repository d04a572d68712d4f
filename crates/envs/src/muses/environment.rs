//! Networks to learn on and to be judged on: Tables II and III.
//!
//! The paper's Wi-Fi traces are of a single client and its access point, so on those of Table III
//! nobody else has the channel. Half of those to learn on, and those of [`Setting::SharedWifi`],
//! have rivals that come and go: then what the link carries changes from one round trip to the
//! next, and there is more to learn.

use std::path::PathBuf;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use trimtab_net::Capacity;
use trimtab_net::generate::Wifi;
use trimtab_units::{Bytes, Duration, Rate};

use crate::links::{self, LinksError, NamedLink};

/// Seeds of generated networks have these bits by their [`Part`].
const PART_BITS: u64 = 3 << 62;
/// The first of these many tries whose link carries anything worth a policy is taken.
const TRIES: u32 = 16;
/// A link slower than this on average is out of range of its access point.
const RATE_MIN: Rate = Rate::from_bits_per_sec(300_000);
/// The loss that a radio of 20 dBm bears beyond the first metre, in dB: down to -82 dBm, where the slowest
/// modulation ends.
const BUDGET_DB: f64 = 62.0;

/// What α is above one in percent, at least and at most, where it depends on the rate.
const ABOVE_MIN: f64 = 3.0;
const ABOVE_MAX: f64 = 100.0;
/// A link of constant rate carries this much, in Mbit/s, on a logarithmic scale.
const WIRED_MBPS: Range = (2.0, 100.0);
/// From such a share of a round trip's volume to such a one is its buffer, and no less than 20 packets.
const WIRED_BUFFER: Range = (0.5, 4.0);
const WIRED_BUFFER_MIN: Bytes = Bytes::new(30_000);

/// One-way delay, buffer and loss of [`Setting::Recorded`], and the share of its paths that lose nothing
/// at random.
const RECORDED_DELAY_MS: Range = (5.0, 100.0);
const RECORDED_BUFFER_KB: Range = (100.0, 2000.0);
const RECORDED_LOSS: Range = (1e-4, 1e-2);
const RECORDED_LOSSLESS: f64 = 0.7;
/// Rate, one-way delay and buffer, in round trips' volumes, of [`Setting::Wide`].
const WIDE_MBPS: Range = (1.0, 800.0);
const WIDE_DELAY_MS: Range = (2.5, 400.0);
const WIDE_BUFFER: Range = (0.1, 4.0);
const WIDE_BUFFER_MAX: Bytes = Bytes::new(8_000_000);

/// From the least to the greatest.
type Range = (f64, f64);

fn logarithmic(random: &mut Pcg64Mcg, (low, high): Range) -> f64 {
    low * libm::pow(high / low, random.random::<f64>())
}

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
    /// A link of constant rate, with the delays of Table II: several flows learn to share on it and
    /// on the radio links of the table; not the paper's.
    Wired,
    /// Recordings over paths of a wider range than Table II's, drawn on a logarithmic scale; not the
    /// paper's.
    Recorded,
    /// A link of constant rate from 1 to 800 Mbit/s and round trips of 5 to 800 ms; not the paper's.
    Wide,
}

impl Setting {
    /// Every setting.
    pub const ALL: [Self; 8] = [
        Self::Global,
        Self::SteadyWifi,
        Self::FluctuatingWifi,
        Self::Lte,
        Self::SharedWifi,
        Self::Wired,
        Self::Recorded,
        Self::Wide,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::SteadyWifi => "steady-wifi",
            Self::FluctuatingWifi => "fluctuating-wifi",
            Self::Lte => "lte",
            Self::SharedWifi => "shared-wifi",
            Self::Wired => "wired",
            Self::Recorded => "recorded",
            Self::Wide => "wide",
        }
    }

    /// One-way delay in ms, loss as a share, buffer in kB.
    const fn path(self) -> (Range, Range, Range) {
        match self {
            Self::Global => ((5.0, 150.0), (0.0, 0.05), (1.5, 3000.0)),
            Self::SteadyWifi | Self::SharedWifi => ((20.0, 30.0), (0.0, 0.0), (300.0, 300.0)),
            Self::FluctuatingWifi => ((20.0, 50.0), (0.001, 0.001), (300.0, 300.0)),
            Self::Lte => ((20.0, 50.0), (0.0, 0.0), (300.0, 300.0)),
            // The buffer goes by the link.
            Self::Wired | Self::Recorded | Self::Wide => ((5.0, 150.0), (0.0, 0.0), (0.0, 0.0)),
        }
    }
}

/// What networks are for. No link is in two parts; recordings are by `traces/split.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// To learn on.
    Train,
    /// To choose among models by.
    Validation,
    /// To be judged on, when all is chosen.
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

    /// The part of `traces/split.toml` whose recordings are taken.
    pub const fn recordings(self) -> trimtab_net::Part {
        match self {
            Self::Train => trimtab_net::Part::Train,
            Self::Validation => trimtab_net::Part::Validate,
            Self::Test => trimtab_net::Part::Test,
        }
    }

    /// Those of the generated cellular links, in their order, that are of this part.
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

/// Of the buffer, what an oracle that looks ahead fills while the link carries least.
pub(crate) const LEAST_ROOM_PERCENT: u32 = 70;

/// What knows the optimal window: the volume of a round trip, times α (Eq. 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oracle {
    /// α in percent, 1 to 1000. The paper's is 120.
    pub alpha_percent: u32,
    /// Of which round trip: the last one, as in Eq. 1; or, where this is set, the one that what is
    /// under way now needs, from one delay ago, when the link carried what is acknowledged now, to
    /// one delay ahead, when it gets what is sent now.
    ///
    /// Where capacity changes within a round trip, Eq. 1 follows what is over. The other half is
    /// not known to who learns, which makes its labels ask for what is to be expected.
    pub ahead: bool,
    /// Where set, α is that of a flow whose share of the link is this rate, and what it is above
    /// one falls with the square root of the share. `None` is the paper's: α is the same for all.
    ///
    /// Flows that share a queue all see the same delay. With one α for all, the delay says how full
    /// the link is and nothing about who has too much of it, and a window that is twice the fair
    /// one looks as right as the fair one. Where the delay to be kept depends on the flow's own
    /// rate, there is one rate for all at which every flow finds its delay right (as with Vegas and
    /// Copa, which keep a number of packets in the queue, so that the delay grows with the number
    /// of flows; with the root it grows by its root, and twenty flows fit into a buffer that one
    /// fills by a third).
    pub even_at: Option<Rate>,
    /// What it wants in the queue at most, in percent of the link's buffer. Of a fast link with a short
    /// buffer α asks for more than there is room for, and each flow that follows it loses. The paper's,
    /// `None`, does not know the buffer.
    pub room_percent: Option<u32>,
    /// How far it looks beyond that round trip. The window is then that of the round trip that the link
    /// carries most in, so that a rate that rises finds something to send. And what waits fits into
    /// 70% of the buffer in the one that it carries least in. It also wants ten packets where they fit: a
    /// smaller window has nothing to send when a deep fade ends. The paper's is zero.
    pub span: Duration,
}

impl Oracle {
    /// The paper's.
    pub const PAPER: Self = Self {
        alpha_percent: 120,
        ahead: false,
        even_at: None,
        room_percent: None,
        span: Duration::ZERO,
    };

    /// α in percent of a flow with this share of the link.
    pub fn alpha_of(&self, share: Rate) -> u32 {
        let Some(at) = self.even_at else { return self.alpha_percent };
        let above = f64::from(self.alpha_percent.saturating_sub(100));
        let fold = at.bits_per_sec() / share.bits_per_sec().max(1.0);
        100 + (above * libm::sqrt(fold)).clamp(ABOVE_MIN, ABOVE_MAX) as u32
    }
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
        let is_held_back = config.part != Part::Train;
        let cellular = match &config.recorded {
            Some((root, kinds)) => links::recorded(root, kinds, config.part.recordings())?,
            None => {
                let count = config.generated.max(1) as u64;
                let all = (0..count).map(|i| links::generated_link(i, is_held_back)).collect();
                config.part.of(all)
            }
        };
        Ok(Self {
            setting: config.setting,
            part: config.part,
            length: config.length,
            delay_max: config.delay_max,
            oracle: config.oracle,
            cellular,
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
        match self.setting {
            Setting::Wired => return self.wired(&mut random, delay),
            Setting::Recorded => return self.recorded(&mut random),
            Setting::Wide => return self.wide(&mut random),
            _ => {}
        }
        let is_wifi = match self.setting {
            Setting::Global => random.random::<f64>() < 0.5,
            Setting::SteadyWifi | Setting::FluctuatingWifi | Setting::SharedWifi => true,
            _ => false,
        };
        let link = if is_wifi { self.wifi(&mut random) } else { self.cellular(&mut random) };
        let NamedLink { name, capacity } = link;
        Environment { name, capacity, delay, loss, buffer, oracle: self.oracle }
    }

    fn wired(&self, random: &mut Pcg64Mcg, delay: Duration) -> Environment {
        let mut uniform = |low: f64, high: f64| low + (high - low) * random.random::<f64>();
        let (slow, fast) = WIRED_MBPS;
        let rate = Rate::from_mbps(slow * libm::pow(fast / slow, uniform(0.0, 1.0)));
        let volume = (rate * (delay * 2)).as_f64();
        let buffer = Bytes::from_f64(volume * uniform(WIRED_BUFFER.0, WIRED_BUFFER.1));
        Environment {
            name: format!("constant:{rate}"),
            capacity: Capacity::Constant(rate),
            delay,
            // Of two links one loses nothing at random.
            loss: (uniform(-0.01, 0.01)).max(0.0),
            buffer: buffer.max(WIRED_BUFFER_MIN),
            oracle: self.oracle,
        }
    }

    fn recorded(&self, random: &mut Pcg64Mcg) -> Environment {
        let NamedLink { name, capacity } = self.cellular(random);
        let delay = Duration::from_millis_f64(logarithmic(random, RECORDED_DELAY_MS));
        let buffer = Bytes::from_f64(1000.0 * logarithmic(random, RECORDED_BUFFER_KB));
        let lossless = random.random::<f64>() < RECORDED_LOSSLESS;
        let loss = if lossless { 0.0 } else { logarithmic(random, RECORDED_LOSS) };
        Environment { name, capacity, delay, loss, buffer, oracle: self.oracle }
    }

    fn wide(&self, random: &mut Pcg64Mcg) -> Environment {
        let rate = Rate::from_mbps(logarithmic(random, WIDE_MBPS));
        let delay = Duration::from_millis_f64(logarithmic(random, WIDE_DELAY_MS));
        let volume = (rate * (delay * 2)).as_f64();
        let buffer = Bytes::from_f64(volume * logarithmic(random, WIDE_BUFFER));
        Environment {
            name: format!("constant:{rate}"),
            capacity: Capacity::Constant(rate),
            delay,
            loss: (random.random::<f64>() * 0.02 - 0.01).max(0.0),
            buffer: buffer.clamp(WIRED_BUFFER_MIN, WIDE_BUFFER_MAX),
            oracle: self.oracle,
        }
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
                _ => (uniform(0.0, 20.0), uniform(1.0, reach.min(500.0)), uniform(0.0, 10.0)),
            };
            let is_shared = match self.setting {
                Setting::SharedWifi => true,
                Setting::SteadyWifi | Setting::FluctuatingWifi => false,
                _ => uniform(0.0, 1.0) < 0.5,
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
        links::enter_anywhere(&mut link.capacity, random);
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
    fn links_of_constant_rate_have_the_delays_of_table_2() {
        let all = environments(Setting::Wired, Part::Train);
        let drawn: Vec<_> = (0..100).map(|seed| all.draw(seed)).collect();
        let rates = drawn.iter().map(|e| e.capacity.mean_rate().mbps());
        let (low, high) = rates.fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
        assert!((2.0..3.0).contains(&low) && (70.0..=100.0).contains(&high), "{low} to {high}");
        assert!(drawn.iter().all(|e| e.buffer >= WIRED_BUFFER_MIN));
        let lossless = drawn.iter().filter(|e| e.loss == 0.0).count();
        assert!((30..=70).contains(&lossless), "{lossless} of 100");
    }

    #[test]
    fn wide_paths_span_their_ranges() {
        let all = environments(Setting::Wide, Part::Train);
        let drawn: Vec<_> = (0..200).map(|seed| all.draw(seed)).collect();
        let delays = drawn.iter().map(|e| e.delay.as_millis_f64());
        let (low, high) = delays.fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
        assert!((2.5..4.0).contains(&low) && (250.0..=400.0).contains(&high), "{low}, {high} ms");
        assert!(drawn.iter().any(|e| e.capacity.mean_rate().mbps() > 500.0));
        let all = environments(Setting::Recorded, Part::Train);
        let lossless = (0..200).filter(|&seed| all.draw(seed).loss == 0.0).count();
        assert!((110..=170).contains(&lossless), "{lossless} of 200");
    }

    #[test]
    fn who_has_more_of_the_link_is_to_wait_for_less() {
        let oracle = Oracle {
            alpha_percent: 125,
            ahead: true,
            even_at: Some(Rate::from_mbps(24.0)),
            room_percent: None,
            span: Duration::ZERO,
        };
        let alpha = |mbps| oracle.alpha_of(Rate::from_mbps(mbps));
        assert_eq!([alpha(24.0), alpha(6.0), alpha(96.0)], [125, 150, 112]);
        assert_eq!([alpha(0.1), alpha(1e4)], [200, 103], "within limits");
        assert_eq!(Oracle::PAPER.alpha_of(Rate::from_mbps(1.0)), 120);
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
