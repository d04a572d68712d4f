//! Rivals: flows of others on the same path, which no policy decides about.
//!
//! What a choice costs is what its own flows wait. What it does to others is kept apart from that:
//! [`Outcome::harm`](crate::Outcome::harm).

use rand::{Rng, RngExt};
use trimtab_apps::{App, BulkConfig};
use trimtab_cc::Spec;
use trimtab_units::{Duration, Time};

use crate::episode::Traffic;

/// The most rivals of an episode.
pub const RIVALS_MAX: usize = 64;

/// What a rival is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RivalKind {
    /// Bulk data by CUBIC.
    Cubic,
    /// Bulk data by BBR.
    Bbr,
    /// Bulk data by BBRv3.
    Bbr3,
    /// Bulk data by Copa.
    Copa,
    /// Web pages with a user's pauses, by CUBIC.
    Web,
    /// Files of a CDN, by CUBIC.
    Download,
}

impl RivalKind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Cubic, Self::Bbr, Self::Bbr3, Self::Copa, Self::Web, Self::Download];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
            Self::Bbr3 => "bbr3",
            Self::Copa => "copa",
            Self::Web => "web",
            Self::Download => "download",
        }
    }

    /// Its algorithm.
    pub fn spec(self) -> Spec {
        let name = match self {
            Self::Web | Self::Download => "cubic",
            other => other.name(),
        };
        Spec::new(name).expect("an algorithm of the table")
    }

    /// Its client, which asks for this long.
    pub(crate) fn client(self, length: Duration, seed: u64) -> App {
        match self {
            Self::Web => Traffic::Web.client(length, seed),
            Self::Download => Traffic::Download.client(length, seed),
            _ => App::bulk(&BulkConfig::default()),
        }
    }
}

/// One rival.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rival {
    /// What it is.
    pub kind: RivalKind,
    /// When it starts.
    pub start: Time,
    /// When it stops.
    pub stop: Time,
    /// Seed of its requests.
    pub seed: u64,
}

/// What rivals are drawn from.
#[derive(Clone, Debug)]
pub struct RivalsConfig {
    /// How many there are, to draw from. `[0]` for none.
    pub counts: Vec<usize>,
    /// What each is, to draw from: one at least.
    pub kinds: Vec<RivalKind>,
}

impl Default for RivalsConfig {
    /// None.
    fn default() -> Self {
        Self { counts: vec![0], kinds: RivalKind::ALL.to_vec() }
    }
}

impl RivalsConfig {
    /// Draws the rivals of an episode of this length. Each starts within its first half. One in two
    /// stays to the end, the others stop at a time that is drawn.
    pub(crate) fn draw(&self, length: Duration, random: &mut impl Rng) -> Vec<Rival> {
        let count = self.counts[random.random_range(0..self.counts.len())];
        let rival = |_| {
            let kind = self.kinds[random.random_range(0..self.kinds.len())];
            let start = length.mul_f64(0.5 * random.random::<f64>());
            let stays = random.random::<bool>();
            let share = random.random::<f64>();
            let left = length - start;
            let lasts = if stays { left } else { left.mul_f64(share) };
            let seed = random.next_u64();
            Rival { kind, start: Time::ZERO + start, stop: Time::ZERO + start + lasts, seed }
        };
        (0..count).map(rival).collect()
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;

    #[test]
    fn rivals_come_and_go_within_the_episode() {
        let config = RivalsConfig { counts: vec![0, 8], ..RivalsConfig::default() };
        let length = Duration::from_secs(100);
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let drawn: Vec<_> = (0..60).map(|_| config.draw(length, &mut random)).collect();
        let empty = drawn.iter().filter(|rivals| rivals.is_empty()).count();
        assert!((15..45).contains(&empty), "{empty} of 60 without rivals");
        let rivals: Vec<Rival> = drawn.into_iter().flatten().collect();
        let end = Time::ZERO + length;
        assert!(rivals.iter().all(|r| r.start <= r.stop && r.stop <= end));
        assert!(rivals.iter().all(|r| r.start <= Time::ZERO + length / 2));
        let stay = rivals.iter().filter(|r| r.stop == end).count() as f64 / rivals.len() as f64;
        assert!((0.35..0.65).contains(&stay), "{stay} stay to the end");
        for kind in RivalKind::ALL {
            assert!(rivals.iter().any(|r| r.kind == kind), "{}", kind.name());
        }
    }
}
