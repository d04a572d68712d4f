//! A course of study: from a seed to everything that one episode needs.

use std::path::PathBuf;
use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use trimtab_net::Part;

use crate::condition::Condition;
use crate::episode::{Draw, Episode, Rules, Traffic};
use crate::links::{self, LinksError, NamedLink};
use crate::rivals::RivalsConfig;

/// Seeds of the designs of conditions: what a policy is judged on is another design.
const TRAIN_DESIGN: u64 = 1;
const TEST_DESIGN: u64 = 2;
const VALIDATE_DESIGN: u64 = 3;

/// What episodes are drawn from.
#[derive(Clone, Debug)]
pub struct CourseConfig {
    /// What they have in common.
    pub rules: Rules,
    /// To learn, to choose by or to be judged: of the links, recorded and generated, and of the
    /// conditions.
    pub part: Part,
    /// How many conditions the design has.
    pub conditions: usize,
    /// How many generated links there are.
    pub generated: usize,
    /// How many generated Wi-Fi links there are; no policy learns on them.
    pub wifi: usize,
    /// A folder of recordings, and the kinds to take from it: folders in it.
    pub recorded: Option<(PathBuf, Vec<String>)>,
    /// The applications.
    pub traffic: Vec<Traffic>,
    /// How many connections share the path, to draw from: one at least.
    pub flows: Vec<usize>,
    /// The flows of others on the path.
    pub rivals: RivalsConfig,
    /// The algorithm of the first period; `None` draws one.
    pub start: Option<usize>,
}

/// A course, ready to draw from. Everything that is the same for all episodes is shared.
#[derive(Clone, Debug)]
pub struct Course {
    rules: Arc<Rules>,
    links: Vec<NamedLink>,
    conditions: Vec<Condition>,
    traffic: Vec<Traffic>,
    flows: Vec<usize>,
    rivals: RivalsConfig,
    start: Option<usize>,
}

/// Why a course cannot be.
#[derive(Debug, thiserror::Error)]
pub enum CourseError {
    /// A recording cannot be had.
    #[error(transparent)]
    Links(#[from] LinksError),
    /// There is nothing to draw one part from.
    #[error("a course needs at least one of {0}: ask for more")]
    Nothing(&'static str),
    /// The start is no algorithm of the rules.
    #[error("there are {count} algorithms, so none has number {start}")]
    Start {
        /// The number.
        start: usize,
        /// How many there are.
        count: usize,
    },
}

impl Course {
    /// Generates the links, reads the recordings and lays out the conditions.
    ///
    /// # Errors
    /// A recording cannot be read, or there are no links, conditions, applications or algorithms.
    pub fn new(config: CourseConfig) -> Result<Self, CourseError> {
        let count = config.rules.algorithms.len();
        if let Some(start) = config.start.filter(|&start| start >= count) {
            return Err(CourseError::Start { start, count });
        }
        let mut links = links::generated(config.generated, config.part);
        links.extend(links::generated_wifi(config.wifi));
        if let Some((root, kinds)) = &config.recorded {
            links.extend(links::recorded(root, kinds, config.part)?);
        }
        let design = match config.part {
            Part::Train => TRAIN_DESIGN,
            Part::Validate => VALIDATE_DESIGN,
            Part::Test => TEST_DESIGN,
        };
        for (what, is_missing) in [
            ("the algorithms", count == 0),
            ("the links", links.is_empty()),
            ("the conditions", config.conditions == 0),
            ("the applications", config.traffic.is_empty()),
            ("the rivals' counts", config.rivals.counts.is_empty()),
            ("the rivals' kinds", config.rivals.kinds.is_empty()),
            ("the connections", config.flows.is_empty() || config.flows.contains(&0)),
            ("the periods", config.rules.periods == 0 || config.rules.period.is_zero()),
        ] {
            if is_missing {
                return Err(CourseError::Nothing(what));
            }
        }
        Ok(Self {
            rules: Arc::new(config.rules),
            links,
            conditions: Condition::design(config.conditions, design),
            traffic: config.traffic,
            flows: config.flows,
            rivals: config.rivals,
            start: config.start,
        })
    }

    /// What its episodes have in common.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The same, for an [`Episode`].
    pub fn shared(&self) -> Arc<Rules> {
        self.rules.clone()
    }

    /// Its links.
    pub fn links(&self) -> &[NamedLink] {
        &self.links
    }

    /// What rivals are drawn from.
    pub(crate) fn rivals(&self) -> &RivalsConfig {
        &self.rivals
    }

    /// What the episode of a seed is made of, and the name of its link: as in Floo §4.3.1, any link
    /// with any condition.
    pub fn draw(&self, seed: u64) -> (Draw, &str) {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut below = |n: usize| (random.next_u64() % n as u64) as usize;
        let link = &self.links[below(self.links.len())];
        let condition = self.conditions[below(self.conditions.len())];
        let traffic = self.traffic[below(self.traffic.len())];
        let any = below(self.rules.algorithms.len());
        let start = self.start.unwrap_or(any);
        let seed = random.next_u64();
        // Drawn last, so that courses with one kind keep the episodes that they had before there were
        // more.
        let flows = self.flows[(random.next_u64() % self.flows.len() as u64) as usize];
        let mut capacity = link.capacity.clone();
        links::enter_anywhere(&mut capacity, &mut random);
        let length = self.rules.period * u64::from(self.rules.periods);
        let rivals = self.rivals.draw(length, &mut random);
        let luck = seed;
        (Draw { link: capacity, condition, traffic, flows, rivals, start, seed, luck }, &link.name)
    }

    /// What a visit to the path of a seed is made of: link, condition, application and company are
    /// the seed's; when the link is entered, the requests and the losses are the visit's own. Visit
    /// 0 is [`draw`](Self::draw)'s.
    pub fn visit(&self, seed: u64, visit: u64) -> Draw {
        let mut draw = self.draw(seed).0;
        if visit > 0 {
            let mut random = Pcg64Mcg::seed_from_u64(draw.seed.wrapping_add(visit));
            draw.seed = random.next_u64();
            draw.luck = draw.seed;
            links::enter_anywhere(&mut draw.link, &mut random);
        }
        draw
    }

    /// The episode of a seed, its first period run.
    pub fn episode(&self, seed: u64) -> Episode {
        Episode::new(self.rules.clone(), &self.draw(seed).0)
    }

    /// The same, begun with the algorithm of this number.
    ///
    /// # Panics
    /// There is no algorithm of this number.
    pub fn begun_with(&self, seed: u64, start: usize) -> Episode {
        Episode::new(self.rules.clone(), &Draw { start, ..self.draw(seed).0 })
    }
}

#[cfg(test)]
mod tests {
    use trimtab_cc::migrate::Switch;
    use trimtab_net::Capacity;
    use trimtab_units::Duration;

    use super::*;
    use crate::Objective;

    /// The best algorithm of a link's first minutes would otherwise be that of the link.
    #[test]
    fn episodes_enter_a_link_at_different_times() {
        let algorithms = ["cubic", "bbr"].map(|name| name.parse().unwrap());
        let rules = Rules {
            algorithms: algorithms.into(),
            period: Duration::from_secs(12),
            periods: 2,
            switch: Switch::Full,
            objective: Objective::Mean,
        };
        let course = Course::new(CourseConfig {
            rules,
            part: Part::Train,
            conditions: 2,
            generated: 1,
            wifi: 0,
            recorded: None,
            traffic: vec![Traffic::Web],
            flows: vec![1],
            rivals: RivalsConfig::default(),
            start: None,
        })
        .unwrap();
        let offset = |seed| match course.draw(seed).0.link {
            Capacity::Trace { offset, .. } => offset,
            _ => panic!("the first generated link has a trace"),
        };
        let offsets: std::collections::BTreeSet<Duration> = (0..10).map(offset).collect();
        assert_eq!(offsets.len(), 10);
        assert_eq!(offset(3), offset(3));
        // A later visit to the path is at another time, and asks for other things.
        let first = course.visit(3, 0);
        let later: Vec<Draw> = (1..5).map(|visit| course.visit(3, visit)).collect();
        let place = |draw: &Draw| match draw.link {
            Capacity::Trace { offset, .. } => offset,
            _ => panic!("a trace"),
        };
        assert_eq!((first.seed, place(&first)), (course.draw(3).0.seed, offset(3)));
        assert!(later.iter().all(|draw| draw.condition == first.condition));
        let seeds: std::collections::BTreeSet<u64> = later.iter().map(|draw| draw.seed).collect();
        let places: std::collections::BTreeSet<Duration> = later.iter().map(place).collect();
        assert_eq!((seeds.len(), places.len()), (4, 4));
        assert_eq!(course.visit(3, 2).seed, later[1].seed);
    }
}
