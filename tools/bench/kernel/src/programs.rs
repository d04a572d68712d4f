//! The benchmark's own eBPF programs, and the kernel's statistics of all.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder, ProgramType};

use crate::{BenchError, system};

/// eBPF objects, aligned as the reader of the format wants them.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);
static PLAIN: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/plain.bpf.o")));
static SOFTIRQ: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/softirq.bpf.o")));

/// CUBIC in eBPF as the kernel has it, registered as long as this lives.
pub(crate) struct Plain {
    _object: Object,
    _link: Link,
}

impl Plain {
    /// The name under which it is registered.
    pub(crate) const NAME: &'static str = "trimtab_plain";

    pub(crate) fn load() -> Result<Self, BenchError> {
        let load = || {
            let mut object = ObjectBuilder::default().open_memory(&PLAIN.0)?.load()?;
            let mut map = object.maps_mut().find(|map| map.name() == OsStr::new("plain"));
            let link = map.as_mut().map(libbpf_rs::MapMut::attach_struct_ops).transpose()?;
            Ok((object, link))
        };
        let (object, link) = load().map_err(system::<libbpf_rs::Error>("load plain CUBIC"))?;
        let link = link.ok_or_else(|| system("load plain CUBIC")("it is not in the object"))?;
        Ok(Self { _object: object, _link: link })
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

/// What the kernel counts while [`Statistics`] lives. Programs of the same name, of another datapath, count together.
pub(crate) fn runs() -> Runs {
    let mut runs = Runs::new();
    for program in ProgInfoIter::default().filter(|p| p.ty == ProgramType::StructOps) {
        let sum = runs.entry(program.name.to_string_lossy().into_owned()).or_default();
        *sum = (sum.0 + program.run_cnt, sum.1 + program.run_time_ns);
    }
    runs
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
