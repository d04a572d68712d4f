//! What outlives this process: maps and the registration, kept as files of a bpf file system.

use std::fs::Permissions;
use std::io::ErrorKind;
use std::mem::offset_of;
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, MapInfo, MapMut};
use rustix::fs::statfs;
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::error::Error;
use crate::layout::{Control, LAYOUT_VERSION};
use crate::mapping::Mapping;

/// Where systems mount it.
const BPF_FS: &str = "/sys/fs/bpf";
/// Its magic number (`BPF_FS_MAGIC`).
const BPF_FS_MAGIC: i64 = 0xcafe_4a11;
/// The maps that are kept, by their name in the object.
pub(crate) const MAPS: [&str; 8] =
    [SLOTS, CONTROL, "tt_taken", "tt_ledger", "tt_events", "tt_models", "tt_nodes", TOWARDS];
/// Knobs of connections to come by where they go.
pub(crate) const TOWARDS: &str = "tt_towards_knobs";
/// Maps that are looked at here.
const CONTROL: &str = "tt_control";
const SLOTS: &str = "tt_slots";
/// The walk over the sockets of our connections.
const WALK: &str = "walk";
/// Files of the registrations, one per algorithm, begin so.
const LINK: &str = "link";
/// So they begin before Linux 6.4, where they are struct_ops maps, …
const OPS: &str = "ops";
/// … and so while it is not certain that they are registered.
const UNCERTAIN: &str = "uncertain";

/// The walk over listening sockets, where the kernel has it.
const RENEWAL: &str = "renewal";
/// A folder for what is to take the place of what is there.
const NEXT: &str = "next";
/// The control of programs that were replaced: with layout, and the number of their map of slots,
/// which is there as long as they run.
const FORMER: &str = "former";
const REPLACE: &str = "replace what is loaded";
/// Where a control has the number of its connections, in every layout.
const LIVE_AT: usize = offset_of!(Control, live);

/// What is in the kernel, or was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Number of the layout of the shared memory; 0 of what a process that was killed has left.
    pub layout: u32,
    /// Slots for connections.
    pub slots: u32,
    /// A hash over programs and options; `None` of an older layout, or of what is not complete.
    pub programs: Option<u64>,
}

/// Programs that others have replaced, and that run connections still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Former {
    /// Number of the layout of their shared memory; 0 where that is not known.
    pub layout: u32,
    /// Connections that run them and have a slot.
    pub connections: u64,
}

/// A folder of a bpf file system.
#[derive(Clone, Debug)]
pub(crate) struct Pins {
    pub(crate) folder: PathBuf,
}

impl Pins {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Whether everything is there. A removal that was killed may have left any part of it.
    pub(crate) fn are_complete(&self) -> bool {
        let kept = |kind, algorithm| self.registration(kind, algorithm).exists();
        MAPS.iter().all(|name| self.map(name).exists())
            && self.walk().exists()
            && Algorithm::ALL.iter().all(|&algorithm| kept(LINK, algorithm) || kept(OPS, algorithm))
    }

    fn registration(&self, kind: &str, algorithm: Algorithm) -> PathBuf {
        self.folder.join(format!("{kind}_{}", algorithm.name()))
    }

    /// Makes the folder, after mounting the bpf file system where the system has not.
    pub(crate) fn make_folder(&self) -> Result<(), Error> {
        let fail = |reason: String| Error::NoBpfFs { path: self.folder.clone(), reason };
        if self.folder.starts_with(BPF_FS) && !is_bpf_fs(Path::new(BPF_FS)) {
            mount(
                "bpf",
                BPF_FS,
                "bpf",
                MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
                None,
            )
            .map_err(|e| fail(format!("mounting {BPF_FS} failed ({e})")))?;
        }
        std::fs::create_dir_all(&self.folder).map_err(|e| fail(e.to_string()))?;
        // A process that may open the maps may turn every connection's knobs.
        std::fs::set_permissions(&self.folder, Permissions::from_mode(0o700))
            .map_err(|e| fail(e.to_string()))?;
        if is_bpf_fs(&self.folder) {
            Ok(())
        } else {
            Err(fail("it is not on a bpf file system".to_owned()))
        }
    }

    pub(crate) fn map(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// What is registered, by its control, whose first words are the same in all layouts; `None`
    /// where nothing is, or no start came so far.
    pub(crate) fn version(&self) -> Option<Version> {
        let registered = self.files().iter().any(|name| is_registration(name));
        let control = self.open_map(CONTROL).ok().filter(|_| registered)?;
        let bytes = control.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()??;
        let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word));
        let layout = word(offset_of!(Control, layout_version))?;
        let programs = bytes
            .get(offset_of!(Control, programs)..)
            .and_then(|rest| rest.first_chunk())
            .map(|word| u64::from_ne_bytes(*word))
            .filter(|word| layout == LAYOUT_VERSION && *word != 0);
        Some(Version { layout, slots: word(offset_of!(Control, slot_count))?, programs })
    }

    /// The names of its files.
    fn files(&self) -> Vec<String> {
        let entries = self.folder.read_dir().into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// An empty folder for what is to be.
    pub(crate) fn begin_next(&self) -> Result<Self, Error> {
        self.remove_next()?;
        let next = Self::new(&self.folder.join(NEXT));
        next.make_folder()?;
        Ok(next)
    }

    pub(crate) fn remove_next(&self) -> Result<(), Error> {
        match std::fs::remove_dir_all(self.folder.join(NEXT)) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(self.refused(&e)),
            _ => Ok(()),
        }
    }

    fn refused(&self, error: &std::io::Error) -> Error {
        Error::NoBpfFs { path: self.folder.clone(), reason: error.to_string() }
    }

    /// From now on what is here is no version's, and names may pass to what is in `next`. The controls
    /// of both are kept as former ones before that, so that a start that comes after a kill still
    /// knows of the connections of either.
    pub(crate) fn begin_replacing(&self, next: &Self) -> Result<(), Error> {
        if self.version().is_some() {
            self.keep_former(next, LAYOUT_VERSION)?;
        }
        self.disown()
    }

    /// What is here is no version's from now on, however much of it there is.
    fn disown(&self) -> Result<(), Error> {
        let Some(found) = self.version() else { return Ok(()) };
        // There are none where a first start was killed before they were here, or a removal.
        if self.map(SLOTS).exists() {
            self.keep_former(self, found.layout)?;
        }
        // This word alone: the programs count in those behind it meanwhile.
        let layout: Mapping<AtomicU32> = Mapping::new(&self.open_map(CONTROL)?, 1)
            .map_err(|e| Error::Kernel { what: REPLACE, reason: e.to_string() })?;
        layout[0].store(0, Relaxed);
        Ok(())
    }

    /// Keeps the control of another folder, or of this one, as a former one.
    fn keep_former(&self, of: &Self, layout: u32) -> Result<(), Error> {
        let slots = of.slots_number()?;
        // A replacement that broke off has left a record already, under the layout of then.
        if self.files().iter().any(|name| former(name).is_some_and(|(_, id)| id == slots)) {
            return Ok(());
        }
        let path = self.map(&format!("{FORMER}_{layout}_{slots}"));
        of.open_map(CONTROL)?.pin(path).map_err(|e| Error::of(REPLACE, &e))
    }

    /// The kernel's number of the map of slots that is here.
    fn slots_number(&self) -> Result<u32, Error> {
        let slots = self.open_map(SLOTS)?;
        let info = MapInfo::new(slots.as_fd());
        info.map(|info| info.info.id).map_err(|e| Error::of("ask for a map that is kept", &e))
    }

    /// What is to be is here from now on. There is a control at every moment: the one of before, or
    /// the new one, which does not say yet which programs it is of.
    pub(crate) fn take_next(&self) -> Result<(), Error> {
        let next = Self::new(&self.folder.join(NEXT));
        let others = next.files().into_iter().filter(|name| name != CONTROL);
        for name in std::iter::once(CONTROL.to_owned()).chain(others) {
            std::fs::rename(next.map(&name), self.map(&name)).map_err(|e| self.refused(&e))?;
        }
        self.remove_next()
    }

    /// The slots of programs that were replaced, have this layout, and still run connections.
    pub(crate) fn former_slots(&self) -> Vec<MapHandle> {
        let ours = |(layout, id): (u32, u32)| (layout == LAYOUT_VERSION).then_some(id);
        let ids = self.former_records().into_iter().filter_map(|(_, record)| ours(record));
        // One that is gone has no connections any more.
        ids.filter_map(|id| MapHandle::from_map_id(id).ok()).collect()
    }

    /// Programs that were replaced and still run connections; forgets those that do not.
    pub(crate) fn formers(&self) -> Vec<Former> {
        let of = |(name, (layout, id)): (String, (u32, u32))| {
            if MapHandle::from_map_id(id).is_err_and(|e| e.kind() == libbpf_rs::ErrorKind::NotFound)
            {
                let _ = std::fs::remove_file(self.folder.join(&name));
                return None;
            }
            Some(Former { layout, connections: self.live(&name)? })
        };
        self.former_records().into_iter().filter_map(of).collect()
    }

    /// All programs, present and former: their slots, `None` where those are of another layout, and
    /// how many connections they run.
    pub(crate) fn all_slots(&self) -> Vec<(Option<MapHandle>, u64)> {
        let with = |name: String| former(&name).map(|record| (name, record));
        let mut all: Vec<_> = self.files().into_iter().filter_map(with).collect();
        if let (Some(found), Ok(id)) = (self.version(), self.slots_number())
            && !all.iter().any(|(_, (_, one))| *one == id)
        {
            all.push((CONTROL.to_owned(), (found.layout, id)));
        }
        let of = |(name, (layout, id)): (String, (u32, u32))| {
            // One that is gone has no connections any more.
            let slots = MapHandle::from_map_id(id).ok()?;
            let is_ours = layout == LAYOUT_VERSION;
            Some((is_ours.then_some(slots), self.live(&name).unwrap_or(0)))
        };
        all.into_iter().filter_map(of).collect()
    }

    /// Files of former controls, with layout and number of their slots. There may be one of what is in
    /// service: made when that took its place, or by a replacement that was killed before it began. It
    /// is none.
    fn former_records(&self) -> Vec<(String, (u32, u32))> {
        let present = self.slots_number().ok();
        let with = |name: String| former(&name).map(|record| (name, record));
        let records = self.files().into_iter().filter_map(with);
        records.filter(|(_, (_, id))| Some(*id) != present).collect()
    }

    /// Connections of a control of whatever layout.
    fn live(&self, control: &str) -> Option<u64> {
        let bytes = self.open_map(control).ok()?.lookup(&[0; 4], MapFlags::ANY).ok()??;
        Some(u64::from_ne_bytes(*bytes.get(LIVE_AT..)?.first_chunk()?))
    }

    pub(crate) fn open_map(&self, name: &str) -> Result<MapHandle, Error> {
        MapHandle::from_pinned_path(self.map(name))
            .map_err(|e| Error::of("open a map that is kept", &e))
    }

    pub(crate) fn walk(&self) -> PathBuf {
        self.folder.join(WALK)
    }

    pub(crate) fn keep_walk(&self, link: &mut Link) -> Result<(), Error> {
        link.pin(self.walk()).map_err(|e| Error::of("keep the walk over sockets", &e))
    }

    pub(crate) fn renewal(&self) -> PathBuf {
        self.folder.join(RENEWAL)
    }

    pub(crate) fn keep_renewal(&self, link: &mut Link) -> Result<(), Error> {
        link.pin(self.renewal()).map_err(|e| Error::of("keep the walk over listening sockets", &e))
    }

    /// The registration of an algorithm, where it is a link.
    pub(crate) fn link(&self, algorithm: Algorithm) -> Result<Option<Link>, Error> {
        let path = self.registration(LINK, algorithm);
        let open = |path| Link::open(path).map_err(|e| Error::of("open the registration", &e));
        path.exists().then(|| open(path)).transpose()
    }

    /// Ends the registration of an algorithm; that there is none is no error.
    pub(crate) fn unregister(&self, algorithm: Algorithm) -> Result<(), Error> {
        let paths = [LINK, OPS, UNCERTAIN].map(|kind| self.registration(kind, algorithm));
        paths.into_iter().filter(|path| path.exists()).try_for_each(|path| self.remove_file(&path))
    }

    /// Ends the registrations of algorithms that this version does not have.
    pub(crate) fn unregister_others(&self) -> Result<(), Error> {
        let is_ours = |name: &String| {
            Algorithm::ALL.iter().any(|a| {
                [LINK, OPS, UNCERTAIN].iter().any(|kind| *name == format!("{kind}_{}", a.name()))
            })
        };
        let files = self.files().into_iter().filter(|name| is_registration(name) && !is_ours(name));
        files.map(|name| self.folder.join(name)).try_for_each(|path| self.remove_file(&path))
    }

    pub(crate) fn keep_link(&self, algorithm: Algorithm, link: &mut Link) -> Result<(), Error> {
        link.pin(self.registration(LINK, algorithm))
            .map_err(|e| Error::of("keep the registration", &e))
    }

    /// Registers by `register` and keeps the map. A registration by a map holds the map, so one of
    /// which no file is left, as after a kill in between, could never be undone: the file comes
    /// first.
    pub(crate) fn keep_map(
        &self,
        algorithm: Algorithm,
        ops: &mut MapMut<'_>,
        register: impl FnOnce(&mut MapMut<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        const WHAT: &str = "keep the registration";
        let path = self.registration(UNCERTAIN, algorithm);
        ops.pin(&path).map_err(|e| Error::of(WHAT, &e))?;
        register(ops)?;
        std::fs::rename(path, self.registration(OPS, algorithm))
            .map_err(|e| Error::Kernel { what: WHAT, reason: e.to_string() })
    }

    /// Takes the algorithms out of the kernel's list and removes the folder. Connections that run them go on until they
    /// close; the kernel keeps for them what they need.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        if !self.folder.exists() {
            return Ok(());
        }
        self.clear()?;
        std::fs::remove_dir(&self.folder).map_err(|e| self.refused(&e))
    }

    /// The same, but the folder stays.
    pub(crate) fn clear(&self) -> Result<(), Error> {
        self.remove_next()?;
        // Or what a kill leaves might be taken for the whole. What there is goes in any case.
        let _ = self.disown();
        // By the beginning, so that those of another version go, too.
        self.files().iter().try_for_each(|name| self.remove_file(&self.folder.join(name)))
    }

    /// Removes a file, after ending the registration that it may be.
    fn remove_file(&self, path: &Path) -> Result<(), Error> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(LINK) {
            return unregister_link(path);
        }
        if name.starts_with(OPS) || name.starts_with(UNCERTAIN) {
            unregister_map(path)?;
        }
        std::fs::remove_file(path).map_err(|e| self.refused(&e))
    }
}

/// Layout and number of the map of slots, by the name of a former control.
fn former(name: &str) -> Option<(u32, u32)> {
    let (layout, id) = name.strip_prefix(FORMER)?.strip_prefix('_')?.split_once('_')?;
    Some((layout.parse().ok()?, id.parse().ok()?))
}

fn is_registration(name: &str) -> bool {
    name.starts_with(LINK) || name.starts_with(OPS)
}

/// Before Linux 6.4.
fn unregister_map(path: &Path) -> Result<(), Error> {
    let what = "unregister";
    let ops = MapHandle::from_pinned_path(path).map_err(|e| Error::of(what, &e))?;
    let Err(error) = ops.delete(&0_u32.to_ne_bytes()) else { return Ok(()) };
    // The library's error does not give the number.
    match std::io::Error::last_os_error().raw_os_error().map(Errno::from_raw_os_error) {
        // It was not registered yet, or is not any more: a removal was killed before the file went.
        Some(Errno::NOENT | Errno::INPROGRESS) => Ok(()),
        _ => Err(Error::of(what, &error)),
    }
}

fn unregister_link(path: &Path) -> Result<(), Error> {
    let mut link = Link::open(path).map_err(|e| Error::of("open the registration", &e))?;
    // Not before Linux 6.11; there the registration ends with the last file descriptor.
    let _ = link.detach();
    link.unpin().map_err(|e| Error::of("unregister", &e))
}

/// Whether the path is on a bpf file system.
pub(crate) fn is_bpf_fs(path: &Path) -> bool {
    statfs(path).is_ok_and(|fs| fs.f_type == BPF_FS_MAGIC)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use libbpf_rs::MapType;
    use libbpf_rs::libbpf_sys::{BPF_F_MMAPABLE, bpf_map_create_opts};

    use super::*;
    use crate::Doctor;

    /// The programs of before count on until the last of their connections has closed.
    #[test]
    fn no_count_is_lost_while_others_begin_to_take_the_place() {
        if !Doctor::default().is_well() {
            eprintln!("skipped: the eBPF programs cannot run here (`trimtab doctor`)");
            return;
        }
        let folder = PathBuf::from(format!("/sys/fs/bpf/trimtab-test-{}", std::process::id()));
        let pins = Pins::new(&folder);
        pins.make_folder().unwrap();
        // Only its name is looked at.
        std::fs::create_dir(pins.registration(LINK, Algorithm::Copa)).unwrap();
        for (name, size) in [(CONTROL, size_of::<Control>()), (SLOTS, 8)] {
            let options = bpf_map_create_opts {
                sz: size_of::<bpf_map_create_opts>() as u64,
                map_flags: BPF_F_MMAPABLE,
                ..bpf_map_create_opts::default()
            };
            let map = MapHandle::create(MapType::Array, Some(name), 4, size as u32, 1, &options);
            map.unwrap().pin(pins.map(name)).unwrap();
        }
        let control: Mapping<Control> = Mapping::new(pins.open_map(CONTROL).unwrap(), 1).unwrap();
        let over = AtomicBool::new(false);
        let counted = std::thread::scope(|scope| {
            let counter = scope.spawn(|| {
                let mut counted = 0;
                while !over.load(Relaxed) {
                    control[0].brief.fetch_add(1, Relaxed);
                    counted += 1;
                }
                counted
            });
            for _ in 0..1000 {
                control[0].layout_version.store(LAYOUT_VERSION, Relaxed);
                pins.begin_replacing(&pins).unwrap();
                assert_eq!(control[0].layout_version.load(Relaxed), 0);
            }
            over.store(true, Relaxed);
            counter.join().unwrap()
        });
        let kept = control[0].brief.load(Relaxed);
        std::fs::remove_dir(pins.registration(LINK, Algorithm::Copa)).unwrap();
        pins.remove().unwrap();
        assert_eq!(kept, counted);
    }
}
