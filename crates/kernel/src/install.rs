//! Putting the programs into the kernel: for the first time, or in the place of those that another
//! version, or other options, have left there.

use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::sync::atomic::Ordering::{Relaxed, Release};

use libbpf_rs::btf::Btf;
use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{
    ErrorKind, Link, MapCore as _, MapFlags, MapHandle, MapMut, Object, ObjectBuilder, OpenObject,
};
use rustix::time::{ClockId, Timespec, clock_gettime};
use sha2::{Digest as _, Sha256};

use crate::algorithm::Algorithm;
use crate::datapath::{Options, map_memory};
use crate::error::{Error, said};
use crate::kernel::{self, Form, Registration};
use crate::knobs;
use crate::layout::{
    CA_NAME_SIZE, Control, LAYOUT_VERSION, SETTINGS_CLOCK_AT, SETTINGS_LEAST_AT, SETTINGS_MOST_AT,
    SETTINGS_NAMES_AT, SETTINGS_SIZE,
};
use crate::mapping::{Map, Mapping, point_to};
use crate::pins::{MAPS, Pins};
use crate::taken::{self, Taken};

/// The eBPF programs, aligned as the reader of the format wants them.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);
static OBJECT: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/trimtab.bpf.o")));

/// `tcp_congestion_ops` in `bpf/kernel.h` begins with the name, then come the flags.
const FLAGS_AT: usize = 16;
/// Any user may pick the algorithm (`TCP_CONG_NON_RESTRICTED`).
const UNRESTRICTED: u32 = 1;
/// The program that walks over listening sockets.
const RENEW: &str = "tt_renew";

const LOAD: &str = "load the eBPF programs";
const REGISTER: &str = "register the congestion control";

/// The programs with their options, in a number: what is in the kernel is the same where this is.
pub(crate) fn fingerprint(options: &Options) -> u64 {
    let mut hash = Sha256::new();
    hash.update(&OBJECT.0);
    hash.update(settings(options, 0));
    hash.update([u8::from(options.unrestricted)]);
    let hash = hash.finalize();
    // 0 says that nothing is complete.
    hash.first_chunk().map_or(1, |first| u64::from_be_bytes(*first)).max(1)
}

/// The object in the kernel, with nothing registered: it is gone when dropped.
struct Loaded {
    object: Object,
    form: Form,
    registration: Registration,
    /// Whether [`renew`](crate::renew) can walk over listening sockets.
    renews: bool,
}

impl Loaded {
    fn new(options: &Options) -> Result<Self, Error> {
        let btf = Btf::from_vmlinux().map_err(|_| Error::NoBtf)?;
        if !kernel::has_struct_ops(&btf) {
            return Err(Error::NoStructOps);
        }
        let (form, registration) = (Form::of(&btf)?, Registration::of(&btf));
        let renews = kernel::has_socket_walk(&btf);
        said::listen();
        let fail = |e: libbpf_rs::Error| Error::of(LOAD, &e);
        let mut builder = ObjectBuilder::default();
        let mut object = builder.open_memory(&OBJECT.0).map_err(fail)?;
        prepare(&mut object, options, form, registration).map_err(fail)?;
        for mut program in object.progs_mut().filter(|program| program.name() == RENEW) {
            program.set_autoload(renews);
        }
        let object = object.load().map_err(|e| Error::of_programs(LOAD, &e))?;
        Ok(Self { object, form, registration, renews })
    }

    /// The struct_ops map of an algorithm.
    fn ops(&mut self, algorithm: Algorithm) -> Result<MapMut<'_>, Error> {
        let name = struct_ops(algorithm, self.form);
        let mut maps = self.object.maps_mut();
        maps.find(|map| map.name() == OsStr::new(&name)).ok_or(Error::NoStructOps)
    }
}

/// Has the kernel take and verify every program, and forget them again. Nothing is registered, so no name is taken.
///
/// # Errors
/// What is in the way of [`Datapath::load`](crate::Datapath::load).
pub(crate) fn try_out() -> Result<(), Error> {
    let loaded = Loaded::new(&Options { slots: 1, ..Options::default() })?;
    walk(&loaded.object).map(drop)
}

/// Loads and registers. Where something is registered already, each name passes to the new programs
/// at once (`BPF_LINK_UPDATE`), so no program that picks one finds it missing; before Linux 6.4 it
/// is missing for a moment. Connections that run the former programs keep them, with maps that the
/// kernel frees with the last of them.
///
/// May be killed at any moment: what is in the folder then is not complete, and the next call begins anew.
pub(crate) fn install(options: &Options, pins: &Pins) -> Result<(), Error> {
    let mut loaded = Loaded::new(options)?;
    pins.make_folder()?;
    let next = pins.begin_next()?;
    for mut map in loaded.object.maps_mut() {
        if MAPS.iter().any(|name| map.name() == OsStr::new(name)) {
            let path = next.map(&map.name().to_string_lossy());
            map.pin(path).map_err(|e| Error::of("keep the maps", &e))?;
        }
    }
    next.keep_walk(&mut walk(&loaded.object)?)?;
    if loaded.renews {
        next.keep_renewal(&mut renewal(&loaded.object)?)?;
    }
    let control: Mapping<Control> = map_memory(&Map::of(&next.open_map("tt_control")?)?)?;
    let control = &control[0];
    write_defaults(control);
    Taken(map_memory(&Map::of(&next.open_map("tt_taken")?)?)?).begin(options.slots);
    control.slot_count.store(options.slots, Relaxed);
    control.cgroup_slots.store(u32::MAX, Relaxed);
    control.layout_version.store(LAYOUT_VERSION, Relaxed);

    match loaded.registration {
        Registration::Link => register_links(options, pins, &next, &mut loaded)?,
        Registration::Map => {
            pins.begin_replacing(&next)?;
            for algorithm in Algorithm::ALL {
                register_map(options, pins, &mut loaded, algorithm)?;
            }
        }
    }
    pins.unregister_others()?;
    pins.take_next()?;
    control.programs.store(fingerprint(options), Release);
    Ok(())
}

/// What is in service is touched only when all algorithms have what they need: names that were free
/// are ours by then, and those that are taken are taken by the links that the folder keeps.
fn register_links(
    options: &Options,
    pins: &Pins,
    next: &Pins,
    loaded: &mut Loaded,
) -> Result<(), Error> {
    let taken =
        |a: Algorithm| Error::NameTaken { name: options.name_of(a), path: pins.folder.clone() };
    let (mut fresh, mut kept) = (Vec::new(), Vec::new());
    for algorithm in Algorithm::ALL {
        // This also sets the map's value, which an update of the link needs.
        match loaded.ops(algorithm)?.attach_struct_ops() {
            Ok(link) => fresh.push((algorithm, link)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                // Not of this name, it cannot pass the name on: that is somebody else's.
                let link = pins.link(algorithm)?;
                let link = link.filter(|link| has_name(link, &options.name_of(algorithm)));
                kept.push((algorithm, link.ok_or_else(|| taken(algorithm))?));
            }
            Err(error) => return Err(Error::of(REGISTER, &error)),
        }
    }
    pins.begin_replacing(next)?;
    for (algorithm, link) in kept {
        point_to(&link, &loaded.ops(algorithm)?)
            .map_err(|e| Error::Kernel { what: REGISTER, reason: e.to_string() })?;
    }
    for (algorithm, mut link) in fresh {
        // It has another name than the one of before.
        pins.unregister(algorithm)?;
        pins.keep_link(algorithm, &mut link)?;
    }
    Ok(())
}

/// Whether a link has registered this name.
fn has_name(link: &Link, name: &str) -> bool {
    let Ok(LinkTypeInfo::StructOps(of)) = link.info().map(|link| link.info) else { return false };
    let map = MapHandle::from_map_id(of.map_id).ok();
    let value = map.and_then(|map| map.lookup(&[0; 4], MapFlags::ANY).ok()?);
    // Somewhere in `tcp_congestion_ops`, whose form differs from kernel to kernel.
    let name = format!("{name}\0");
    value.is_some_and(|value| value.windows(name.len()).any(|part| part == name.as_bytes()))
}

/// Before Linux 6.4: what was registered has to go first.
fn register_map(
    options: &Options,
    pins: &Pins,
    loaded: &mut Loaded,
    algorithm: Algorithm,
) -> Result<(), Error> {
    let fail = |e: libbpf_rs::Error| match e.kind() {
        ErrorKind::AlreadyExists => {
            Error::NameTaken { name: options.name_of(algorithm), path: pins.folder.clone() }
        }
        _ => Error::of(REGISTER, &e),
    };
    pins.unregister(algorithm)?;
    pins.keep_map(algorithm, &mut loaded.ops(algorithm)?, |ops| {
        // What the library calls a link is none, and would end the registration when it is dropped.
        ops.attach_struct_ops().map_err(fail).map(|mut link| link.disconnect())
    })
}

/// The walk over listening sockets.
fn renewal(object: &Object) -> Result<Link, Error> {
    let what = "load the walk over listening sockets (iter/tcp)";
    let missing = || Error::Kernel { what, reason: "the object has none".to_owned() };
    let program = object.progs_mut().find(|program| program.name() == RENEW);
    program.ok_or_else(missing)?.attach().map_err(|e| Error::of(what, &e))
}

/// The walk over the sockets of our connections.
fn walk(object: &Object) -> Result<Link, Error> {
    let what = "load the walk over the sockets of our connections (iter/bpf_sk_storage_map)";
    let missing = || Error::Kernel { what, reason: "the object has none".to_owned() };
    let mut tags = object.maps().filter(|map| map.name() == OsStr::new("tt_tags"));
    let mut programs = object.progs_mut().filter(|one| one.name() == OsStr::new("tt_walk_tags"));
    let (tags, program) = tags.next().zip(programs.next()).ok_or_else(missing)?;
    program.attach_iter(tags.as_fd()).map_err(|e| Error::of(what, &e))
}

pub(crate) fn write_defaults(control: &Control) {
    for algorithm in Algorithm::ALL {
        let words = algorithm.defaults(control);
        for (word, default) in words.iter().zip(knobs::defaults(algorithm)) {
            word.store(default, Relaxed);
        }
    }
}

/// The struct_ops map of the eBPF object that fits the kernel.
fn struct_ops(algorithm: Algorithm, form: Form) -> String {
    let since = match form {
        Form::Linux6_1 => "6_1",
        Form::Linux6_10 => "6_10",
        Form::Linux7_1 => "7_1",
    };
    format!("{}_{since}", algorithm.name())
}

/// What the common clock of senders (the time since 1970) says when `CLOCK_MONOTONIC` says zero, in
/// us. Copa's flows drain a queue together by it, also those of different hosts.
fn common_clock_us() -> u64 {
    let [common, own] = [ClockId::Realtime, ClockId::Monotonic].map(clock_gettime);
    let us = |time: Timespec| time.tv_sec * 1_000_000 + time.tv_nsec / 1000;
    (us(common) - us(own)).try_into().unwrap_or(0)
}

/// `tt_settings` of `bpf/layout.h`: the constants of the programs.
fn settings(options: &Options, clock_us: u64) -> [u8; SETTINGS_SIZE] {
    let mut settings = [0; SETTINGS_SIZE];
    settings[..SETTINGS_NAMES_AT].copy_from_slice(&options.slots.to_ne_bytes());
    for algorithm in Algorithm::ALL {
        let nth = algorithm.layout().number as usize - 1;
        let name = options.name_of(algorithm);
        let name_at = SETTINGS_NAMES_AT + nth * CA_NAME_SIZE;
        settings[name_at..name_at + name.len()].copy_from_slice(name.as_bytes());
        let place = nth * size_of::<knobs::Words>();
        for (at, words) in [
            (SETTINGS_LEAST_AT, knobs::least(algorithm)),
            (SETTINGS_MOST_AT, knobs::most(algorithm)),
        ] {
            let bytes = words.into_iter().flat_map(u32::to_ne_bytes);
            settings[at + place..].iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
        }
    }
    settings[SETTINGS_CLOCK_AT..].copy_from_slice(&clock_us.to_ne_bytes());
    settings
}

/// Settings that go in before the kernel sees the programs.
fn prepare(
    object: &mut OpenObject,
    options: &Options,
    form: Form,
    registration: Registration,
) -> libbpf_rs::Result<()> {
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let called = |form| Algorithm::ALL.into_iter().find(|a| struct_ops(*a, form) == name);
        if ["tt_slots", "tt_flows"].contains(&name.as_str()) {
            map.set_max_entries(options.slots)?;
        } else if name == "tt_taken" {
            map.set_max_entries(taken::words(options.slots))?;
        } else if let Some(algorithm) = called(form) {
            let name = options.name_of(algorithm);
            if registration == Registration::Map {
                map.set_map_flags(0)?; // not BPF_F_LINK
            }
            let Some(ops) = map.initial_value_mut() else { continue };
            ops[..FLAGS_AT].fill(0);
            ops[..name.len()].copy_from_slice(name.as_bytes());
            let flags = if options.unrestricted { UNRESTRICTED } else { 0 };
            ops[FLAGS_AT..FLAGS_AT + 4].copy_from_slice(&flags.to_ne_bytes());
        } else if Form::ALL.into_iter().any(|other| called(other).is_some()) {
            map.set_autocreate(false)?;
        } else if name.ends_with(".rodata") {
            // Its one constant, `tt_settings`.
            let Some(value) = map.initial_value_mut() else { continue };
            value.copy_from_slice(&settings(options, common_clock_us()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use libbpf_rs::MapType;

    use super::*;
    use crate::layout::Slot;

    /// Of an algorithm's programs for different kernels this machine can run only one.
    fn instructions(name: &str) -> Vec<(u8, u8, u8, i16, i32)> {
        let object = ObjectBuilder::default().open_memory(&OBJECT.0).expect("well-formed");
        let program = object.progs().find(|program| program.name() == OsStr::new(name));
        let program = program.expect("it is in the object");
        let list = program.insns().iter();
        list.map(|i| (i.code, i.dst_reg(), i.src_reg(), i.off, i.imm)).collect()
    }

    /// The same of any function of the object, by its table of symbols (ELF64), also of one that is
    /// no program.
    fn function(name: &str) -> Vec<(u8, u8, u8, i16, i32)> {
        fn word<const N: usize>(at: usize) -> [u8; N] {
            *OBJECT.0[at..].first_chunk().expect("within the file")
        }
        let short = |at: usize| u16::from_le_bytes(word(at)) as usize;
        let int = |at: usize| u32::from_le_bytes(word(at)) as usize;
        let long = |at: usize| u64::from_le_bytes(word(at)) as usize;
        let section = |number: usize| long(0x28) + number * short(0x3a);
        let (place, size) = (|at: usize| long(at + 0x18), |at: usize| long(at + 0x20));
        let symbols = (0..short(0x3c)).map(section).find(|at| int(at + 4) == 2);
        let symbols = symbols.expect("it has a table of symbols");
        let names = place(section(int(symbols + 0x28)));
        let is_called = |at: &usize| {
            let rest = &OBJECT.0[names + int(*at)..];
            rest.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
        };
        let symbol = (0..size(symbols) / 24).map(|number| place(symbols) + number * 24);
        let symbol = symbol.into_iter().find(is_called).unwrap_or_else(|| panic!("no {name}"));
        let begin = place(section(short(symbol + 6))) + long(symbol + 8);
        let list = OBJECT.0[begin..begin + long(symbol + 16)].chunks_exact(8);
        list.map(|i| {
            let off = i16::from_le_bytes([i[2], i[3]]);
            let imm = i32::from_le_bytes([i[4], i[5], i[6], i[7]]);
            (i[0], i[1] & 15, i[1] >> 4, off, imm)
        })
        .collect()
    }

    /// The names of the programs in the object.
    fn programs() -> Vec<String> {
        let object = ObjectBuilder::default().open_memory(&OBJECT.0).expect("well-formed");
        object.progs().map(|program| program.name().to_string_lossy().into_owned()).collect()
    }

    /// How the names of `cong_control` before Linux 6.10 end.
    const BEFORE_6_10: &str = "_before_6_10";

    /// The program before 6.10 is the same, instruction by instruction, but for where it finds the
    /// rate sample among its arguments (8 bytes each).
    #[test]
    fn the_programs_before_and_after_6_10_differ_in_the_argument_alone() {
        let pairs: Vec<_> = programs().into_iter().filter(|n| n.ends_with(BEFORE_6_10)).collect();
        assert_eq!(pairs.len(), Algorithm::ALL.len() - 1, "all but CUBIC: {pairs:?}");
        for name in pairs.iter().map(|name| name.trim_end_matches(BEFORE_6_10)) {
            let (now, before) = (instructions(name), instructions(&format!("{name}{BEFORE_6_10}")));
            assert_eq!(now.len(), before.len());
            let differing: Vec<_> = now.iter().zip(&before).filter(|(a, b)| a != b).collect();
            assert_eq!(differing.len(), 1, "{name}: {differing:?}");
            let (now, before) = differing[0];
            // A load of 8 bytes from the context; the rate sample is the fourth argument, and was the second.
            assert_eq!((now.0, now.3, before.3), (0x79, 24, 8));
            assert_eq!((now.0, now.1, now.2, now.4), (before.0, before.1, before.2, before.4));
        }
    }

    /// The knobs are read after the word that tells of them, on machines that reorder loads, too:
    /// an atomic with a result is the full barrier that BPF has (instruction-set.rst, "Atomic
    /// operations"). `flow.rs` writes with Release. That it orders cannot be tested on x86; that it
    /// is there can.
    #[test]
    fn knobs_and_orders_are_read_after_the_word_that_tells_of_them() {
        const ATOMIC_WORD: u8 = 0xc3;
        /// Add or or, and BPF_FETCH.
        const WITH_RESULT: [i32; 2] = [0x01, 0x41];
        let version = std::mem::offset_of!(Slot, version) as i16;
        let next = std::mem::offset_of!(Slot, next) as i16;
        let atomics = |name: &str, at: i16| {
            let found = function(name);
            let is_one =
                |i: &&(u8, _, _, i16, i32)| i.0 == ATOMIC_WORD && WITH_RESULT.contains(&i.4);
            found.iter().filter(is_one).filter(|i| i.3 == at).count()
        };
        for algorithm in Algorithm::ALL {
            let lower = algorithm.name();
            // Those that read them in few of the acknowledgements do so in functions of their own.
            let name = match algorithm {
                Algorithm::Copa | Algorithm::Bbr | Algorithm::Bbr3 => {
                    format!("tt_{lower}_on_ack_event")
                }
                Algorithm::Cubic => format!("tt_{lower}_publish"),
                Algorithm::Muses => format!("tt_{lower}_conclude"),
                Algorithm::Vivace => format!("tt_{lower}_ack"),
            };
            assert!(atomics(&name, version) >= 1, "{name}: knobs");
            assert!(atomics(&name, next) >= 1, "{name}: orders");
        }
        // Where it takes over from another is a function of its own.
        for algorithm in Algorithm::ALL {
            let name = format!("tt_{}_take", algorithm.name());
            assert!(atomics(&name, version) >= 1, "{name}: knobs");
        }
    }

    /// What libbpf makes of the object for a kernel that this machine does not run: each algorithm
    /// has the one form of the operations that fits, and no other is created.
    #[test]
    fn every_form_of_the_operations_has_one_of_each_algorithm() {
        for form in Form::ALL {
            let mut builder = ObjectBuilder::default();
            let mut object = builder.open_memory(&OBJECT.0).expect("well-formed");
            prepare(&mut object, &Options::default(), form, Registration::Link).expect("set");
            let created = object.maps().filter(|map| map.map_type() == MapType::StructOps);
            let created: Vec<_> = created
                .filter(libbpf_rs::OpenMapImpl::autocreate)
                .map(|map| map.name().to_string_lossy().into_owned())
                .collect();
            let mut expected = Algorithm::ALL.map(|algorithm| struct_ops(algorithm, form));
            expected.sort();
            let mut found = created;
            found.sort();
            assert_eq!(found, expected);
        }
    }
}
