//! Flows that compete with the scheme's: when they come and go, and sets of them as an axis.

use serde::{Deserialize, Serialize};
use trimtab_steer::scheme::Scheme;
use trimtab_units::Duration;

use super::{AppKind, Competitor, Scenario, ScenarioError, twice};

/// A set of competitors, one value of the grid's axis `rivals`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rivals {
    /// Its name in the results.
    pub name: String,
    /// Who they are; none for a scheme that is alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub competitor: Vec<Competitor>,
}

/// A time for which a competitor asks for data, on a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// When it begins, from the start of the run.
    pub start: Duration,
    /// How long it is; `None` to the end of the run.
    pub length: Option<Duration>,
}

impl Competitor {
    /// One flow of a scheme with this application, from the beginning of a run to its end.
    pub fn new(cc: Scheme, app: AppKind) -> Self {
        let (start, stop, on, off) = (Duration::ZERO, None, None, None);
        Self { cc, flows: 1, start, stop, on, off, app, qoe: None }
    }

    /// Its turns in a run of this duration; at least one.
    pub fn turns(&self, duration: Duration) -> Vec<Turn> {
        let end = self.stop.map_or(duration, |stop| stop.min(duration));
        let length = |start: Duration, until: Duration| {
            let cut = until.min(end);
            (cut < duration).then(|| cut - start)
        };
        let (Some(on), Some(off)) = (self.on, self.off) else {
            return vec![Turn { start: self.start, length: length(self.start, end) }];
        };
        let mut turns = Vec::new();
        let mut start = self.start;
        while start < end || turns.is_empty() {
            turns.push(Turn { start, length: length(start, start + on) });
            start = start + on + off;
        }
        turns
    }

    /// The share of the measured part of a run, from `warmup` to `duration`, in which a turn asks
    /// for data: 0 to 1.
    pub fn active_share(turn: Turn, warmup: Duration, duration: Duration) -> f64 {
        let end = turn.length.map_or(duration, |length| (turn.start + length).min(duration));
        let active = end - turn.start.max(warmup);
        active.as_secs_f64() / (duration - warmup).as_secs_f64()
    }
}

/// Whether the scenario's competitors make sense.
pub(super) fn validate(scenario: &Scenario) -> Result<(), ScenarioError> {
    let fail = |message: String| Err(ScenarioError::Invalid(message));
    if !scenario.rivals.is_empty() && !scenario.competitor.is_empty() {
        return fail(
            "a scenario has [[competitor]] tables or [[rivals]], not both: move the competitors \
             into each set of rivals"
                .to_owned(),
        );
    }
    if let Some(twice) = twice(scenario.rivals.iter().map(|set| set.name.as_str())) {
        return fail(format!("two sets of rivals are called {twice}: give one another name"));
    }
    for c in scenario.competitors() {
        let cc = &c.cc;
        if cc.is_bound() {
            return fail(format!("{cc} sees what no sender sees, so it cannot compete"));
        }
        if c.stop.is_some_and(|stop| stop <= c.start) {
            return fail(format!("competitor {cc}: it stops before it starts"));
        }
        if c.on.is_some() != c.off.is_some() {
            return fail(format!("competitor {cc}: `on` and `off` go together"));
        }
        let least = Duration::from_millis(100);
        if c.on.is_some_and(|on| on < least) || c.off.is_some_and(|off| off < least) {
            return fail(format!("competitor {cc}: `on` and `off` are at least {least}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: &str = "cc = [\"cubic\"]\ntraces = [\"constant:9Mbit/s\"]\nflows = [1, 2]\n\
        duration = \"60s\"\n[[app]]\nkind = \"bulk\"\n";

    fn seconds(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    fn competitor(text: &str) -> Competitor {
        toml::from_str(&format!("cc = \"cubic\"\n{text}")).unwrap()
    }

    #[test]
    fn turns_come_and_go_until_the_end() {
        let turns = |text: &str| -> Vec<(u64, Option<u64>)> {
            let turns = competitor(text).turns(seconds(60));
            turns.iter().map(|t| (t.start.as_millis(), t.length.map(Duration::as_millis))).collect()
        };
        assert_eq!(turns(""), [(0, None)]);
        assert_eq!(turns("start = \"5s\""), [(5000, None)]);
        assert_eq!(turns("start = \"5s\"\nstop = \"20s\""), [(5000, Some(15_000))]);
        assert_eq!(
            turns("start = \"5s\"\non = \"20s\"\noff = \"10s\""),
            [(5000, Some(20_000)), (35_000, Some(20_000))]
        );
        assert_eq!(
            turns("on = \"40s\"\noff = \"10s\""),
            [(0, Some(40_000)), (50_000, None)],
            "the last one ends with the run"
        );
    }

    #[test]
    fn a_turn_is_active_for_a_share_of_what_is_measured() {
        let share = |start, length| {
            let turn = Turn { start: seconds(start), length };
            Competitor::active_share(turn, seconds(10), seconds(60))
        };
        assert_eq!((share(0, None), share(35, None)), (1.0, 0.5));
        assert_eq!((share(5, Some(seconds(10))), share(0, Some(seconds(5)))), (0.1, 0.0));
    }

    #[test]
    fn sets_of_rivals_are_an_axis() {
        let text = format!(
            "{GRID}[[rivals]]\nname = \"alone\"\n[[rivals]]\nname = \"2 bbr\"\n\
             [[rivals.competitor]]\ncc = \"bbr\"\nflows = 2\nstop = \"30s\"\napp = \"web\"\n"
        );
        let plan = Scenario::parse(&text).unwrap().plan().unwrap();
        let found: Vec<(u32, usize)> =
            plan.jobs.iter().map(|job| (job.cell.flows, plan.competitors(job).len())).collect();
        assert_eq!(found, [(1, 0), (1, 1), (2, 0), (2, 1)]);
        let again = Scenario::parse(&plan.scenario.to_toml()).unwrap();
        assert_eq!(again.plan().unwrap().jobs, plan.jobs);
    }

    #[test]
    fn mistakes_are_told() {
        let e = |more: &str| {
            Scenario::parse(&format!("{GRID}{more}")).unwrap().plan().unwrap_err().to_string()
        };
        let one = |more: &str| e(&format!("[[competitor]]\ncc = \"cubic\"\n{more}"));
        assert!(one("on = \"1s\"\n").contains("go together"));
        assert!(one("on = \"1ms\"\noff = \"1s\"\n").contains("at least 100ms"));
        assert!(one("start = \"9s\"\nstop = \"8s\"\n").contains("before it starts"));
        assert!(one("[[rivals]]\nname = \"x\"\n").contains("not both"));
        let twice = e("[[rivals]]\nname = \"x\"\n[[rivals]]\nname = \"x\"\n");
        assert!(twice.contains("called x"), "{twice}");
    }
}
