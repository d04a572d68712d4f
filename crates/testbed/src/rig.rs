//! What all runs of a comparison share: the algorithm in eBPF, and how true the links were.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use trimtab_emu::{Fidelity, Report, ServerSide, Topology};
use trimtab_kernel::{Datapath, Error, Options, unload_pins};
use trimtab_lab::run::datapath::RunError;
use trimtab_lab::run::prepare::Prepared;
use trimtab_lab::run::record::Measurement;
use trimtab_lab::scenario::{Job, Scenario};

use crate::admission::{self, Place};
use crate::course;
use crate::error::RealError;

/// Where what is loaded is kept while it is needed: a folder for each [`Rig`], named for its
/// process and its number there.
const FOLDER: &str = "/sys/fs/bpf";
const PREFIX: &str = "trimtab-compare-";
/// Slots: more than the flows of any run that real time allows.
const SLOTS: u32 = 4096;
/// The kernel knows each name once. So many are tried.
const NAMES: u32 = 16;
/// Servers listen on ports from here on.
const PORT_MIN: u16 = 10_000;

/// The equipment for runs on this machine's kernel. Any number of runs can be made at once.
#[derive(Debug)]
pub struct Rig {
    kernel: String,
    /// The algorithms in eBPF, where a scheme needs it; locked while a connection is made with it.
    copa: Option<(Datapath, Mutex<()>)>,
    port: AtomicU16,
    fidelity: Mutex<Fidelity>,
}

impl Rig {
    /// Checks that the scenario can be run here, and loads what it needs. What is loaded is gone when the value is
    /// dropped.
    ///
    /// # Errors
    /// A scheme is not to be had on this kernel, or rights or parts of the kernel are missing: one message that
    /// says what to do.
    pub fn new(scenario: &Scenario) -> Result<Self, RealError> {
        admission::check(scenario)?;
        let places = scenario.schemes().map(Place::of);
        let places = places.collect::<Result<Vec<Place>, _>>()?;
        if !rustix::process::geteuid().is_root() {
            return Err(RealError::NotRoot);
        }
        Self::for_runs(places.iter().any(|place| !matches!(place, Place::Kernel(_))))
    }

    /// For runs of root, with eBPF or without.
    pub(crate) fn for_runs(needs_ebpf: bool) -> Result<Self, RealError> {
        // Whether links can be made shows before the first run.
        drop(Topology::new(ServerSide::Private)?);
        let copa = if needs_ebpf { Some((load()?, Mutex::new(()))) } else { None };
        Ok(Self {
            kernel: kernel(),
            copa,
            port: AtomicU16::new(PORT_MIN),
            fidelity: Mutex::default(),
        })
    }

    /// Counts the link of a run in.
    pub(crate) fn add(&self, report: &Report) {
        lock(&self.fidelity).add(report);
    }

    /// How true the links have been so far.
    pub fn fidelity(&self) -> Fidelity {
        *lock(&self.fidelity)
    }

    /// The algorithms in eBPF, for one caller at a time.
    ///
    /// # Panics
    /// When no scheme needs it: [`Rig::new`] looked at them all.
    pub(crate) fn datapath(&self) -> (&Datapath, MutexGuard<'_, ()>) {
        let (datapath, alone) = self.copa.as_ref().expect("loaded, for a scheme needs it");
        (datapath, lock(alone))
    }

    /// A port that no open connection of this process has at its server's side.
    pub(crate) fn next_port(&self) -> u16 {
        let next = |port: u16| Some(port.checked_add(1).unwrap_or(PORT_MIN));
        self.port.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or(PORT_MIN)
    }
}

impl trimtab_lab::run::datapath::Datapath for Rig {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn system(&self) -> Option<String> {
        Some(self.kernel.clone())
    }

    /// One: runs at once take time from each other.
    fn jobs(&self) -> Option<usize> {
        Some(1)
    }

    fn remarks(&self, prepared: &Prepared) -> Vec<String> {
        prepared.left_out(&admission::runs)
    }

    /// Takes the scenario's duration, and what outstanding requests take after it.
    fn measure(&self, prepared: &Prepared, job: &Job) -> Result<Measurement, RunError> {
        let (measurement, report) = course::run(self, prepared, job)?;
        self.add(&report);
        Ok(measurement)
    }

    fn warnings(&self) -> Vec<String> {
        let fidelity = self.fidelity();
        if fidelity.is_good() { Vec::new() } else { vec![fidelity.to_string()] }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some((datapath, _)) = self.copa.take() {
            // What stays is removed by the next process that makes runs.
            let _ = datapath.unload();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The kernel's name and version.
pub(crate) fn kernel() -> String {
    format!("Linux {}", rustix::system::uname().release().to_string_lossy())
}

/// How many datapaths this process has made places for.
static LOADED: AtomicU32 = AtomicU32::new(0);

/// A folder and a suffix that no other datapath has, for a process that loads one by itself.
pub(crate) fn place_of_its_own() -> Result<(PathBuf, String), RealError> {
    remove_leftovers();
    let process = std::process::id();
    let number = LOADED.fetch_add(1, Ordering::Relaxed);
    let folder = Path::new(FOLDER).join(format!("{PREFIX}{process}-{number}"));
    let taken = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .map_err(RealError::system("read which congestion controls there are"))?;
    let is_free = |suffix: &String| {
        !taken
            .split_ascii_whitespace()
            .any(|name| name.starts_with("trimtab_") && name.ends_with(suffix.as_str()))
    };
    let mut suffixes =
        (0..NAMES).map(|tried| suffix(process.wrapping_add(number).wrapping_add(tried)));
    let suffix = suffixes.find(is_free).ok_or(RealError::NoName { tried: NAMES })?;
    Ok((folder, suffix))
}

/// Loads the algorithms under a name and in a folder of its own: no agent, and no other comparison, shares its knobs.
fn load() -> Result<Datapath, RealError> {
    remove_leftovers();
    let process = std::process::id();
    let number = LOADED.fetch_add(1, Ordering::Relaxed);
    let folder = Path::new(FOLDER).join(format!("{PREFIX}{process}-{number}"));
    let mut tried = 0;
    loop {
        let suffix = suffix(process.wrapping_add(number).wrapping_add(tried));
        let options = Options { folder: folder.clone(), suffix, slots: SLOTS, unrestricted: false };
        tried += 1;
        match Datapath::load(&options) {
            Err(Error::NameTaken { .. }) if tried < NAMES => {}
            loaded => return Ok(loaded?),
        }
    }
}

/// Two characters for a number: the kernel's names have no room for more.
fn suffix(number: u32) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let digit = |place: u32| char::from(DIGITS[(number / 36_u32.pow(place) % 36) as usize]);
    [digit(1), digit(0)].iter().collect()
}

/// Removes what processes that were killed have left.
fn remove_leftovers() {
    let Ok(entries) = std::fs::read_dir(FOLDER) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_gone = |process: &str| !PathBuf::from("/proc").join(process).exists();
        if name.to_str().and_then(process_of).is_some_and(is_gone) {
            // Another comparison that starts may be doing the same.
            let _ = unload_pins(&entry.path());
        }
    }
}

/// The process whose folder this is.
fn process_of(folder: &str) -> Option<&str> {
    Some(folder.strip_prefix(PREFIX)?.split_once('-')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_name_their_process() {
        assert_eq!(process_of("trimtab-compare-4711-0"), Some("4711"));
        assert_eq!(process_of("trimtab"), None);
    }

    #[test]
    fn suffixes_fit_the_kernels_names_and_differ() {
        let all: std::collections::BTreeSet<String> = (4_000_000..4_001_000).map(suffix).collect();
        assert_eq!(all.len(), 1000);
        assert!(all.iter().all(|s| s.len() == 2));
    }

    fn rig() -> Rig {
        Rig {
            kernel: kernel(),
            copa: None,
            port: AtomicU16::new(65_534),
            fidelity: Mutex::default(),
        }
    }

    #[test]
    fn ports_begin_again_behind_the_last_one() {
        let rig = rig();
        assert_eq!([(); 4].map(|()| rig.next_port()), [65_534, 65_535, PORT_MIN, PORT_MIN + 1]);
    }

    #[test]
    fn a_rig_warns_where_its_links_were_not_exact() {
        use trimtab_lab::run::datapath::Datapath as _;
        let rig = rig();
        assert_eq!((rig.name(), rig.jobs(), rig.warnings()), ("kernel", Some(1), vec![]));
        assert!(rig.system().unwrap().starts_with("Linux "), "{:?}", rig.system());
        lock(&rig.fidelity).lost_elsewhere = 1;
        assert_eq!(rig.warnings().len(), 1);
    }

    /// Before any right is asked for.
    #[test]
    fn what_the_kernel_cannot_run_is_refused_first() {
        let refused = |text: &str| {
            let text =
                format!("{text}\ntraces = [\"constant:8Mbit/s\"]\n[[app]]\nkind = \"download\"\n");
            Rig::new(&Scenario::parse(&text).unwrap()).unwrap_err().to_string()
        };
        let quic = refused("transport = \"quic\"\ncc = [\"cubic\"]");
        assert!(quic.contains("--transport tcp"), "{quic}");
        let bound = refused("transport = \"tcp\"\ncc = [\"cubic\", \"omniscient\"]");
        assert!(bound.starts_with("omniscient: ") && bound.contains("simulator"), "{bound}");
    }
}
