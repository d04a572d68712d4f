//! The benchmark's own eBPF programs, and the kernel's statistics of all.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;

use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use libbpf_rs::{Link, MapCore, MapFlags, MapType, Object, ObjectBuilder, ProgramType};

use crate::{BenchError, system};

/// eBPF objects, aligned as the reader of the format wants them.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);
static PLAIN: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/plain.bpf.o")));
static FLOOR: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/floor.bpf.o")));
static SOFTIRQ: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/softirq.bpf.o")));

/// What ours are compared with, registered as long as this lives: CUBIC in eBPF as the kernel has
/// it, and programs that do next to nothing.
pub(crate) struct Measures {
    _loaded: [(Object, Vec<Link>); 2],
}

impl Measures {
    /// The name of CUBIC.
    pub(crate) const PLAIN: &'static str = "trimtab_plain";
    /// Of a program that returns at once.
    pub(crate) const EMPTY: &'static str = "trimtab_empty";
    /// Of one that changes a cache line of a flow.
    pub(crate) const LINE: &'static str = "trimtab_line";

    pub(crate) fn load() -> Result<Self, BenchError> {
        let load = |object: &[u8]| {
            let mut object = ObjectBuilder::default().open_memory(object)?.load()?;
            let algorithms = object.maps_mut().filter(|map| map.map_type() == MapType::StructOps);
            let links =
                algorithms.map(|mut map| map.attach_struct_ops()).collect::<Result<_, _>>()?;
            Ok((object, links))
        };
        let fail = system::<libbpf_rs::Error>;
        let plain = load(&PLAIN.0).map_err(fail("load plain CUBIC"))?;
        let floor = load(&FLOOR.0).map_err(fail("load the programs that do nothing"))?;
        Ok(Self { _loaded: [plain, floor] })
    }
}

/// Adds up what the sender's TCP does in software interrupts, as long as it lives.
pub(crate) struct Softirq {
    object: Object,
    _links: Vec<Link>,
}

impl Softirq {
    /// `netns` is the inode of the sender's namespace, `threads` are those whose time is counted otherwise.
    pub(crate) fn load(netns: u32, threads: [i32; 2]) -> Result<Self, BenchError> {
        let function = kernel_function("tcp_pace_kick")?;
        let load = || {
            let mut object = ObjectBuilder::default().open_memory(&SOFTIRQ.0)?;
            for mut map in object.maps_mut() {
                if map.name().to_string_lossy().ends_with(".rodata") {
                    let Some(constants) = map.initial_value_mut() else { continue };
                    constants[..8].copy_from_slice(&function.to_ne_bytes());
                    constants[8..12].copy_from_slice(&netns.to_ne_bytes());
                }
            }
            let object = object.load()?;
            let links =
                object.progs_mut().map(|program| program.attach()).collect::<Result<_, _>>()?;
            Ok((object, links))
        };
        let (object, links) =
            load().map_err(system::<libbpf_rs::Error>("trace the sender's pacing timers"))?;
        let this = Self { object, _links: links };
        let mut value = [0; 24];
        value[16..20].copy_from_slice(&threads[0].to_ne_bytes());
        value[20..].copy_from_slice(&threads[1].to_ne_bytes());
        this.map(|map| map.update(&0u32.to_ne_bytes(), &value, MapFlags::ANY))?;
        Ok(this)
    }

    fn map<T>(
        &self,
        act: impl FnOnce(&libbpf_rs::Map<'_>) -> libbpf_rs::Result<T>,
    ) -> Result<T, BenchError> {
        let map = self.object.maps().find(|map| map.name() == OsStr::new("counted"));
        let map = map.ok_or_else(|| system("find a map")("it is not in the object"))?;
        act(&map).map_err(system("read what was counted"))
    }

    /// Nanoseconds so far.
    pub(crate) fn time_ns(&self) -> Result<u64, BenchError> {
        let value = self.map(|map| map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY))?;
        let first = value.as_deref().and_then(<[u8]>::first_chunk);
        first
            .map(|bytes| u64::from_ne_bytes(*bytes))
            .ok_or_else(|| system("read a map")("it is empty"))
    }
}

/// The address of a function of the kernel.
fn kernel_function(name: &str) -> Result<u64, BenchError> {
    let what = "find a function of the kernel in /proc/kallsyms";
    let text = std::fs::read_to_string("/proc/kallsyms").map_err(system(what))?;
    let line = text.lines().find(|line| line.split_whitespace().nth(2) == Some(name));
    let address = line.and_then(|line| line.split_whitespace().next());
    let address = address.and_then(|word| u64::from_str_radix(word, 16).ok()).filter(|&a| a != 0);
    address.ok_or_else(|| system(what)(name))
}

/// Runs and nanoseconds of each struct_ops program, by its name.
pub(crate) type Runs = BTreeMap<String, (u64, u64)>;

/// The numbers in the lines `key` of what the kernel tells of this process's open files.
fn open_ids(key: &str) -> Result<BTreeSet<u32>, BenchError> {
    let fail = "look for what this process has open in /proc/self/fdinfo";
    let open = std::fs::read_dir("/proc/self/fdinfo").map_err(system(fail))?;
    // One that was closed meanwhile is none of the programs'.
    let texts = open.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
    let id =
        |text: String| text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
    Ok(texts.filter_map(id).collect())
}

/// What the kernel counts of the programs that this process has loaded, while [`Statistics`] lives.
/// Agents and tests have others of the same names: those of this process are the ones of an object
/// (they share its BTF) of which this process has a program open, or a map.
pub(crate) fn runs() -> Result<Runs, BenchError> {
    let (programs, maps) = (open_ids("prog_id:")?, open_ids("map_id:")?);
    let with_maps = ProgInfoQueryOptions::default().include_map_ids(true);
    let all: Vec<_> = ProgInfoIter::with_query_opts(with_maps)
        .filter(|p| p.ty == ProgramType::StructOps)
        .collect();
    let is_open = |p: &&ProgramInfo| {
        programs.contains(&p.id) || p.map_ids.iter().any(|map| maps.contains(map))
    };
    let objects: BTreeSet<u32> = all.iter().filter(is_open).map(|p| p.btf_id).collect();
    let mut runs = Runs::new();
    for program in all.iter().filter(|p| objects.contains(&p.btf_id)) {
        let sum = runs.entry(program.name.to_string_lossy().into_owned()).or_default();
        *sum = (sum.0 + program.run_cnt, sum.1 + program.run_time_ns);
    }
    Ok(runs)
}

/// Has the kernel count how often and how long each program runs.
pub(crate) struct Statistics {
    before: String,
}

impl Statistics {
    const SWITCH: &'static str = "/proc/sys/kernel/bpf_stats_enabled";

    pub(crate) fn on() -> Result<Self, BenchError> {
        let fail = "turn the kernel's statistics of eBPF programs on";
        let before = std::fs::read_to_string(Self::SWITCH).map_err(system(fail))?;
        std::fs::write(Self::SWITCH, "1").map_err(system(fail))?;
        Ok(Self { before })
    }
}

impl Drop for Statistics {
    fn drop(&mut self) {
        // It was set a moment ago, by the same process.
        let _ = std::fs::write(Self::SWITCH, &self.before);
    }
}
