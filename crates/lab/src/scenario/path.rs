//! Paths of their own, in place of a grid: each is a link with its round-trip time, buffer and loss, and
//! with the traffic that shares it.

use serde::{Deserialize, Serialize};
use trimtab_units::Duration;

use super::grid::Cell;
use super::source::{NamedTrace, named};
use super::{
    Buffer, Competitor, Delay, Probability, Scenario, ScenarioError, TraceSource, quantity, twice,
};

/// One path.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathSettings {
    /// Its name in the results.
    pub name: String,
    /// The bottleneck's capacity over time.
    #[serde(with = "quantity::one")]
    pub trace: TraceSource,
    /// Base round-trip time.
    #[serde(with = "quantity::one")]
    pub rtt: Delay,
    /// Size of the bottleneck's drop-tail buffer.
    #[serde(with = "quantity::one")]
    pub buffer: Buffer,
    /// Probability of independent random loss, before the bottleneck. Default: 0%.
    #[serde(with = "quantity::one", default)]
    pub loss: Probability,
    /// Most that each data packet is late beyond the round-trip time. Default: none.
    #[serde(with = "quantity::one", default)]
    pub jitter: Duration,
    /// Flows of the scheme. Default: 1.
    #[serde(default = "super::one_flow")]
    pub flows: u32,
    /// Flows that compete with the scheme's on this path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub competitor: Vec<Competitor>,
}

impl PathSettings {
    /// It as a cell.
    pub(super) fn cell(&self) -> Cell {
        let Self { buffer, loss, jitter, flows, .. } = *self;
        Cell { rtt: self.rtt.clone(), buffer, loss, jitter, flows, rivals: None }
    }

    /// Its trace under its own name.
    pub(super) fn trace(&self) -> Result<NamedTrace, ScenarioError> {
        let traces = named(std::slice::from_ref(&self.trace))?;
        let [NamedTrace { source, .. }] = &traces[..] else {
            let (name, n) = (&self.name, traces.len());
            return Err(ScenarioError::Invalid(format!(
                "path {name}: its trace names {n} traces: name one"
            )));
        };
        Ok(NamedTrace { name: self.name.clone(), source: source.clone() })
    }
}

/// Whether the scenario's paths make sense, next to its grid.
pub(super) fn validate(scenario: &Scenario) -> Result<(), ScenarioError> {
    let fail = |message: String| Err(ScenarioError::Invalid(message));
    let default = Scenario::default();
    let of_grid = [
        ("traces", !scenario.traces.is_empty()),
        ("split", scenario.split.is_some()),
        ("rtt", scenario.rtt != default.rtt),
        ("buffer", scenario.buffer != default.buffer),
        ("loss", scenario.loss != default.loss),
        ("jitter", scenario.jitter != default.jitter),
        ("flows", scenario.flows != default.flows),
        ("share_min", scenario.share_min.is_some()),
        ("competitor", !scenario.competitor.is_empty()),
        ("rivals", !scenario.rivals.is_empty()),
    ];
    if let Some((key, _)) = of_grid.iter().find(|(_, is_set)| *is_set) {
        return fail(format!(
            "`{key}` is of a grid, and this scenario has [[path]] tables with values of their own: \
             change them there, or leave them out"
        ));
    }
    if let Some(twice) = twice(scenario.path.iter().map(|path| path.name.as_str())) {
        return fail(format!("two paths are called {twice}: give one another name"));
    }
    if let Some(path) = scenario.path.iter().find(|path| path.flows == 0) {
        return fail(format!("path {}: flows is at least 1", path.name));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use trimtab_units::Bytes;

    use super::*;

    const TWO: &str = "cc = [\"newreno\", \"cubic\"]\nseeds = 2\n[[app]]\nkind = \"bulk\"\n\
        [[path]]\nname = \"home\"\ntrace = \"constant:12Mbit/s\"\nrtt = \"30ms\"\nbuffer = \"2BDP\"\n\
        [[path]]\nname = \"office\"\ntrace = \"constant:48Mbit/s\"\nrtt = \"20ms\"\n\
        buffer = \"60KB\"\nloss = \"1%\"\nflows = 2\n\
        [[path.competitor]]\ncc = \"bbr\"\nflows = 3\n";

    #[test]
    fn each_path_has_its_own_values_and_traffic() {
        let plan = Scenario::parse(TWO).unwrap().plan().unwrap();
        assert_eq!(plan.jobs.len(), 2 * 2 * 2);
        let of = |name: &str| {
            let is = |job: &&super::super::Job| plan.traces[job.trace].name == name;
            plan.jobs.iter().filter(is).collect::<Vec<_>>()
        };
        let (home, office) = (of("home"), of("office"));
        assert_eq!((home.len(), office.len()), (4, 4));
        assert_eq!(home[0].cell.buffer, Buffer::Bdp(2.0));
        assert_eq!(office[0].cell.buffer, Buffer::Bytes(Bytes::new(60_000)));
        assert_eq!((home[0].cell.flows, office[0].cell.flows), (1, 2));
        assert!(plan.competitors(home[0]).is_empty());
        let [rival] = plan.competitors(office[0]) else { panic!() };
        assert_eq!((rival.cc.to_string().as_str(), rival.flows), ("bbr", 3));
        let again = Scenario::parse(&plan.scenario.to_toml()).unwrap();
        assert_eq!(again.plan().unwrap().jobs, plan.jobs);
    }

    #[test]
    fn paths_and_a_grid_exclude_each_other() {
        let e = |text: String| Scenario::parse(&text).unwrap().plan().unwrap_err().to_string();
        let with = |line: &str| e(format!("{line}\n{TWO}"));
        assert!(with("traces = \"constant:1Mbit/s\"").starts_with("`traces` is of a grid"));
        assert!(with("rtt = \"25ms\"").starts_with("`rtt` is of a grid"));
        assert!(e(TWO.replace("office", "home")).contains("two paths are called home"));
        assert!(e(TWO.replace("flows = 2", "flows = 0")).contains("path office: flows"));
        let several = e(TWO.replace("constant:48Mbit/s", "demo"));
        assert!(several.contains("path office: its trace names") && several.contains("name one"));
        let bound = e(TWO.replace("cc = \"bbr\"", "cc = \"omniscient\""));
        assert!(bound.contains("cannot compete"), "{bound}");
    }
}
