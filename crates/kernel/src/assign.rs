//! Giving sockets another algorithm: those that listen, whose connections inherit it, and connections that are open.

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use libbpf_rs::{Iter, Link, MapCore, MapFlags, Object, ObjectBuilder};

use crate::error::{Error, said};
use crate::flow::address;
use crate::layout::{NAME_SIZE, ORDERS_MAX, RawSocket, SOCKET_SIZE, STATE_LISTEN};

/// The eBPF program, aligned as the reader of the format wants it.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);
static OBJECT: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/assign.bpf.o")));

const ORDERS: &str = "tt_orders";
/// What outlives this process, and the file's name.
const GIVEN: &str = "tt_given";
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Which socket.
    pub cookie: u64,
    /// What it ran when that was decided; when it runs something else by then, it is left alone.
    pub from: String,
    /// What it is to run: a name of `net.ipv4.tcp_available_congestion_control`.
    pub to: String,
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
        let object = object.load().map_err(|e| Error::of_programs(LOAD, &e))?;
        let missing = || Error::Kernel { what: LOAD, reason: "the object is empty".to_owned() };
        let link = object.progs_mut().next().ok_or_else(missing)?.attach().map_err(fail)?;
        Ok(Self { object, link })
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
        let fail = |e: io::Error| Error::Kernel { what: WALK, reason: e.to_string() };
        let mut walk = Iter::new(&self.link).map_err(|e| Error::of(WALK, &e))?;
        let mut bytes = Vec::new();
        let mut chunk = vec![0; CHUNK];
        loop {
            match walk.read(&mut chunk) {
                Ok(0) => break,
                Ok(length) => bytes.extend_from_slice(&chunk[..length]),
                // The kernel could not go on just then, and goes on where it was.
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) => {}
                Err(e) => return Err(fail(e)),
            }
        }
        let told = bytes.chunks_exact(SOCKET_SIZE).filter_map(|mut one| RawSocket::read(&mut one));
        Ok(told.map(|raw| Socket::of(&raw)).collect())
    }

    /// Carries out orders for sockets of the network namespace in which the calling thread is, and
    /// tells of every socket after that. Of more than 65,536 orders the first ones are carried out.
    ///
    /// # Errors
    /// The kernel refuses the walk; what it refuses of a single socket is in its [`Socket::outcome`].
    pub fn carry_out(&self, orders: &[Order]) -> Result<Vec<Socket>, Error> {
        let what = "hand the orders to the kernel";
        let missing = || Error::Kernel { what, reason: "there is no map for them".to_owned() };
        let map =
            self.object.maps().find(|map| map.name() == OsStr::new(ORDERS)).ok_or_else(missing)?;
        let orders = &orders[..orders.len().min(ORDERS_MAX)];
        for order in orders {
            let value = [name_bytes(&order.from)?, name_bytes(&order.to)?].concat();
            map.update(&order.cookie.to_ne_bytes(), &value, MapFlags::ANY)
                .map_err(|e| Error::of(what, &e))?;
        }
        let told = self.sockets();
        for order in orders {
            // An order that stays would be carried out by a later walk.
            map.delete(&order.cookie.to_ne_bytes()).map_err(|e| Error::of(what, &e))?;
        }
        told
    }
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

fn name_bytes(name: &str) -> Result<[u8; NAME_SIZE], Error> {
    let mut bytes = [0; NAME_SIZE];
    if name.len() >= NAME_SIZE {
        let what =
            format!("no algorithm of the kernel is called {name:?}: names have at most 15 letters");
        return Err(Error::Option { what });
    }
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    Ok(bytes)
}
