//! A client and a server with a link between them.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};
use trimtab_net::LinkConfig;
use trimtab_units::Duration;

use crate::device::Ends;
use crate::error::EmuError;
use crate::forward::{Carried, Forwarder, Outcome};
use crate::log::LogWriter;
use crate::namespace::Namespace;
use crate::passage::Observer;
use crate::report::{Report, SCHEMA};

/// A link's two directions and where its log goes.
#[derive(Clone, Debug)]
pub struct Config {
    /// From the server to the client.
    pub down: LinkConfig,
    /// From the client to the server.
    pub up: LinkConfig,
    /// Where the links' random numbers come from. The same seed loses the same packets by number, but what these
    /// are depends on the real time of everything else.
    pub seed: u64,
    /// A folder for `packets.csv`, `down.log` and `up.log`; `None` for no log.
    pub log: Option<PathBuf>,
}

/// Where the server's end of a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerSide {
    /// In a namespace of its own, from which nothing else can be reached.
    Private,
    /// In the namespace of the caller.
    Here,
}

/// Two network namespaces with a link between them, each a place to start programs and open sockets in.
///
/// Nothing of it has a name outside, so any number of them live side by side, and nothing stays behind when the
/// process ends, however it ends.
pub struct Topology {
    client: Namespace,
    server: Namespace,
    server_side: ServerSide,
    ends: Ends,
    running: Option<(Carrier, Begun)>,
}

/// The thread that carries the packets of one link or several.
pub(crate) struct Carrier {
    thread: JoinHandle<Vec<Outcome>>,
    stop: OwnedFd,
}

impl Carrier {
    pub(crate) fn start(links: Vec<Carried>, grain: Duration) -> Result<Self, EmuError> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC)
            .map_err(EmuError::system("make an event file descriptor"))?;
        let heard = stop.try_clone().map_err(EmuError::system("copy a file descriptor"))?;
        let forwarder = Forwarder::new(links, grain, heard);
        let thread = thread::Builder::new()
            .name("link".into())
            .spawn(move || forwarder.run())
            .map_err(EmuError::system("start a thread"))?;
        Ok(Self { thread, stop })
    }

    /// The outcomes in the order of the links.
    pub(crate) fn stop(self) -> Result<Vec<Outcome>, EmuError> {
        rustix::io::write(&self.stop, &1u64.to_ne_bytes())
            .map_err(EmuError::system("stop the link"))?;
        self.thread.join().map_err(|_| EmuError::State("lost the thread that carries its packets"))
    }
}

/// What a link that runs needs for its report.
pub(crate) struct Begun {
    log: Option<LogWriter>,
    /// The packets that the kernel had lost before the start: down, up.
    lost_before: [u64; 2],
}

impl Topology {
    /// Makes the namespaces and both ends of the link. Packets wait until it is started.
    ///
    /// # Errors
    /// [`EmuError::NotPermitted`] without the rights (as another user than root, see
    /// [`privilege::acquire`](crate::privilege::acquire)), [`EmuError::NoTun`] without `/dev/net/tun`,
    /// [`EmuError::TooMany`] when all addresses are taken.
    pub fn new(server_side: ServerSide) -> Result<Self, EmuError> {
        let server = match server_side {
            ServerSide::Private => Namespace::new()?,
            ServerSide::Here => Namespace::current()?,
        };
        let client = Namespace::new()?;
        let ends = Ends::new(&server, &client)?;
        Ok(Self { client, server, server_side, ends, running: None })
    }

    /// Where the client lives.
    pub fn client(&self) -> &Namespace {
        &self.client
    }

    /// Where the server lives.
    pub fn server(&self) -> &Namespace {
        &self.server
    }

    /// Whether the server's namespace is this topology's own.
    pub fn server_side(&self) -> ServerSide {
        self.server_side
    }

    /// The client's address on the link.
    pub fn client_address(&self) -> Ipv4Addr {
        self.ends.block.inner()
    }

    /// The server's address on the link.
    pub fn server_address(&self) -> Ipv4Addr {
        self.ends.block.outer()
    }

    /// Starts a link: its time, and that of its trace, begins now. What was sent before is thrown away.
    ///
    /// # Errors
    /// [`EmuError::Log`] when the log cannot be made; [`EmuError::State`] when it runs already.
    pub fn start(&mut self, config: &Config) -> Result<(), EmuError> {
        self.begin(config, None)
    }

    /// Starts a link as [`start`](Self::start) does, and tells `observer` of every packet.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_observed(&mut self, config: &Config, observer: Observer) -> Result<(), EmuError> {
        self.begin(config, Some(observer))
    }

    fn begin(&mut self, config: &Config, observer: Option<Observer>) -> Result<(), EmuError> {
        let (carried, begun) = self.prepare(config, observer)?;
        self.running = Some((Carrier::start(vec![carried], Duration::ZERO)?, begun));
        Ok(())
    }

    /// A link for a thread to carry. What was sent before is thrown away.
    pub(crate) fn prepare(
        &self,
        config: &Config,
        observer: Option<Observer>,
    ) -> Result<(Carried, Begun), EmuError> {
        if self.running.is_some() {
            return Err(EmuError::State("runs already; stop it first"));
        }
        let (sender, log) = match &config.log {
            None => (None, None),
            Some(folder) => {
                let (sender, writer) = LogWriter::start(folder, &config.down, &config.up)?;
                (Some(sender), Some(writer))
            }
        };
        let ends = (self.ends.outer.try_clone()?, self.ends.inner.try_clone()?);
        self.ends.outer.discard_waiting();
        self.ends.inner.discard_waiting();
        let lost_before = self.lost_before_link()?;
        let links = (&config.down, &config.up);
        let carried = Carried::new(ends, links, config.seed, sender, observer)?;
        Ok((carried, Begun { log, lost_before }))
    }

    /// Stops the link, with what is on it, and says what it did. Namespaces and addresses stay, and another link
    /// can be started between them.
    ///
    /// # Errors
    /// [`EmuError::Log`] when the log could not be written; [`EmuError::State`] when it does not run.
    pub fn stop(&mut self) -> Result<Report, EmuError> {
        let (carrier, begun) =
            self.running.take().ok_or(EmuError::State("does not run; start it first"))?;
        let lost = self.lost_before_link()?;
        let outcome = carrier.stop()?.pop();
        let outcome = outcome.ok_or(EmuError::State("lost what its thread counted"))?;
        Self::report(outcome, begun, lost)
    }

    /// What a link did, whose kernel has lost so many packets by now.
    pub(crate) fn report(
        outcome: Outcome,
        begun: Begun,
        lost: [u64; 2],
    ) -> Result<Report, EmuError> {
        begun.log.map_or(Ok(()), LogWriter::finish)?;
        let Outcome { duration, scheduling, mut down, mut up } = outcome;
        for (direction, index) in [(&mut down, 0), (&mut up, 1)] {
            direction.drops.before_link = lost[index].saturating_sub(begun.lost_before[index]);
        }
        let duration_s = duration.as_secs_f64();
        Ok(Report { schema: SCHEMA, duration_s, scheduling, down, up })
    }

    /// What the kernel has lost so far because it waited for us: down, up.
    pub(crate) fn lost_before_link(&self) -> Result<[u64; 2], EmuError> {
        let ask = |namespace: &Namespace, tun: &crate::device::Tun| {
            let tun = tun.try_clone()?;
            namespace.run(move || tun.overflows()).map_err(EmuError::system("read /proc/net/dev"))
        };
        Ok([ask(&self.server, &self.ends.outer)?, ask(&self.client, &self.ends.inner)?])
    }
}

impl Drop for Topology {
    fn drop(&mut self) {
        if self.running.is_some() {
            // Nobody is there for the report.
            let _ = self.stop();
        }
    }
}
