//! Giving sockets another algorithm: those that listen, whose connections inherit it, and connections that are open.
//! A walk reaches what is there, in one network namespace; a hook reaches what begins, in all of them.

use std::ffi::OsStr;
use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::{Path, PathBuf};

use libbpf_rs::btf::Btf;
use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, ProgramMut};
use serde::{Deserialize, Serialize};

use crate::choices::Choices;
use crate::error::{Error, said};
use crate::flow::address;
use crate::kernel;
use crate::layout::{
    CHOICES_SIZE, NAME_SIZE, ORDERS_MAX, RawGave, RawSocket, SOCKET_SIZE, STATE_LISTEN,
};
use crate::walk::walk;

/// The eBPF program, aligned as the reader of the format wants it.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);
static OBJECT: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/assign.bpf.o")));

const ORDERS: &str = "tt_orders";
/// What outlives this process, and the file's name.
const GIVEN: &str = "tt_given";
/// What the hook reads, and what came of it.
const CHOICES: &str = "tt_choices";
const GAVE: &str = "tt_gave";
/// The programs.
const WALKER: &str = "tt_walk";
const HOOKED: &str = "tt_assign";
/// The file of the hook's link.
const HOOK: &str = "hook";
const HOOK_IN: &str = "hook the root cgroup (sock_ops)";
const FOLLOW: &str = "hand the rules to the hook of the root cgroup";
const LOAD: &str = "load the walk over TCP sockets (iter/tcp)";
const WALK: &str = "walk over the TCP sockets (iter/tcp)";
/// The kernel hands out at most so much at once, however much is asked for.
const CHUNK: usize = 1 << 15;

/// A TCP socket that listens or is connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Socket {
    /// `SO_COOKIE`: unique as long as the machine is up.
    pub cookie: u64,
    /// Cookie of its network namespace (`SO_NETNS_COOKIE`).
    pub netns_cookie: u64,
    /// The cgroup that made it (its inode in the cgroup file system); `None` when unknown.
    pub cgroup: Option<u64>,
    /// The local address and port.
    pub local: SocketAddr,
    /// The remote address and port; `None` of one that listens.
    pub remote: Option<SocketAddr>,
    /// The kernel's name of the algorithm that it runs.
    pub algorithm: String,
    /// Whether a program has set the algorithm, of this socket or of the one that accepted it, as
    /// [`Assigner`] does, too.
    pub chosen: bool,
    /// What an [`Assigner`] gave it, or the socket that accepted it; `None`: never anything.
    pub given: Option<Given>,
    /// What became of the order for it; `None` without an order, or when it ran something else by then.
    pub outcome: Option<Outcome>,
}

/// What a socket was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The last algorithm that it was given.
    pub algorithm: String,
    /// The one before it was first given any.
    pub former: String,
}

/// What became of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It runs the algorithm.
    Done,
    /// The kernel refused, with this error number (`errno`).
    Refused(i32),
}

/// What a socket is to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Which socket.
    pub cookie: u64,
    /// What it ran when that was decided; when it runs something else by then, it is left alone.
    pub from: String,
    /// What it is to run: a name of `net.ipv4.tcp_available_congestion_control`.
    pub to: String,
}

/// What the hook gave to sockets since it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gave {
    /// Sockets that got an algorithm as they began to listen, or were connected.
    pub given: u64,
    /// Sockets of which the kernel refused that.
    pub refused: u64,
    /// The last error number (`errno`) of these; 0 of none.
    pub error: i32,
}

/// Walks over TCP sockets and gives them algorithms. What was given to whom is kept in the
/// datapath's folder, so a later process knows it.
#[derive(Debug)]
pub struct Assigner {
    // Its programs and maps live as long as it does.
    object: Object,
    link: Link,
}

impl Assigner {
    /// Loads the program; `folder` is that of a [`Datapath`](crate::Datapath) that is loaded. A record that was
    /// [kept](Self::keep_record) comes back into it.
    ///
    /// # Errors
    /// The kernel lacks `iter/tcp`, or the caller may not.
    pub fn load(folder: &Path) -> Result<Self, Error> {
        let given = folder.join(GIVEN);
        let is_back = !given.exists() && std::fs::rename(kept(folder), &given).is_ok();
        match Self::load_at(folder) {
            // The record of another version says nothing to this one.
            Err(_) if is_back && std::fs::remove_file(&given).is_ok() => Self::load_at(folder),
            loaded => loaded,
        }
    }

    /// Keeps the record of what was given to whom next to the folder of a datapath that is unloaded
    /// next. Sockets that got their own algorithm back look as if their programs had chosen it; the
    /// next agent knows better.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn keep_record(folder: &Path) -> Result<(), Error> {
        std::fs::rename(folder.join(GIVEN), kept(folder))
            .map_err(|e| Error::NoBpfFs { path: kept(folder), reason: e.to_string() })
    }

    fn load_at(folder: &Path) -> Result<Self, Error> {
        said::listen();
        let fail = |e: libbpf_rs::Error| Error::of(LOAD, &e);
        let mut builder = ObjectBuilder::default();
        let mut object = builder.open_memory(&OBJECT.0).map_err(fail)?;
        for mut map in object.maps_mut() {
            if map.name() == OsStr::new(GIVEN) {
                map.set_pin_path(folder.join(GIVEN)).map_err(fail)?;
            }
        }
        let hooks = Btf::from_vmlinux().is_ok_and(|btf| kernel::has_socket_hook(&btf));
        for mut program in object.progs_mut().filter(|program| program.name() == HOOKED) {
            program.set_autoload(hooks);
        }
        let object = object.load().map_err(|e| Error::of_programs(LOAD, &e))?;
        let link = program(&object, WALKER, LOAD)?.attach().map_err(fail)?;
        Ok(Self { object, link })
    }

    /// From now on every socket of the root cgroup, and so of the machine, gets what the
    /// [choices](Self::follow) say as soon as it listens or is connected, in whatever network
    /// namespace. That outlives this process, until [`unhook`](Self::unhook). Where an earlier
    /// process has hooked in, this one takes its place at once.
    ///
    /// `cgroup` is the root of the cgroup file system, of its second version.
    ///
    /// # Errors
    /// The kernel has no such hook, `cgroup` is none, or the caller may not.
    pub fn hook(&self, folder: &Path, cgroup: &Path) -> Result<(), Error> {
        let fail = |e: libbpf_rs::Error| Error::of(HOOK_IN, &e);
        let path = folder.join(HOOK);
        if path.exists() {
            let mut link = Link::open(&path).map_err(fail)?;
            let programs = self.object.progs();
            let mut ours = programs.filter(|program| program.name() == HOOKED);
            let ours = ours.next().ok_or_else(|| missing(HOOK_IN))?;
            return link.update_prog(&ours).map_err(fail);
        }
        let cgroup = File::open(cgroup)
            .map_err(|e| Error::Kernel { what: HOOK_IN, reason: e.to_string() })?;
        let program = program(&self.object, HOOKED, HOOK_IN)?;
        let mut link = program.attach_cgroup(cgroup.as_raw_fd()).map_err(fail)?;
        link.pin(path).map_err(fail)
    }

    /// No socket gets anything by itself any more. What was given stays.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn unhook(folder: &Path) -> Result<(), Error> {
        let path = folder.join(HOOK);
        if !path.exists() {
            return Ok(());
        }
        let fail = |e: libbpf_rs::Error| Error::of("take the hook from the root cgroup", &e);
        let mut link = Link::open(path).map_err(fail)?;
        // At once; without its file it would end a little later.
        link.detach().map_err(fail)?;
        link.unpin().map_err(fail)
    }

    /// Has the hook follow other choices, all at once.
    ///
    /// # Errors
    /// The kernel refuses, or has no algorithm of such a name.
    pub fn follow(&self, choices: &Choices) -> Result<(), Error> {
        let fail = |e: libbpf_rs::Error| Error::of(FOLLOW, &e);
        let options = bpf_map_create_opts {
            sz: size_of::<bpf_map_create_opts>() as u64,
            ..bpf_map_create_opts::default()
        };
        let size = CHOICES_SIZE as u32;
        let table = MapHandle::create(MapType::Array, Some("tt_table"), 4, size, 1, &options);
        let table = table.map_err(fail)?;
        table.update(&[0; 4], &choices.bytes()?, MapFlags::ANY).map_err(fail)?;
        let number = table.as_fd().as_raw_fd().to_ne_bytes();
        // The kernel waits until no program reads the table of before.
        self.map(CHOICES, FOLLOW)?.update(&[0; 4], &number, MapFlags::ANY).map_err(fail)
    }

    /// What came of the choices since this was loaded.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn gave(&self) -> Result<Gave, Error> {
        let what = "ask what the hook of the root cgroup gave";
        let bytes = self.map(GAVE, what)?.lookup(&[0; 4], MapFlags::ANY);
        let bytes = bytes.map_err(|e| Error::of(what, &e))?.unwrap_or_default();
        let raw = RawGave::read(&mut bytes.as_slice()).ok_or_else(|| missing(what))?;
        Ok(Gave { given: raw.given, refused: raw.refused, error: raw.error as i32 })
    }

    fn map(&self, name: &str, what: &'static str) -> Result<libbpf_rs::Map<'_>, Error> {
        let mut maps = self.object.maps().filter(|map| map.name() == OsStr::new(name));
        maps.next().ok_or_else(|| missing(what))
    }

    /// Whether any process has given algorithms, as far as the folder of its datapath tells.
    pub fn has_given(folder: &Path) -> bool {
        folder.join(GIVEN).exists()
    }

    /// Every socket of the network namespace in which the calling thread is.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn sockets(&self) -> Result<Vec<Socket>, Error> {
        Ok(self.walk(&[])?.sockets())
    }

    /// Carries out orders for sockets of the network namespace in which the calling thread is, and
    /// tells of every socket after that. Of more than 65,536 orders the first ones are carried out.
    ///
    /// # Errors
    /// The kernel refuses the walk; what it refuses of a single socket is in its [`Socket::outcome`].
    pub fn carry_out(&self, orders: &[Order]) -> Result<Vec<Socket>, Error> {
        Ok(self.walk(orders)?.sockets())
    }

    /// The same, in the kernel's form, which another process can be handed.
    ///
    /// # Errors
    /// As of [`carry_out`](Self::carry_out).
    pub fn walk(&self, orders: &[Order]) -> Result<Walked, Error> {
        let what = "hand the orders to the kernel";
        let map = self.map(ORDERS, what)?;
        let orders = &orders[..orders.len().min(ORDERS_MAX)];
        for order in orders {
            let value = [name_bytes(&order.from)?, name_bytes(&order.to)?].concat();
            map.update(&order.cookie.to_ne_bytes(), &value, MapFlags::ANY)
                .map_err(|e| Error::of(what, &e))?;
        }
        let mut told = Vec::new();
        let walked = walk(&self.link, &mut vec![0; CHUNK], |bytes| told.extend_from_slice(bytes));
        for order in orders {
            // An order that stays would be carried out by a later walk.
            map.delete(&order.cookie.to_ne_bytes()).map_err(|e| Error::of(what, &e))?;
        }
        walked.map_err(|e| Error::Kernel { what: WALK, reason: e.to_string() })?;
        Ok(Walked(told))
    }
}

/// What a walk has told of sockets, in the kernel's form.
#[derive(Clone, Debug, Default)]
pub struct Walked(pub Vec<u8>);

impl Walked {
    /// The sockets.
    pub fn sockets(&self) -> Vec<Socket> {
        let all = self.0.chunks_exact(SOCKET_SIZE);
        let raw = all.filter_map(|mut one| RawSocket::read(&mut one));
        raw.map(|raw| Socket::of(&raw)).collect()
    }
}

fn program<'a>(
    object: &'a Object,
    name: &str,
    what: &'static str,
) -> Result<ProgramMut<'a>, Error> {
    let mut programs = object.progs_mut().filter(|program| program.name() == name);
    programs.next().ok_or_else(|| missing(what))
}

/// Not that any version was built so.
fn missing(what: &'static str) -> Error {
    Error::Kernel { what, reason: "the object is incomplete".to_owned() }
}

/// Where the record is between two datapaths.
fn kept(folder: &Path) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push("-given");
    folder.with_file_name(name)
}

impl Socket {
    fn of(raw: &RawSocket) -> Self {
        let local = address(raw.family, &raw.local_addr, raw.local_port);
        let listens = raw.state == STATE_LISTEN;
        let remote = (!listens).then(|| address(raw.family, &raw.remote_addr, raw.remote_port));
        let given = Given { algorithm: name(&raw.given), former: name(&raw.former) };
        let outcome = match raw.outcome as i32 {
            0 => None,
            error if error < 0 => Some(Outcome::Refused(error.saturating_neg())),
            _ => Some(Outcome::Done),
        };
        Self {
            cookie: raw.cookie,
            netns_cookie: raw.netns_cookie,
            cgroup: (raw.cgroup_id != 0).then_some(raw.cgroup_id),
            local,
            remote,
            algorithm: name(&raw.algorithm),
            chosen: raw.chosen != 0,
            given: Some(given).filter(|given| !given.algorithm.is_empty()),
            outcome,
        }
    }
}

fn name(bytes: &[u8; NAME_SIZE]) -> String {
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

pub(crate) fn name_bytes(name: &str) -> Result<[u8; NAME_SIZE], Error> {
    let mut bytes = [0; NAME_SIZE];
    if name.len() >= NAME_SIZE {
        let what =
            format!("no algorithm of the kernel is called {name:?}: names have at most 15 letters");
        return Err(Error::Option { what });
    }
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    Ok(bytes)
}
