//! Parts of a scenario from the command line or from Python; they replace those of a scenario file.

use std::path::{Path, PathBuf};

use trimtab_steer::scheme::Scheme;
use trimtab_units::{Duration, Rate};

use super::{
    AppKind, AppSettings, Buffer, Delay, Mark, Probability, Scenario, ScenarioError, TraceSource,
    TransportKind,
};

/// Parts of a scenario, by the names of the flags of `trimtab compare`. An empty list or `None`
/// keeps the scenario's own.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Applications of the users.
    pub app: Vec<AppKind>,
    /// The schemes.
    pub cc: Vec<Scheme>,
    /// Traces of the bottleneck.
    pub traces: Vec<TraceSource>,
    /// Transport protocol.
    pub transport: Option<TransportKind>,
    /// A file of requests that downloads replay.
    pub workload: Option<PathBuf>,
    /// The QoE model of all applications.
    pub qoe: Option<String>,
    /// Base round-trip times.
    pub rtt: Vec<Delay>,
    /// Sizes of the bottleneck's buffer.
    pub buffer: Vec<Buffer>,
    /// Probabilities of random loss.
    pub loss: Vec<Probability>,
    /// Maximum extra delay per data packet.
    pub jitter: Vec<Duration>,
    /// When the bottleneck marks packets (ECN).
    pub mark: Option<Mark>,
    /// Numbers of flows of each scheme.
    pub flows: Vec<u32>,
    /// Duration of each run.
    pub duration: Option<Duration>,
    /// Number of seeds of each combination.
    pub seeds: Option<u32>,
    /// The first of the seeds.
    pub first_seed: Option<u64>,
    /// Smallest share of a flow: points of the grid with less are left out.
    pub share_min: Option<Rate>,
    /// Number of points of the grid to run, spread evenly.
    pub thin: Option<u32>,
}

impl Given {
    /// The scenario of the file with these parts replaced. Without a file it is the demo's, or the
    /// default one where an application, a scheme or traces are given.
    ///
    /// # Errors
    /// The file cannot be read or is no scenario, or the parts do not fit together.
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
                let advice = "add --app download (in Python: app=\"download\")";
                let message = format!("only downloads replay a workload: {advice}");
                return Err(ScenarioError::Invalid(message));
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
            rtt: vec!["7ms".parse().unwrap()],
            ..Given::default()
        };
        let grid = given.scenario(None).unwrap();
        assert_eq!((grid.traces.len(), grid.rtt), (1, vec![Duration::from_millis(7).into()]));
    }

    #[test]
    fn each_part_replaces_the_one_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("s.toml");
        let text = "cc = [\"cubic\"]\ntraces = [\"constant:9Mbit/s\"]\nrtt = \"30ms\"\n\
                    loss = \"1%\"\nseeds = 4\n[[app]]\nkind = \"bulk\"\n";
        std::fs::write(&file, text).unwrap();
        let kept = Given::default().scenario(Some(&file)).unwrap();
        assert_eq!(kept.to_toml(), Scenario::load(&file).unwrap().to_toml());
        let given = Given {
            app: vec![AppKind::named("download").unwrap()],
            cc: vec!["bbr".parse().unwrap()],
            traces: vec!["constant:3Mbit/s".parse().unwrap()],
            transport: Some(TransportKind::Tcp),
            qoe: Some("1 / T".to_owned()),
            rtt: vec!["5ms".parse().unwrap()],
            buffer: vec!["70KB".parse().unwrap()],
            loss: vec!["2%".parse().unwrap()],
            jitter: vec![Duration::from_millis(1)],
            mark: Some("10%".parse().unwrap()),
            flows: vec![3],
            duration: Some(Duration::from_millis(2500)),
            seeds: Some(2),
            first_seed: Some(8),
            share_min: Some("0.5Mbit/s".parse().unwrap()),
            thin: Some(1),
            workload: None,
        };
        let replaced = given.scenario(Some(&file)).unwrap().to_toml();
        for part in [
            "download",
            "bbr",
            "3Mbit/s",
            "tcp",
            "1 / T",
            "5ms",
            "70KB",
            "2%",
            "1ms",
            "10%",
            "flows = [3]",
            "2500ms",
            "seeds = 2",
            "first_seed = 8",
            "500kbit/s",
            "thin = 1",
        ] {
            assert!(replaced.contains(part), "{part}: {replaced}");
        }
        for gone in ["cubic", "9Mbit/s", "30ms", "1%", "bulk"] {
            assert!(!replaced.contains(gone), "{gone}: {replaced}");
        }
    }

    #[test]
    fn a_workload_without_a_download_is_refused() {
        let vod = AppKind::named("vod").unwrap();
        let given = Given { app: vec![vod], workload: Some("w.txt".into()), ..Given::default() };
        let e = given.scenario(None).unwrap_err().to_string();
        assert!(e.contains("add --app download"), "{e}");
    }
}
