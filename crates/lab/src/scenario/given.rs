//! What a user gives on the command line or in Python, in place of what a scenario file says.

use std::path::{Path, PathBuf};

use trimtab_steer::scheme::Scheme;
use trimtab_units::{Duration, Rate};

use super::{
    AppKind, AppSettings, Buffer, Mark, Probability, Scenario, ScenarioError, TraceSource,
    TransportKind,
};

/// Parts of a scenario by the names of the flags of `trimtab compare`. An empty list, or `None`, leaves
/// what the scenario says.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// What the users do.
    pub app: Vec<AppKind>,
    /// The schemes.
    pub cc: Vec<Scheme>,
    /// Traces of the bottleneck.
    pub traces: Vec<TraceSource>,
    /// What carries the data.
    pub transport: Option<TransportKind>,
    /// A file of requests that downloads replay.
    pub workload: Option<PathBuf>,
    /// The QoE model of all applications.
    pub qoe: Option<String>,
    /// Base round-trip times.
    pub rtt: Vec<Duration>,
    /// Sizes of the bottleneck's buffer.
    pub buffer: Vec<Buffer>,
    /// Probabilities of random loss.
    pub loss: Vec<Probability>,
    /// Most that each data packet is late.
    pub jitter: Vec<Duration>,
    /// Which packets the bottleneck marks.
    pub mark: Option<Mark>,
    /// Numbers of flows of each scheme.
    pub flows: Vec<u32>,
    /// How long each run lasts.
    pub duration: Option<Duration>,
    /// How many seeds each combination is run with.
    pub seeds: Option<u32>,
    /// The first of the seeds.
    pub first_seed: Option<u64>,
    /// Leave out points of the grid with less than this for each flow.
    pub share_min: Option<Rate>,
    /// So many points of the grid.
    pub thin: Option<u32>,
}

impl Given {
    /// The scenario of the file with these parts replaced. Without a file and without an application, a
    /// scheme and traces it is the demo.
    ///
    /// # Errors
    /// The file cannot be read or is no scenario, or what is given does not fit together.
    pub fn scenario(self, file: Option<&Path>) -> Result<Scenario, ScenarioError> {
        let bare = self.app.is_empty() && self.cc.is_empty() && self.traces.is_empty();
        let mut s = match file {
            Some(path) => Scenario::load(path)?,
            None if bare => Scenario::demo(),
            None => Scenario::default(),
        };
        if !self.app.is_empty() {
            s.app = self.app.into_iter().map(AppSettings::new).collect();
        }
        if let Some(file) = &self.workload {
            let replay = |app: &mut AppSettings| app.replay(file);
            if s.app.iter_mut().map(replay).filter(|&takes| takes).count() == 0 {
                return Err(ScenarioError::Invalid(
                    "only downloads replay a workload: add --app download (in Python: app=\"download\")"
                        .to_owned(),
                ));
            }
        }
        if let Some(qoe) = &self.qoe {
            s.app.iter_mut().for_each(|app| app.qoe = Some(qoe.clone()));
        }
        s.transport = self.transport.unwrap_or(s.transport);
        replace(&mut s.cc, self.cc);
        replace(&mut s.traces, self.traces);
        replace(&mut s.rtt, self.rtt);
        replace(&mut s.buffer, self.buffer);
        replace(&mut s.loss, self.loss);
        replace(&mut s.jitter, self.jitter);
        s.mark = self.mark.or(s.mark);
        replace(&mut s.flows, self.flows);
        s.duration = self.duration.unwrap_or(s.duration);
        s.seeds = self.seeds.unwrap_or(s.seeds);
        s.first_seed = self.first_seed.unwrap_or(s.first_seed);
        s.share_min = self.share_min.or(s.share_min);
        s.thin = self.thin.or(s.thin);
        s.validate()?;
        Ok(s)
    }
}

fn replace<T>(list: &mut Vec<T>, given: Vec<T>) {
    if !given.is_empty() {
        *list = given;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_given_is_the_demo_and_lists_replace_lists() {
        let demo = Given::default().scenario(None).unwrap();
        assert_eq!(demo.to_toml(), Scenario::demo().to_toml());
        let given = Given { seeds: Some(9), first_seed: Some(3), ..Given::default() };
        let changed = given.scenario(None).unwrap();
        assert_eq!((changed.seeds, changed.first_seed), (9, 3));
        assert_eq!(changed.cc.len(), demo.cc.len(), "the rest stays");
        let traces = vec!["constant:1Mbit/s".parse().unwrap()];
        let given = Given {
            app: vec![AppKind::bulk()],
            cc: vec!["cubic".parse().unwrap()],
            traces,
            rtt: vec![Duration::from_millis(7)],
            ..Given::default()
        };
        let grid = given.scenario(None).unwrap();
        assert_eq!((grid.traces.len(), grid.rtt), (1, vec![Duration::from_millis(7)]));
    }

    #[test]
    fn a_workload_needs_who_replays_it() {
        let vod = AppKind::named("vod").unwrap();
        let given = Given { app: vec![vod], workload: Some("w.txt".into()), ..Given::default() };
        let e = given.scenario(None).unwrap_err().to_string();
        assert!(e.contains("add --app download"), "{e}");
    }
}
