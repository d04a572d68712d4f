//! The clients and servers of an edge: downloads one after another, each on a connection of its own.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rustix::net::sockopt::{set_socket_linger, set_tcp_congestion};
use trimtab_apps::wire;
use trimtab_emu::Namespace;
use trimtab_units::{Bytes, Duration};

use super::scenario::Clients;
use crate::clock::{Clock, hurry, real};
use crate::error::RealError;
use crate::{server, sys};

/// How much is read at once.
const PIECE: usize = 1 << 17;
/// Steps in which a waiting thread checks whether to end.
const LOOK: std::time::Duration = std::time::Duration::from_millis(50);
/// A connection that is not there by then never will be.
const CONNECT_WITHIN: std::time::Duration = std::time::Duration::from_secs(10);

/// A download that is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Download {
    pub(super) size: Bytes,
    /// From the request to its last byte.
    pub(super) took: Duration,
}

/// What the clients of an edge did in a while.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Downloads {
    /// By client, in their order.
    pub(super) done: Vec<Vec<Download>>,
    /// That did not come to their end: refused, broken off, or still under way when all was over.
    pub(super) failed: u64,
}

/// Servers behind one port.
#[derive(Debug)]
pub(super) struct Servers {
    listener: TcpListener,
    open: Arc<Mutex<HashMap<u64, TcpStream>>>,
    thread: Option<JoinHandle<()>>,
}

impl Servers {
    /// Listens in a namespace; with an algorithm of its own, or what that namespace gives.
    pub(super) fn listen(
        place: &Namespace,
        at: SocketAddr,
        algorithm: Option<String>,
    ) -> Result<Self, RealError> {
        let listen = move || -> io::Result<TcpListener> {
            let listener = TcpListener::bind(at)?;
            if let Some(algorithm) = algorithm {
                set_tcp_congestion(&listener, &algorithm)?;
            }
            Ok(listener)
        };
        let listener =
            place.run(listen).map_err(RealError::system("listen in the namespace of an edge"))?;
        let open = Arc::new(Mutex::new(HashMap::new()));
        let own = listener.try_clone().map_err(RealError::system("copy a socket"))?;
        let kept = Arc::clone(&open);
        let thread = std::thread::Builder::new()
            .spawn(move || accept(&own, &kept))
            .map_err(RealError::system("start a thread"))?;
        Ok(Self { listener, open, thread: Some(thread) })
    }

    /// What its connections begin with.
    pub(super) fn algorithm(&self) -> Option<String> {
        rustix::net::sockopt::tcp_congestion(&self.listener).ok()
    }

    /// Breaks off what is still open.
    pub(super) fn hang_up(&self) {
        for socket in lock(&self.open).values() {
            // It may have ended by itself.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        // Wakes who waits for connections.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        self.hang_up();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Accepts until the listener is shut down.
fn accept(listener: &TcpListener, open: &Arc<Mutex<HashMap<u64, TcpStream>>>) {
    hurry();
    for number in 0.. {
        let Ok((socket, _)) = listener.accept() else { return };
        let prepare = || -> io::Result<TcpStream> {
            sys::pace(&socket)?;
            socket.set_nodelay(true)?;
            set_socket_linger(&socket, Some(std::time::Duration::ZERO))?;
            socket.try_clone()
        };
        let Ok(kept) = prepare() else { continue };
        lock(open).insert(number, kept);
        let all = Arc::clone(open);
        let work = move || {
            server::serve(socket);
            lock(&all).remove(&number);
        };
        if std::thread::Builder::new().spawn(work).is_err() {
            lock(open).remove(&number);
        }
    }
}

/// Clients at work.
pub(super) struct Crew {
    /// No new download begins.
    stop: Arc<AtomicBool>,
    /// What is under way is broken off.
    abort: Arc<AtomicBool>,
    threads: Vec<JoinHandle<(Vec<Download>, u64)>>,
}

impl Crew {
    /// Starts the clients of an edge in their namespace. The same seed makes the same downloads.
    pub(super) fn start(
        place: &Namespace,
        server: (Ipv4Addr, u16),
        clients: Clients,
        seed: u64,
    ) -> Result<Self, RealError> {
        let mut crew = Self { stop: Arc::default(), abort: Arc::default(), threads: Vec::new() };
        for number in 0..clients.count {
            let random = Pcg64Mcg::seed_from_u64((seed << 16) + u64::from(number));
            let client = Client {
                server: server.into(),
                clients,
                random,
                stop: Arc::clone(&crew.stop),
                abort: Arc::clone(&crew.abort),
            };
            crew.threads.push(place.thread(move || client.run())?);
        }
        Ok(crew)
    }

    /// Lets nothing new begin.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether all have come to their end.
    pub(super) fn is_done(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Breaks off what is under way; what was done.
    pub(super) fn end(mut self) -> Result<Downloads, RealError> {
        self.stop();
        self.abort.store(true, Ordering::Relaxed);
        let mut all = Downloads::default();
        for thread in std::mem::take(&mut self.threads) {
            let (done, failed) = thread.join().map_err(|_| RealError::Thread)?;
            all.done.push(done);
            all.failed += failed;
        }
        Ok(all)
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.stop();
        self.abort.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

struct Client {
    server: SocketAddr,
    clients: Clients,
    random: Pcg64Mcg,
    stop: Arc<AtomicBool>,
    abort: Arc<AtomicBool>,
}

impl Client {
    fn run(mut self) -> (Vec<Download>, u64) {
        hurry();
        let clock = Clock::start();
        let (mut done, mut failed) = (Vec::new(), 0);
        let (least, most) = (self.clients.size.0.as_f64(), self.clients.size.1.as_f64());
        let mut buffer = vec![0; PIECE];
        // Clients do not begin all at once.
        self.pause();
        while !self.stop.load(Ordering::Relaxed) {
            let share = self.random.random::<f64>();
            let size = Bytes::new((least * libm::pow(most / least, share)) as u64);
            match self.fetch(size, clock, &mut buffer) {
                Ok(took) => done.push(Download { size, took }),
                Err(_) => failed += 1,
            }
            self.pause();
        }
        (done, failed)
    }

    fn pause(&mut self) {
        let mut left = real(self.clients.pause.mul_f64(0.5 + self.random.random::<f64>()));
        while !left.is_zero() && !self.stop.load(Ordering::Relaxed) {
            let step = left.min(LOOK);
            std::thread::sleep(step);
            left -= step;
        }
    }

    /// How long a download took from its request on.
    fn fetch(&self, size: Bytes, clock: Clock, buffer: &mut [u8]) -> io::Result<Duration> {
        let mut socket = TcpStream::connect_timeout(&self.server, CONNECT_WITHIN)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(LOOK))?;
        let begun = clock.now();
        socket.write_all(&wire::encode(size, Bytes::ZERO))?;
        let mut left = size.get();
        while left > 0 {
            match socket.read(buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => left = left.saturating_sub(length as u64),
                Err(e) if is_wait(e.kind()) => {
                    if self.abort.load(Ordering::Relaxed) {
                        set_socket_linger(&socket, Some(std::time::Duration::ZERO))?;
                        return Err(e);
                    }
                }
                Err(e) => return Err(e),
            }
        }
        Ok(clock.now().since(begun))
    }
}

fn is_wait(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
