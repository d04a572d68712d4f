//! Loading, adopting and unloading; the table of connections.

use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use libbpf_rs::Link;
use serde::{Deserialize, Serialize};
use trimtab_cc::muses::Trees;
use trimtab_datapath::{By, FlowId, Towards};
use trimtab_units::Bytes;

use crate::algorithm::Algorithm;
use crate::error::Error;
use crate::events::Events;
use crate::flow::Flow;
use crate::hand_over::{Handover, Keeper};
use crate::install::{fingerprint, install, write_defaults};
use crate::knobs;
use crate::layout::{Control, LAYOUT_VERSION, MODELS_MAX, Slot};
use crate::ledger::{Held, Ledger};
use crate::mapping::{Map, Mapping};
use crate::models::Models;
use crate::pins::{Former, MAPS, Pins, Version};
use crate::taken::Taken;
use crate::towards::{self, Table};
use crate::walk::Walk;

/// The kernel's names end after so many bytes, the last a zero (`TCP_CA_NAME_MAX`).
const NAME_MAX: usize = 15;
/// More slots than this are a mistake: they would take 3 GB.
const SLOTS_MAX: u32 = 1 << 20;

/// What to load, and where to keep it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder that keeps it, on a bpf file system. Each folder is a datapath of its own.
    pub folder: PathBuf,
    /// Appended to the algorithms' names, `trimtab_copa` and the like: at most 2 letters, digits or `_`. For
    /// tests, since the kernel knows each name once.
    pub suffix: String,
    /// Slots, one per connection: 3.0 kB each. Connections beyond run with the default knobs, unseen.
    pub slots: u32,
    /// Whether users without privilege may pick the algorithms for their sockets.
    pub unrestricted: bool,
}

impl Default for Options {
    /// `/sys/fs/bpf/trimtab`, no suffix, 16,384 slots (49 MB of the kernel's memory), for all users.
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
            let what = format!("{} slots: give 1 to {SLOTS_MAX}, 3.0 kB each", self.slots);
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
    /// Connections that found none free when they were to have one, and run without a slot until
    /// there is.
    pub slotless: u64,
    /// Connections that got none when they were to have one, since the connections of their cgroup
    /// held as many as they may ([`Datapath::set_cgroup_slots`]). They run without a slot until one
    /// of these gives its own back.
    pub over_quota: u64,
    /// Connections that ended before they had sent enough for one ([`Datapath::set_slot_after`]).
    pub brief: u64,
    /// Events that found no room in the queue.
    pub lost_events: u64,
}

/// Where a datapath came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// There was none.
    Loaded,
    /// A process before had loaded the same programs with the same options.
    Adopted,
    /// Other programs, or the same with other options, were in its place. Connections that run them
    /// keep them until they close.
    Replaced(Version),
}

/// The algorithms in the kernel, and the shared memory with all connections that run them.
#[derive(Debug)]
pub struct Datapath {
    keeper: Arc<dyn Keeper>,
    name: String,
    handover: Handover,
    slots: Arc<Mapping<Slot>>,
    control: Mapping<Control>,
    models: Models,
    towards: Table,
    events: Map,
    walk: Walk,
    taken: Taken,
    ledger: Ledger,
}

impl Datapath {
    /// Loads the algorithms into the kernel and registers them, or takes over what the folder
    /// keeps: connections, knobs and defaults as they are. They stay when the value is dropped and
    /// when the process ends; [`Datapath::unload`] ends them.
    ///
    /// Where the folder keeps the programs of another version, or the same with other options,
    /// these take their place: new connections run them, in memory of their own that begins with
    /// the defaults. Connections that are open run on with the former programs and their last
    /// knobs; see [`Datapath::formers`]. Sockets that listen, and network namespaces whose default
    /// is one of the algorithms, are given what is registered now.
    ///
    /// # Errors
    /// The kernel lacks something, the caller may not, or another program is in the way: see [`Error`].
    pub fn load(options: &Options) -> Result<Self, Error> {
        options.check()?;
        let pins = Pins::new(&options.folder);
        let found = pins.version();
        let wanted = fingerprint(options);
        let same =
            |found: &Version| found.layout == LAYOUT_VERSION && found.programs == Some(wanted);
        if found.as_ref().is_some_and(same) && pins.are_complete() {
            // A process may have been killed before it replaced what is here, or after that and
            // before it came to the renewal.
            pins.remove_next()?;
            return Self::open(pins, options.suffix.clone(), Origin::Adopted).map(Self::renewed);
        }
        if found.is_none() {
            // What a start that broke off has left.
            pins.clear()?;
        }
        if let Err(error) = install(options, &pins) {
            // The first error is the one to tell. What is in service stays; but not what gave its
            // name back already, before Linux 6.4, or where the kernel refuses after it took all
            // programs.
            let _ = if found.is_none() { pins.remove() } else { pins.remove_next() };
            return Err(error);
        }
        let origin = found.map_or(Origin::Loaded, Origin::Replaced);
        Self::open(pins, options.suffix.clone(), origin).map(Self::renewed)
    }

    /// What has the former programs by default is given the present ones.
    fn renewed(mut self) -> Self {
        self.handover.unreached = self.keeper.renew();
        self
    }

    /// What the folder keeps, where it is of this layout, with whatever programs and options;
    /// `None` where it is not, or keeps nothing. Nothing changes by that.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn find(options: &Options) -> Result<Option<Self>, Error> {
        let pins = Pins::new(&options.folder);
        let is_ours = pins.version().is_some_and(|found| found.layout == LAYOUT_VERSION);
        let open = |pins| Self::open(pins, options.suffix.clone(), Origin::Adopted);
        if is_ours && pins.are_complete() { open(pins).map(Some) } else { Ok(None) }
    }

    fn open(pins: Pins, suffix: String, origin: Origin) -> Result<Self, Error> {
        let handover = Handover { folder: pins.folder.clone(), suffix, origin, unreached: None };
        let descriptors = descriptors(&pins)?;
        Self::take_over(handover, descriptors, Arc::new(pins))
    }

    /// What [`take_over`](Self::take_over) makes a datapath of, in a process without any capability:
    /// the facts, and descriptors in their order.
    ///
    /// # Errors
    /// The kernel does not open what the folder keeps.
    pub fn hand_over(&self) -> Result<(Handover, Vec<OwnedFd>), Error> {
        Ok((self.handover.clone(), descriptors(&Pins::new(self.folder()))?))
    }

    /// A datapath that another process has [handed over](Self::hand_over), to one that needs no
    /// capability for it. What takes some is left to `keeper`, which asks that other process.
    ///
    /// # Errors
    /// The descriptors are others than those, or the kernel refuses.
    pub fn take_over(
        handover: Handover,
        descriptors: Vec<OwnedFd>,
        keeper: Arc<dyn Keeper>,
    ) -> Result<Self, Error> {
        let what = "take over the shared memory";
        let count = descriptors.len();
        let wrong = move |_| Error::Kernel { what, reason: format!("{count} descriptors") };
        let all: [OwnedFd; MAPS.len() + 1] = descriptors.try_into().map_err(wrong)?;
        let [slots, control, taken, ledger, events, models, nodes, towards, walk] = all;
        let models = Models::new(map_memory(&Map::new(models)?)?, map_memory(&Map::new(nodes)?)?);
        Ok(Self {
            keeper,
            name: Algorithm::Copa.kernel_name(&handover.suffix),
            handover,
            slots: Arc::new(map_memory(&Map::new(slots)?)?),
            control: map_memory(&Map::new(control)?)?,
            models,
            towards: Table(Map::new(towards)?),
            events: Map::new(events)?,
            walk: Walk(walk),
            taken: Taken(map_memory(&Map::new(taken)?)?),
            ledger: Ledger(map_memory(&Map::new(ledger)?)?),
        })
    }

    /// What does for it what takes capabilities.
    pub fn keeper(&self) -> Arc<dyn Keeper> {
        Arc::clone(&self.keeper)
    }

    /// Where it came from.
    pub fn origin(&self) -> Origin {
        self.handover.origin
    }

    /// What is in service now.
    pub fn version(&self) -> Version {
        let control = &self.control[0];
        Version {
            layout: control.layout_version.load(Relaxed),
            slots: control.slot_count.load(Relaxed),
            programs: Some(control.programs.load(Relaxed)).filter(|programs| *programs != 0),
        }
    }

    /// Programs that were in its place before and still run connections.
    pub fn formers(&self) -> Vec<Former> {
        self.keeper.formers()
    }

    /// Why some sockets that listen, or defaults of network namespaces, may have kept the former
    /// programs; `None` where all have the present ones.
    pub fn unreached(&self) -> Option<&str> {
        self.handover.unreached.as_deref()
    }

    /// Gives connections that rest what is registered now: those that run former programs and have
    /// had no packet for 30 s. For as long as there are any (see [`formers`](Self::formers)).
    /// Does not wait for that: it is a walk over the sockets of all network namespaces, which takes
    /// some milliseconds.
    pub fn renew_soon(&self) {
        self.keeper.renew_soon();
    }

    /// The name under which programs pick Copa.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name under which programs pick an algorithm.
    pub fn name_of(&self, algorithm: Algorithm) -> String {
        algorithm.kernel_name(&self.handover.suffix)
    }

    /// The folder that keeps it.
    pub fn folder(&self) -> &Path {
        &self.handover.folder
    }

    /// All connections that run the algorithm now.
    pub fn flows(&self) -> impl Iterator<Item = Flow> + '_ {
        let taken = self.taken.slots(self.slots.len() as u32);
        taken.filter_map(|index| Flow::at(&self.slots, index))
    }

    /// Connections that run on with former programs, as far as those are of this layout: their
    /// knobs are where those of the others are.
    ///
    /// # Errors
    /// The kernel does not share their memory.
    pub fn former_flows(&self) -> Result<Vec<Flow>, Error> {
        let all = self.keeper.former_slots().into_iter();
        let flows: Result<Vec<_>, _> = all.map(|slots| flows_of(&Map::new(slots)?)).collect();
        flows.map(|flows| flows.into_iter().flatten().collect())
    }

    /// The connection in a slot, as named by an event.
    pub fn flow(&self, slot: u32) -> Option<Flow> {
        Flow::at(&self.slots, slot)
    }

    /// Looks for connections whose sockets are gone without an event from the kernel, and frees
    /// their slots; gives those connections. No event tells of them. The kernel walks over all
    /// sockets that run the algorithms, about 0.1 µs each, so once in some seconds is enough.
    ///
    /// # Errors
    /// The kernel refuses the walk.
    pub fn reap(&self) -> Result<Vec<FlowId>, Error> {
        let id = |slot: u32| FlowId(self.slots[slot as usize].id.load(Relaxed));
        let all = self.taken.slots(self.slots.len() as u32).map(|slot| (slot, id(slot)));
        let open: Vec<(u32, FlowId)> = all.filter(|(_, id)| id.0 != 0).collect();
        self.walk.reap(&open, &self.slots, &self.taken, &self.ledger, &self.control[0])
    }

    /// Has connections to come of an algorithm take a slot when they have sent so much, and not from
    /// their first moment on, which is the default (0). Until then they run with the knobs that they
    /// began with, in memory that the kernel takes for each; what they measure meanwhile is not lost.
    /// At most 4 GB.
    pub fn set_slot_after(&self, algorithm: Algorithm, sent: Bytes) {
        let place = algorithm.layout().number as usize - 1;
        let bytes = u32::try_from(sent.get()).unwrap_or(u32::MAX);
        self.control[0].slot_after_bytes[place].store(bytes, Relaxed);
    }

    /// Sets how many slots the connections of one cgroup may hold: 1 at least, and all by default. A
    /// cgroup below another one counts apart from it. What holds more already keeps it.
    pub fn set_cgroup_slots(&self, most: u32) {
        // Where it may hold all, who gets none found none free.
        let most = if most < self.slots.len() as u32 { most.max(1) } else { u32::MAX };
        self.control[0].cgroup_slots.store(most, Relaxed);
    }

    /// How many slots the connections of one cgroup may hold.
    pub fn cgroup_slots(&self) -> u32 {
        self.control[0].cgroup_slots.load(Relaxed).min(self.slots.len() as u32)
    }

    /// The cgroups whose connections hold slots, by their numbers.
    pub fn held(&self) -> Vec<Held> {
        self.ledger.held()
    }

    /// Takes their slots from connections that are idle, for others; gives those that have none any
    /// more, of which some may have ended. No event tells of them. Each goes on with its knobs, and
    /// has a slot again when the next acknowledgement comes: an event tells of it, by the number
    /// that it has, with all sums.
    ///
    /// A walk over the TCP sockets of all network namespaces, some microseconds each. Where the
    /// kernel has no such walk, none loses its slot.
    pub fn evict(&self, idle: &BTreeSet<FlowId>) -> Vec<FlowId> {
        let mut ordered = Vec::new();
        for index in self.taken.slots(self.slots.len() as u32) {
            let slot = &self.slots[index as usize];
            let id = FlowId(slot.id.load(Relaxed));
            if idle.contains(&id) {
                slot.leave.store(1, Relaxed);
                ordered.push((slot, id));
            }
        }
        // What it could not reach keeps its slot, as below.
        let _ = self.keeper.renew();
        let mut gone = Vec::new();
        for (slot, id) in ordered {
            if slot.id.load(Acquire) == id.0 {
                slot.leave.store(0, Relaxed);
            } else {
                gone.push(id);
            }
        }
        gone
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

    /// Sets knobs of connections to come that go to some destination, each brought into its range
    /// first; the others are the defaults. Of several destinations that fit a connection the one
    /// with the most bits counts. They stay when this process ends.
    ///
    /// # Errors
    /// The algorithm has no such knob, or there is no room: [`Error::TowardsFull`].
    pub fn set_towards<'a>(
        &self,
        towards: &Towards,
        knobs: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Result<(), Error> {
        let algorithm = Algorithm::of(towards.algorithm())?;
        let defaults = algorithm.defaults(&self.control[0]);
        let mut words: Vec<u32> = defaults.iter().map(|word| word.load(Relaxed)).collect();
        for (knob, value) in knobs {
            let place = knobs::find(algorithm, knob)?;
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

    /// Sets what distinguishes new connections, besides algorithm and destination. A change removes
    /// the knobs that were set before.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn tell_apart(&self, by: By) -> Result<(), Error> {
        let control = &self.control[0];
        if towards::by(control) != by {
            self.towards.clear()?;
            towards::store_by(by, control);
        }
        Ok(())
    }

    /// Lets connections of [`Algorithm::Muses`] ask the trees of a model; gives its number, for
    /// their knob `model`. A model that is there already is not added again. One that no connection
    /// has, and none would get, gives way when there is no room.
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
            over_quota: control.over_quota.load(Relaxed),
            brief: control.brief.load(Relaxed),
            lost_events: control.lost_events.load(Relaxed),
        }
    }

    /// Takes the algorithms out of the kernel. Connections that run them go on with their knobs until they close, and
    /// network namespaces that have one as their default keep it for new ones until that is changed.
    ///
    /// # Errors
    /// The kernel or the file system refuses.
    pub fn unload(self) -> Result<(), Error> {
        Pins::new(self.folder()).remove()
    }
}

/// The maps in the order of [`MAPS`], and the walk.
fn descriptors(pins: &Pins) -> Result<Vec<OwnedFd>, Error> {
    let what = "open what is kept";
    let fail = |e: std::io::Error| Error::Kernel { what, reason: e.to_string() };
    let mut all = Vec::with_capacity(MAPS.len() + 1);
    for name in MAPS {
        all.push(pins.open_map(name)?.as_fd().try_clone_to_owned().map_err(fail)?);
    }
    let walk = Link::open(pins.walk()).map_err(|e| Error::of(what, &e))?;
    all.push(walk.as_fd().try_clone_to_owned().map_err(fail)?);
    Ok(all)
}

/// Connections that run what a folder keeps, or what was there before. And how many more there are
/// whose memory has another layout: this version cannot turn their knobs. Nothing changes by that.
pub fn open_connections(folder: &Path) -> (Vec<Flow>, u64) {
    let (mut flows, mut beyond) = (Vec::new(), 0);
    for (slots, connections) in Pins::new(folder).all_slots() {
        match slots.and_then(|slots| flows_of(&Map::of(&slots).ok()?).ok()) {
            Some(reached) => flows.extend(reached),
            None => beyond += connections,
        }
    }
    (flows, beyond)
}

fn flows_of(map: &Map) -> Result<Vec<Flow>, Error> {
    let slots: Arc<Mapping<Slot>> = Arc::new(map_memory(map)?);
    Ok((0..slots.len() as u32).filter_map(|index| Flow::at(&slots, index)).collect())
}

/// Takes out of the kernel what a folder keeps, of whatever version; nothing where there is nothing.
///
/// # Errors
/// The kernel or the file system refuses.
pub fn unload_pins(folder: &Path) -> Result<(), Error> {
    Pins::new(folder).remove()
}

pub(crate) fn map_memory<T: crate::mapping::Shared>(map: &Map) -> Result<Mapping<T>, Error> {
    let what = "map the shared memory";
    if map.value_size() != size_of::<T>() {
        let reason = format!("entries of {} bytes, not {}", map.value_size(), size_of::<T>());
        return Err(Error::Kernel { what, reason });
    }
    Mapping::new(map, map.entries() as usize)
        .map_err(|e| Error::Kernel { what, reason: e.to_string() })
}
