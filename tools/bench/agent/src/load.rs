//! An agent with a crowd of connections.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use trimtab_agent::{Status, ask_status};
use trimtab_kernel::{Doctor, Health, Options};

use crate::Figure;
use crate::crowd::Crowd;
use crate::process::{cpu_s, memory_mb};

const PORT: u16 = 7201;
const SUFFIX: &str = "_w";
const SLOTS: u32 = 1 << 16;
/// The agent adapts to the load within this.
const SETTLE: Duration = Duration::from_secs(8);

/// What is asked of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) open: usize,
    pub(crate) active: usize,
    pub(crate) seconds: u64,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("TCP cannot be tuned here:\n{0}")]
    Doctor(String),
    #[error("cannot {what}: {source}")]
    System { what: &'static str, source: io::Error },
    #[error("the agent did not come: {0}")]
    Agent(String),
    #[error(transparent)]
    Datapath(#[from] trimtab_kernel::Error),
}

fn system(what: &'static str) -> impl Fn(io::Error) -> LoadError {
    move |source| LoadError::System { what, source }
}

/// The agent's process; gone, with what it has loaded, when dropped.
struct Agent {
    child: Child,
    pins: PathBuf,
    folder: tempfile::TempDir,
}

impl Agent {
    fn start() -> Result<Self, LoadError> {
        let folder = tempfile::tempdir().map_err(system("make a folder"))?;
        let pins = PathBuf::from("/sys/fs/bpf/trimtab-bench-agent");
        trimtab_kernel::unload_pins(&pins)?; // what a benchmark that was killed has left
        let config = folder.path().join("agent.toml");
        let text = format!(
            "[sockets]\nfolder = {:?}\n[datapath]\nfolder = {pins:?}\nsuffix = {SUFFIX:?}\nslots = {SLOTS}\n\
             [[rule]]\nname = \"crowd\"\nport = {PORT}\nqoe = \"download\"\nsteer = \"mortise\"\n",
            folder.path().join("run")
        );
        std::fs::write(&config, text).map_err(system("write a configuration"))?;
        let child = std::env::current_exe()
            .and_then(|me| {
                Command::new(me).arg("agent").arg(config).stderr(Stdio::inherit()).spawn()
            })
            .map_err(system("start the agent"))?;
        let agent = Self { child, pins, folder };
        let start = Instant::now();
        while agent.status().is_err() {
            if start.elapsed() > Duration::from_secs(20) {
                return Err(LoadError::Agent("it does not answer within 20 s".to_owned()));
            }
            sleep(Duration::from_millis(20));
        }
        Ok(agent)
    }

    fn status(&self) -> Result<Status, LoadError> {
        ask_status(&self.folder.path().join("run/agent.sock"))
            .map_err(|e| LoadError::Agent(e.to_string()))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Err(error) = trimtab_kernel::unload_pins(&self.pins) {
            eprintln!("{}: {error}", self.pins.display());
        }
    }
}

impl Load {
    pub(crate) fn figures(self) -> Result<Vec<Figure>, LoadError> {
        let bad: Vec<String> = Doctor::default()
            .examine()
            .iter()
            .filter(|finding| finding.health == Health::Bad)
            .map(ToString::to_string)
            .collect();
        if !bad.is_empty() {
            return Err(LoadError::Doctor(bad.join("\n")));
        }
        let agent = Agent::start()?;
        let options = Options { suffix: SUFFIX.to_owned(), ..Options::default() };
        let _crowd = Crowd::new(&options.name(), PORT, self.open, self.active)
            .map_err(system("open the connections"))?;
        sleep(SETTLE);
        let pid = agent.child.id();
        let gone = || LoadError::Agent("it has ended".to_owned());
        let (before, cpu_before) = (agent.status()?, cpu_s(pid).ok_or_else(gone)?);
        let start = Instant::now();
        sleep(Duration::from_secs(self.seconds));
        let (after, cpu_after) = (agent.status()?, cpu_s(pid).ok_or_else(gone)?);
        let took = start.elapsed().as_secs_f64();
        let cpu = cpu_after - cpu_before;
        let memory = memory_mb(pid, "VmHWM").ok_or_else(gone)?;
        let private = memory_mb(pid, "RssAnon").ok_or_else(gone)?;
        let reports = (after.reports - before.reports) as f64;
        let sum = |status: &Status| status.rules.iter().map(|r| r.tally.decisions).sum::<u64>();
        let decisions = (sum(&after) - sum(&before)) as f64;
        let figure = |name, value, unit| Figure { name, value, unit, limit: None };
        Ok(vec![
            figure("connections open", after.open as f64, ""),
            figure("of these active", after.active as f64, ""),
            Figure { limit: Some(5.0), ..figure("processor", cpu / took * 100.0, "% of a core") },
            Figure { limit: Some(100.0), ..figure("memory, at most", memory, "MB") },
            figure("of this not shared with the kernel", private, "MB"),
            figure("reports in a second", reports / took, ""),
            figure("decisions in a second", decisions / took, ""),
            figure("processor time per report, all in all", cpu / reports * 1e6, "us"),
            figure("intervals, in round trips", after.stretch, ""),
        ])
    }
}
