//! What outlives this process: maps and the registration, kept as files of a bpf file system.

use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, MapMut};
use rustix::fs::statfs;
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

use crate::algorithm::Algorithm;
use crate::error::Error;

/// Where systems mount it.
const BPF_FS: &str = "/sys/fs/bpf";
/// Its magic number (`BPF_FS_MAGIC`).
const BPF_FS_MAGIC: i64 = 0xcafe_4a11;
/// The walk over the sockets of our connections.
const WALK: &str = "walk";
/// Files of the registrations, one per algorithm, begin so. They are kept last: where they are, everything is.
const LINK: &str = "link";
/// So they begin before Linux 6.4, where they are struct_ops maps, …
const OPS: &str = "ops";
/// … and so while it is not certain that they are registered.
const UNCERTAIN: &str = "uncertain";

/// A folder of a bpf file system.
#[derive(Clone, Debug)]
pub(crate) struct Pins {
    pub(crate) folder: PathBuf,
}

impl Pins {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Whether everything is there.
    pub(crate) fn are_complete(&self) -> bool {
        let kept = |kind, algorithm| self.registration(kind, algorithm).exists();
        Algorithm::ALL.iter().all(|&algorithm| kept(LINK, algorithm) || kept(OPS, algorithm))
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
        // Whoever may open the maps may turn every connection's knobs.
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

    /// The layout of what is registered, from the first word of its control, in which all versions have it; `None` where
    /// nothing is, or no start came so far.
    pub(crate) fn layout(&self) -> Option<u32> {
        let registered = self.folder.read_dir().ok()?.flatten().any(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.starts_with(LINK) || name.starts_with(OPS)
        });
        let control = self.open_map("tt_control").ok().filter(|_| registered)?;
        let words = control.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()??;
        Some(u32::from_ne_bytes(words.get(..4)?.try_into().ok()?))
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

    pub(crate) fn keep_link(&self, algorithm: Algorithm, link: &mut Link) -> Result<(), Error> {
        link.pin(self.registration(LINK, algorithm))
            .map_err(|e| Error::of("keep the registration", &e))
    }

    /// Registers by `register` and keeps the map. A registration by a map holds the map, so one of which no file is left, as
    /// after a kill in between, could never be undone: the file comes first.
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
        let fail =
            |e: std::io::Error| Error::NoBpfFs { path: self.folder.clone(), reason: e.to_string() };
        let entries = match self.folder.read_dir() {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(fail(e)),
        };
        for entry in entries {
            let path = entry.map_err(fail)?.path();
            // By the beginning, so that those of another version go, too.
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with(LINK) {
                unregister_link(&path)?;
                continue;
            }
            if name.starts_with(OPS) || name.starts_with(UNCERTAIN) {
                unregister_map(&path)?;
            }
            std::fs::remove_file(path).map_err(fail)?;
        }
        std::fs::remove_dir(&self.folder).map_err(fail)
    }
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
