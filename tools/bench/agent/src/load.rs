//! An agent with a crowd of connections.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use trimtab_agent::{Status, ask_flows, ask_status};
use trimtab_kernel::{Doctor, Health, Options};

use crate::Figure;
use crate::crowd::{Crowd, ports};
use crate::process::{Group, cpu_s, memory_mb};

const PORT: u16 = 7201;
pub(crate) const SUFFIX: &str = "_w";
/// The agent adapts to the load within this, and idle connections give back what they can.
const SETTLE: Duration = Duration::from_secs(20);

/// What is asked of it.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) open: usize,
    pub(crate) active: usize,
    pub(crate) seconds: u64,
    pub(crate) slots: u32,
    pub(crate) slot_after: String,
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

pub(crate) fn system(what: &'static str) -> impl Fn(io::Error) -> LoadError {
    move |source| LoadError::System { what, source }
}

/// The agent's process; gone, with what it has loaded, when dropped.
pub(crate) struct Agent {
    child: Child,
    pins: PathBuf,
    folder: tempfile::TempDir,
    /// Its processes alone, with what the kernel keeps for them.
    group: Option<Group>,
}

impl Agent {
    /// One that steers the connections of a load, whose first port is this; `spawn` starts it in the
    /// network namespace that its rule is about.
    pub(crate) fn start(
        load: &Load,
        port: u16,
        spawn: impl FnOnce(Command) -> io::Result<Child>,
    ) -> Result<Self, LoadError> {
        let bad: Vec<String> = Doctor::default()
            .examine()
            .iter()
            .filter(|finding| finding.health == Health::Bad)
            .map(ToString::to_string)
            .collect();
        if !bad.is_empty() {
            return Err(LoadError::Doctor(bad.join("\n")));
        }
        let folder = tempfile::tempdir().map_err(system("make a folder"))?;
        let pins = PathBuf::from("/sys/fs/bpf/trimtab-bench-agent");
        trimtab_kernel::unload_pins(&pins)?; // what a benchmark that was killed has left
        let config = folder.path().join("agent.toml");
        let ports = ports(port, load.open);
        let group = Group::new();
        let text = format!(
            "[sockets]\nfolder = {:?}\n[datapath]\nfolder = {pins:?}\nsuffix = {SUFFIX:?}\nslots = {}\n\
             slot_after = {:?}\n[[rule]]\nname = \"crowd\"\nport = \"{}-{}\"\nqoe = \"download\"\nsteer = \"mortise\"\n",
            folder.path().join("run"),
            load.slots,
            load.slot_after,
            ports.start,
            ports.end - 1,
        );
        std::fs::write(&config, text).map_err(system("write a configuration"))?;
        let child = std::env::current_exe()
            .and_then(|me| {
                let mut command = Command::new(me);
                command.arg("agent").arg(config).args(group.as_ref().map(Group::procs));
                spawn(command)
            })
            .map_err(system("start the agent"))?;
        let agent = Self { child, pins, folder, group };
        let start = Instant::now();
        while agent.status().is_err() {
            if start.elapsed() > Duration::from_secs(20) {
                return Err(LoadError::Agent("it does not answer within 20 s".to_owned()));
            }
            sleep(Duration::from_millis(20));
        }
        Ok(agent)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its memory, with what the kernel keeps for it; `None` where the system does not count that.
    pub(crate) fn with_maps_mb(&self) -> Option<f64> {
        self.group.as_ref()?.memory_mb()
    }

    /// How old the last report of a busy connection is on average, in round trips, where there are so
    /// many in a second of each: half the time between two, by the median round-trip time.
    fn age(&self, reports_per_s: f64) -> Result<f64, LoadError> {
        let flows = ask_flows(&self.folder.path().join("run/agent.sock"))
            .map_err(|e| LoadError::Agent(e.to_string()))?;
        let mut rtts: Vec<f64> = flows.iter().filter_map(|flow| flow.rtt_ms).collect();
        rtts.sort_by(f64::total_cmp);
        let rtt_s = rtts.get(rtts.len() / 2).copied().unwrap_or(f64::NAN) / 1e3;
        Ok(0.5 / reports_per_s / rtt_s)
    }

    pub(crate) fn status(&self) -> Result<Status, LoadError> {
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
    pub(crate) fn figures(&self) -> Result<Vec<Figure>, LoadError> {
        let mut crowd = Crowd::new(self.active).map_err(system("make a link"))?;
        let agent = Agent::start(self, PORT, |command| crowd.spawn(command))?;
        let pid = agent.pid();
        let gone = || LoadError::Agent("it has ended".to_owned());
        let private_before = memory_mb(pid, "RssAnon").ok_or_else(gone)?;
        let options = Options { suffix: SUFFIX.to_owned(), ..Options::default() };
        crowd
            .come(&options.name(), PORT, self.open, self.active)
            .map_err(system("open the connections"))?;
        sleep(SETTLE);
        let (before, cpu_before) = (agent.status()?, cpu_s(pid).ok_or_else(gone)?);
        let start = Instant::now();
        sleep(Duration::from_secs(self.seconds));
        let (after, cpu_after) = (agent.status()?, cpu_s(pid).ok_or_else(gone)?);
        let took = start.elapsed().as_secs_f64();
        let cpu = cpu_after - cpu_before;
        let memory = memory_mb(pid, "VmHWM").ok_or_else(gone)?;
        let private = memory_mb(pid, "RssAnon").ok_or_else(gone)?;
        let reports = (after.reports - before.reports) as f64;
        let age = agent.age(reports / took / self.active as f64)?;
        let known = after.open.max(1) as f64;
        // In MB; with thousands of them the busy ones count for little.
        let each = (private - private_before) / known;
        let with_maps = agent.with_maps_mb().unwrap_or(f64::NAN);
        let sum = |status: &Status| status.rules.iter().map(|r| r.tally.decisions).sum::<u64>();
        let decisions = (sum(&after) - sum(&before)) as f64;
        let figure = |name, value, unit| Figure { name, value, unit, limit: None };
        Ok(vec![
            figure("connections open", self.open as f64, ""),
            figure("of these known to the agent", after.open as f64, ""),
            figure("of these active", after.active as f64, ""),
            figure("of these with a slot", after.datapath.taken as f64, ""),
            Figure { limit: Some(6.0), ..figure("processor", cpu / took * 100.0, "% of a core") },
            figure("memory, at most", memory, "MB"),
            figure("of this not shared with the kernel", private, "MB"),
            Figure {
                limit: Some(300.0),
                ..figure("memory with the kernel's maps", with_maps, "MB")
            },
            figure("memory per connection that the agent knows", each * 1e3, "kB"),
            figure("reports in a second", reports / took, ""),
            Figure {
                limit: Some(2.0),
                ..figure("age of a busy one's last report, in RTTs", age, "")
            },
            figure("decisions in a second", decisions / took, ""),
            figure("processor time per report, all in all", cpu / reports * 1e6, "us"),
            figure("intervals, in round trips", after.stretch, ""),
        ])
    }
}
