//! Loading, adopting and unloading; the table of connections.

use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use libbpf_rs::btf::Btf;
use libbpf_rs::{Link, MapCore, MapHandle, Object, ObjectBuilder, OpenObject};
use trimtab_cc::muses::Trees;

use crate::algorithm::Algorithm;
use crate::error::{Error, said};
use crate::events::Events;
use crate::flow::{Flow, FlowId};
use crate::kernel::{self, Form, Registration};
use crate::knobs;
use crate::layout::{
    CA_NAME_SIZE, Control, LAYOUT_VERSION, MODELS_MAX, SETTINGS_LEAST_AT, SETTINGS_MOST_AT,
    SETTINGS_NAMES_AT, SETTINGS_SIZE, Slot,
};
use crate::mapping::Mapping;
use crate::models::Models;
use crate::pins::Pins;
use crate::towards::{By, Table, Towards};
use crate::walk::Walk;

/// The eBPF programs, aligned as the reader of the format wants them.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);
static OBJECT: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/trimtab.bpf.o")));

/// The maps that are kept, by their name in the object.
const MAPS: [&str; 7] =
    ["tt_slots", "tt_control", "tt_free", "tt_events", "tt_models", "tt_nodes", TOWARDS];
/// Knobs of connections to come by where they go.
const TOWARDS: &str = "tt_towards_knobs";
/// The kernel's names end after so many bytes, the last a zero (`TCP_CA_NAME_MAX`).
const NAME_MAX: usize = 15;
/// `tcp_congestion_ops` in `bpf/kernel.h` begins with the name, then come the flags.
const FLAGS_AT: usize = 16;
/// Any user may pick the algorithm (`TCP_CONG_NON_RESTRICTED`).
const UNRESTRICTED: u32 = 1;
/// More slots than this are a mistake: they would take 2 GB.
const SLOTS_MAX: u32 = 1 << 20;

/// What to load, and where to keep it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder that keeps it, on a bpf file system. Each folder is a datapath of its own.
    pub folder: PathBuf,
    /// Appended to the algorithms' names, `trimtab_copa` and the like: at most 2 letters, digits or `_`. For
    /// tests, since the kernel knows each name once.
    pub suffix: String,
    /// Slots, one per connection: 2.2 kB each. Connections beyond run with the default knobs, unseen.
    pub slots: u32,
    /// Whether users without privilege may pick the algorithms for their sockets.
    pub unrestricted: bool,
}

impl Default for Options {
    /// `/sys/fs/bpf/trimtab`, no suffix, 16,384 slots (37 MB of the kernel's memory), for all users.
    fn default() -> Self {
        Self {
            folder: PathBuf::from("/sys/fs/bpf/trimtab"),
            suffix: String::new(),
            slots: 1 << 14,
            unrestricted: true,
        }
    }
}

impl Options {
    /// The name under which programs pick Copa.
    pub fn name(&self) -> String {
        self.name_of(Algorithm::Copa)
    }

    /// The name under which programs pick an algorithm.
    pub fn name_of(&self, algorithm: Algorithm) -> String {
        algorithm.kernel_name(&self.suffix)
    }

    fn check(&self) -> Result<(), Error> {
        let longest = Algorithm::ALL.map(|a| a.kernel_name("").len()).into_iter().max();
        let most = NAME_MAX - longest.unwrap_or(0);
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if self.suffix.len() > most || !self.suffix.chars().all(plain) {
            let what = format!(
                "'{}' is no suffix for the algorithms' names: at most {most} letters, digits or '_'",
                self.suffix,
            );
            return Err(Error::Option { what });
        }
        if !(1..=SLOTS_MAX).contains(&self.slots) {
            let what = format!("{} slots: give 1 to {SLOTS_MAX}, 2.2 kB each", self.slots);
            return Err(Error::Option { what });
        }
        Ok(())
    }
}

/// Counts over all connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Slots that there are.
    pub slots: u32,
    /// Connections that have one now.
    pub live: u64,
    /// Connections that ever had one.
    pub opened: u64,
    /// Connections that found none free, and run with the default knobs.
    pub slotless: u64,
    /// Events that found no room in the queue.
    pub lost_events: u64,
}

/// The algorithms in the kernel, and the shared memory with all connections that run them.
#[derive(Debug)]
pub struct Datapath {
    pins: Pins,
    name: String,
    suffix: String,
    adopted: bool,
    slots: Arc<Mapping<Slot>>,
    control: Mapping<Control>,
    models: Models,
    towards: Table,
    events: MapHandle,
    walk: Walk,
}

impl Datapath {
    /// Loads the algorithms into the kernel and registers them, or takes over what the folder keeps: connections, knobs and
    /// defaults as they are. They stay when the value is dropped and when the process ends; [`Datapath::unload`] ends them.
    ///
    /// # Errors
    /// The kernel lacks something, the caller may not, or another version or program is in the way: see [`Error`].
    pub fn load(options: &Options) -> Result<Self, Error> {
        options.check()?;
        let pins = Pins::new(&options.folder);
        let adopted = pins.are_complete();
        if !adopted {
            pins.layout().map_or(Ok(()), |found| check_layout(&pins, found))?;
            // What a start that broke off has left.
            pins.remove()?;
            pins.make_folder()?;
            if let Err(error) = install(options, &pins) {
                // The first error is the one to tell.
                let _ = pins.remove();
                return Err(error);
            }
        }
        Self::open(pins, options.suffix.clone(), adopted)
    }

    fn open(pins: Pins, suffix: String, adopted: bool) -> Result<Self, Error> {
        check_layout(&pins, pins.layout().unwrap_or_default())?;
        let control: Mapping<Control> = map_memory(&pins.open_map("tt_control")?)?;
        let slots = Arc::new(map_memory(&pins.open_map("tt_slots")?)?);
        let models = Models::new(
            map_memory(&pins.open_map("tt_models")?)?,
            map_memory(&pins.open_map("tt_nodes")?)?,
        );
        let towards = Table(pins.open_map(TOWARDS)?);
        let events = pins.open_map("tt_events")?;
        let name = Algorithm::Copa.kernel_name(&suffix);
        let walk = Walk::open(&pins.walk(), pins.open_map("tt_free")?)?;
        Ok(Self { pins, name, suffix, adopted, slots, control, models, towards, events, walk })
    }

    /// Whether it was there already, from a process before.
    pub fn was_adopted(&self) -> bool {
        self.adopted
    }

    /// The name under which programs pick Copa.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name under which programs pick an algorithm.
    pub fn name_of(&self, algorithm: Algorithm) -> String {
        algorithm.kernel_name(&self.suffix)
    }

    /// The folder that keeps it.
    pub fn folder(&self) -> &Path {
        &self.pins.folder
    }

    /// All connections that run the algorithm now.
    pub fn flows(&self) -> impl Iterator<Item = Flow> + '_ {
        // No slot beyond these was ever used.
        let used = self.control[0].fresh.load(Relaxed).min(self.slots.len() as u64);
        (0..used as u32).filter_map(|index| Flow::at(&self.slots, index))
    }

    /// The connection in a slot, as named by an event.
    pub fn flow(&self, slot: u32) -> Option<Flow> {
        Flow::at(&self.slots, slot)
    }

    /// Looks for connections whose sockets are gone though the kernel did not say so, and frees their slots; gives those
    /// connections. No event tells of them. The kernel walks over all sockets that run the algorithms, about 0.1 µs each, so
    /// once in some seconds is enough.
    ///
    /// # Errors
    /// The kernel refuses the walk.
    pub fn reap(&self) -> Result<Vec<FlowId>, Error> {
        let open: Vec<Flow> = self.flows().collect();
        self.walk.reap(&open, &self.slots, &self.control[0])
    }

    /// Events of connections that open and close.
    ///
    /// # Errors
    /// The kernel does not hand out the queue.
    pub fn events(&self) -> Result<Events, Error> {
        Events::new(&self.events)
    }

    /// Sets a knob of Copa's connections to come, brought into its range first; gives the value in force.
    ///
    /// # Errors
    /// Copa has no such knob.
    pub fn set_default(&self, knob: &str, value: f64) -> Result<f64, Error> {
        self.set_default_of(Algorithm::Copa, knob, value)
    }

    /// Sets a knob of an algorithm's connections to come, brought into its range first; gives the value in force.
    ///
    /// # Errors
    /// The algorithm has no such knob.
    pub fn set_default_of(
        &self,
        algorithm: Algorithm,
        knob: &str,
        value: f64,
    ) -> Result<f64, Error> {
        let place = knobs::find(algorithm, knob)?;
        let word = place.encode(value);
        algorithm.defaults(&self.control[0])[place.index].store(word, Relaxed);
        Ok(place.decode(word))
    }

    /// A knob of Copa's connections to come; `None` for an initial window that is left to the system.
    ///
    /// # Errors
    /// Copa has no such knob.
    pub fn default_knob(&self, knob: &str) -> Result<Option<f64>, Error> {
        self.default_knob_of(Algorithm::Copa, knob)
    }

    /// A knob of an algorithm's connections to come; `None` for an initial window that is left to the system.
    ///
    /// # Errors
    /// The algorithm has no such knob.
    pub fn default_knob_of(&self, algorithm: Algorithm, knob: &str) -> Result<Option<f64>, Error> {
        let place = knobs::find(algorithm, knob)?;
        let word = algorithm.defaults(&self.control[0])[place.index].load(Relaxed);
        Ok((!place.is_left(word)).then(|| place.decode(word)))
    }

    /// Every knob of connections to come as it was at first, of every algorithm.
    pub fn reset_defaults(&self) {
        write_defaults(&self.control[0]);
    }

    /// Sets knobs of connections to come that go to some destination, each brought into its range first; the others are the defaults.
    /// Of several destinations that fit a connection the one with the most bits counts. They stay when this process ends.
    ///
    /// # Errors
    /// The algorithm has no such knob, or there is no room: [`Error::TowardsFull`].
    pub fn set_towards<'a>(
        &self,
        towards: &Towards,
        knobs: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Result<(), Error> {
        let defaults = towards.algorithm().defaults(&self.control[0]);
        let mut words: Vec<u32> = defaults.iter().map(|word| word.load(Relaxed)).collect();
        for (knob, value) in knobs {
            let place = knobs::find(towards.algorithm(), knob)?;
            words[place.index] = place.encode(value);
        }
        self.towards.set(towards, &words)
    }

    /// Connections to come that go there begin with the defaults again.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn remove_towards(&self, towards: &Towards) -> Result<(), Error> {
        self.towards.remove(towards)
    }

    /// The destinations for which there are knobs of connections to come.
    pub fn towards(&self) -> Vec<Towards> {
        self.towards.all()
    }

    /// What connections to come are told apart by from now on, beside algorithm and destination. Where that is something else than
    /// before, what there was is removed.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn tell_apart(&self, by: By) -> Result<(), Error> {
        let control = &self.control[0];
        if By::of(control) != by {
            self.towards.clear()?;
            by.store(control);
        }
        Ok(())
    }

    /// Lets connections of [`Algorithm::Muses`] ask the trees of a model; gives its number, for their knob `model`. A model that is
    /// there already is not added again. One that no connection has, and none would get, gives way when there is no room.
    ///
    /// # Errors
    /// There is no room, or a tree is too deep: [`Error::Trees`].
    pub fn add_trees(&self, trees: &Trees<'_>) -> Result<f64, Error> {
        let place = knobs::find(Algorithm::Muses, "model")?.index;
        let of = |words: &[AtomicU32]| words[place].load(Relaxed) as usize;
        let mut used = [false; MODELS_MAX];
        let default = of(Algorithm::Muses.defaults(&self.control[0]));
        let open = self.slots.iter().filter(|slot| slot.id.load(Relaxed) != 0);
        let numbers = open.map(|slot| of(Algorithm::Muses.knobs_of(slot))).chain([default]);
        for number in numbers.filter(|number| *number < MODELS_MAX) {
            used[number] = true;
        }
        self.models.add(trees, used).map(|number| number as f64).map_err(Error::Trees)
    }

    /// Counts over all connections.
    pub fn stats(&self) -> Stats {
        let control = &self.control[0];
        Stats {
            slots: self.slots.len() as u32,
            live: control.live.load(Relaxed),
            opened: control.last_id.load(Relaxed),
            slotless: control.slotless.load(Relaxed),
            lost_events: control.lost_events.load(Relaxed),
        }
    }

    /// Takes the algorithms out of the kernel. Connections that run them go on with their knobs until they close, and
    /// network namespaces that have one as their default keep it for new ones until that is changed.
    ///
    /// # Errors
    /// The kernel or the file system refuses.
    pub fn unload(self) -> Result<(), Error> {
        self.pins.remove()
    }
}

/// Another version's datapath is neither read nor torn down: it may have connections.
fn check_layout(pins: &Pins, found: u32) -> Result<(), Error> {
    if found == LAYOUT_VERSION {
        return Ok(());
    }
    Err(Error::OtherLayout { path: pins.folder.clone(), found, wanted: LAYOUT_VERSION })
}

/// Takes out of the kernel what a folder keeps, of whatever version; nothing where there is nothing.
///
/// # Errors
/// The kernel or the file system refuses.
pub fn unload_pins(folder: &Path) -> Result<(), Error> {
    Pins::new(folder).remove()
}

/// Loads, keeps the maps, registers, keeps the registration.
fn install(options: &Options, pins: &Pins) -> Result<(), Error> {
    let btf = Btf::from_vmlinux().map_err(|_| Error::NoBtf)?;
    if !kernel::has_struct_ops(&btf) {
        return Err(Error::NoStructOps);
    }
    let registration = Registration::of(&btf);
    let form = Form::of(&btf)?;

    said::listen();
    let load = "load the eBPF programs";
    let fail = |e: libbpf_rs::Error| Error::of(load, &e);
    let mut builder = ObjectBuilder::default();
    let mut object = builder.open_memory(&OBJECT.0).map_err(fail)?;
    prepare(&mut object, options, form, registration).map_err(fail)?;
    let mut object = object.load().map_err(fail)?;
    for mut map in object.maps_mut() {
        if MAPS.iter().any(|name| map.name() == OsStr::new(name)) {
            let path = pins.map(&map.name().to_string_lossy());
            map.pin(path).map_err(|e| Error::of("keep the maps", &e))?;
        }
    }

    let control: Mapping<Control> = map_memory(&pins.open_map("tt_control")?)?;
    write_defaults(&control[0]);
    control[0].slot_count.store(options.slots, Relaxed);
    control[0].layout_version.store(LAYOUT_VERSION, Relaxed);

    pins.keep_walk(&mut walk(&object)?)?;

    for algorithm in Algorithm::ALL {
        let mut ops = object
            .maps_mut()
            .find(|map| map.name() == OsStr::new(&struct_ops(algorithm, form)))
            .ok_or(Error::NoStructOps)?;
        let fail = |e: libbpf_rs::Error| match e.kind() {
            libbpf_rs::ErrorKind::AlreadyExists => {
                Error::NameTaken { name: options.name_of(algorithm), path: pins.folder.clone() }
            }
            _ => Error::of("register the congestion control", &e),
        };
        match registration {
            Registration::Link => {
                let mut link = ops.attach_struct_ops().map_err(fail)?;
                pins.keep_link(algorithm, &mut link)?;
            }
            Registration::Map => pins.keep_map(algorithm, &mut ops, |ops| {
                // What the library calls a link is none, and would end the registration when it is dropped.
                ops.attach_struct_ops().map_err(fail).map(|mut link| link.disconnect())
            })?,
        }
    }
    Ok(())
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

fn write_defaults(control: &Control) {
    for algorithm in Algorithm::ALL {
        let words = algorithm.defaults(control);
        for (word, default) in words.iter().zip(knobs::defaults(algorithm)) {
            word.store(default, Relaxed);
        }
    }
}

/// The struct_ops map of the eBPF object that fits the kernel.
fn struct_ops(algorithm: Algorithm, form: Form) -> String {
    let since = match (algorithm, form) {
        (_, Form::Linux7_1) => "7_1",
        (Algorithm::Cubic, _) | (_, Form::Linux6_1) => "6_1", // CUBIC has no cong_control
        (_, Form::Linux6_10) => "6_10",
    };
    format!("{}_{since}", algorithm.name())
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
        if ["tt_slots", "tt_flows", "tt_free"].contains(&name.as_str()) {
            map.set_max_entries(options.slots)?;
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
            let Some(settings) = map.initial_value_mut() else { continue };
            assert_eq!(settings.len(), SETTINGS_SIZE, "the object has no other constant");
            for algorithm in Algorithm::ALL {
                let place = (algorithm.slot_number() as usize - 1) * size_of::<knobs::Words>();
                for (at, words) in [
                    (SETTINGS_LEAST_AT, knobs::least(algorithm)),
                    (SETTINGS_MOST_AT, knobs::most(algorithm)),
                ] {
                    let bytes = words.into_iter().flat_map(u32::to_ne_bytes);
                    settings[at + place..].iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
                }
            }
            let (slots, names) = settings[..SETTINGS_LEAST_AT].split_at_mut(SETTINGS_NAMES_AT);
            slots.copy_from_slice(&options.slots.to_ne_bytes());
            for (place, algorithm) in names.chunks_exact_mut(CA_NAME_SIZE).zip(Algorithm::ALL) {
                let name = options.name_of(algorithm);
                place[..name.len()].copy_from_slice(name.as_bytes());
            }
        }
    }
    Ok(())
}

fn map_memory<T: crate::mapping::Shared>(map: &MapHandle) -> Result<Mapping<T>, Error> {
    let what = "map the shared memory";
    if map.value_size() as usize != size_of::<T>() {
        let reason = format!("entries of {} bytes, not {}", map.value_size(), size_of::<T>());
        return Err(Error::Kernel { what, reason });
    }
    Mapping::new(map, map.max_entries() as usize)
        .map_err(|e| Error::Kernel { what, reason: e.to_string() })
}

#[cfg(test)]
mod tests {
    use libbpf_rs::MapType;

    use super::*;

    /// Of an algorithm's programs for different kernels this machine can run only one.
    fn instructions(name: &str) -> Vec<(u8, u8, u8, i16, i32)> {
        let object = ObjectBuilder::default().open_memory(&OBJECT.0).expect("well-formed");
        let program = object.progs().find(|program| program.name() == OsStr::new(name));
        let program = program.expect("it is in the object");
        let list = program.insns().iter();
        list.map(|i| (i.code, i.dst_reg(), i.src_reg(), i.off, i.imm)).collect()
    }

    /// The program before 6.10 is the same, instruction by instruction, but for where it finds the rate sample among its arguments (8
    /// bytes each).
    #[test]
    fn the_programs_before_and_after_6_10_differ_in_the_argument_alone() {
        for name in ["tt_copa_ack", "tt_bbr_ack", "tt_vivace_ack", "tt_muses_ack"] {
            let (now, before) = (instructions(name), instructions(&format!("{name}_before_6_10")));
            assert_eq!(now.len(), before.len());
            let differing: Vec<_> = now.iter().zip(&before).filter(|(a, b)| a != b).collect();
            assert_eq!(differing.len(), 1, "{name}: {differing:?}");
            let (now, before) = differing[0];
            // A load of 8 bytes from the context; the rate sample is the fourth argument, and was the second.
            assert_eq!((now.0, now.3, before.3), (0x79, 24, 8));
            assert_eq!((now.0, now.1, now.2, now.4), (before.0, before.1, before.2, before.4));
        }
    }

    /// What libbpf makes of the object for a kernel that this machine does not run: each algorithm has the one form of the
    /// operations that fits, and no other is created.
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
            let mut found = created.clone();
            found.sort();
            assert_eq!(found, expected);
        }
    }
}
