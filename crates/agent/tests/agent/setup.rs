//! An agent in a process of its own, with a datapath and sockets of its own.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use trimtab_agent::{FlowView, Status, ask_flows, ask_status};
use trimtab_emu::Namespace;

/// The file of the test that is an agent, when its environment names it.
pub(crate) const CONFIG_VARIABLE: &str = "TRIMTAB_TEST_AGENT_CONFIG";

/// What an agent of the tests needs. Its datapath is gone when it is dropped.
pub(crate) struct Setup {
    folder: tempfile::TempDir,
    pins: PathBuf,
    suffix: String,
    _claim: File,
}

impl Setup {
    pub(crate) fn new(suffix: &str) -> Self {
        let claim = crate::common::claim(suffix);
        let pins = PathBuf::from(format!("/sys/fs/bpf/trimtab-test-agent{suffix}"));
        // What a test that was killed has left.
        trimtab_kernel::unload_pins(&pins).expect("clean up");
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder, pins, suffix: suffix.to_owned(), _claim: claim }
    }

    /// The name under which connections pick the algorithm.
    pub(crate) fn algorithm(&self) -> String {
        format!("trimtab_copa{}", self.suffix)
    }

    pub(crate) fn options(&self) -> trimtab_kernel::Options {
        trimtab_kernel::Options {
            folder: self.pins.clone(),
            suffix: self.suffix.clone(),
            slots: 1 << 14,
            ..trimtab_kernel::Options::default()
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder().join("run/agent.sock")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.folder().join("agent.toml")
    }

    /// Writes a configuration: what is given, and the folders. `first` stands before all tables.
    pub(crate) fn configure(&self, first: &str, rules: &str) {
        self.configure_sockets(first, "", rules);
    }

    /// The same, with more about the sockets.
    pub(crate) fn configure_sockets(&self, first: &str, sockets: &str, rules: &str) {
        self.write(first, sockets, "", rules);
    }

    /// The same, with more about the datapath.
    pub(crate) fn configure_datapath(&self, datapath: &str, rules: &str) {
        self.write("", "", datapath, rules);
    }

    fn write(&self, first: &str, sockets: &str, datapath: &str, rules: &str) {
        let run = self.folder().join("run");
        let text = format!(
            "{first}\n[sockets]\nfolder = {run:?}\n{sockets}\n[datapath]\nfolder = {:?}\n\
             suffix = {:?}\nslots = 16384\nslot_after = \"0 B\"\n{datapath}\n{rules}",
            self.pins, self.suffix
        );
        std::fs::write(self.config(), text).expect("write the configuration");
    }

    /// Starts an agent.
    pub(crate) fn spawn(&self) -> Agent {
        self.spawn_with(&[])
    }

    /// Starts an agent with more in its environment.
    pub(crate) fn spawn_with(&self, environment: &[(&str, &OsStr)]) -> Agent {
        let (mut command, log) = self.command();
        let child = command.envs(environment.iter().copied()).spawn().expect("start the agent");
        Agent { child, log, socket: self.socket() }
    }

    fn command(&self) -> (Command, PathBuf) {
        let log = self.folder().join(format!("log-{}", rustix::process::getpid()));
        let file = File::options().create(true).append(true).open(&log).expect("a log");
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command
            .args(["--exact", "agent_in_a_process_of_its_own", "--nocapture"])
            .env(CONFIG_VARIABLE, self.config())
            .stdout(Stdio::null())
            .stderr(file);
        (command, log)
    }

    /// Starts an agent in a network namespace, and waits until it answers.
    pub(crate) fn start_at(&self, place: &Namespace) -> Agent {
        let (mut command, log) = self.command();
        let child = place.run(move || command.spawn()).expect("start the agent");
        self.started(Agent { child, log, socket: self.socket() })
    }

    /// Starts an agent and waits until it answers.
    pub(crate) fn start(&self) -> Agent {
        self.started(self.spawn())
    }

    /// Waits until an agent answers.
    pub(crate) fn started(&self, mut agent: Agent) -> Agent {
        let start = std::time::Instant::now();
        while agent.status().is_none() {
            let ended = agent.child.try_wait().expect("wait");
            assert!(
                ended.is_none() && start.elapsed().as_secs() < 60,
                "{ended:?}: {}",
                agent.log()
            );
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        agent
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        if let Err(error) = trimtab_kernel::unload_pins(&self.pins) {
            eprintln!("{}: {error}", self.pins.display());
        }
    }
}

/// The processes that a process has started.
fn children(pid: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Behind the name, which may have any letters, stand the state and the parent.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    numbers.filter(|one| parent(one) == Some(pid)).collect()
}

pub(crate) struct Agent {
    child: Child,
    log: PathBuf,
    socket: PathBuf,
}

impl Agent {
    pub(crate) fn status(&self) -> Option<Status> {
        ask_status(&self.socket).ok().filter(|status| status.pid == self.child.id())
    }

    pub(crate) fn flows(&self) -> Vec<FlowView> {
        ask_flows(&self.socket).expect("the agent answers")
    }

    /// The connection with this local port.
    pub(crate) fn flow(&self, port: u16) -> Option<FlowView> {
        let end = format!(":{port}");
        self.flows().into_iter().find(|flow| flow.local.ends_with(&end))
    }

    /// What it has said.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("a signal");
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The process that does all but the loading.
    pub(crate) fn steerer(&self) -> u32 {
        children(self.pid()).first().copied().expect("the agent has started its steerer")
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("wait")
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
