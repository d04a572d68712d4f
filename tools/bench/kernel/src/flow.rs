//! One flow of bulk data: a thread that writes as much as TCP takes, and one that reads.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::sockopt::{set_tcp_congestion, set_tcp_nodelay};

use crate::hosts::{Host, Hosts, SENDER};
use crate::{BenchError, system};

/// How much is written at once: as an application does that has a file to send.
const PIECE: usize = 128 << 10;

/// A flow from the sender, as long as it lives.
pub(crate) struct Flow {
    /// The thread that writes.
    pub(crate) thread: i32,
    received: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
    writer: Option<JoinHandle<io::Result<()>>>,
}

impl Flow {
    /// Starts a flow with a congestion control. `connect` opens the reader's socket, in the reader's namespace.
    pub(crate) fn start(
        hosts: &Hosts,
        algorithm: &str,
        port: u16,
        connect: impl FnOnce(SocketAddr) -> Result<TcpStream, BenchError>,
    ) -> Result<Self, BenchError> {
        let name = algorithm.to_owned();
        let (ready, is_ready) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let writer = hosts.thread(Host::Sender, move || {
            let listener = TcpListener::bind((SENDER, port))?;
            set_tcp_congestion(&listener, &name)?;
            // The receiver is there as long as this thread.
            let _ = ready.send(rustix::thread::gettid().as_raw_nonzero().get());
            let (mut socket, _) = listener.accept()?;
            set_tcp_nodelay(&socket, true)?;
            let piece = vec![0; PIECE];
            while !stopped.load(Relaxed) && socket.write_all(&piece).is_ok() {}
            Ok(())
        })?;
        let Ok(thread) = is_ready.recv_timeout(Duration::from_secs(5)) else {
            let ended = writer.join().unwrap_or(Ok(()));
            return Err(system("start the sender")(
                ended.err().unwrap_or(io::ErrorKind::Other.into()),
            ));
        };
        let mut socket = connect(SocketAddr::from((SENDER, port)))?;
        let received = Arc::new(AtomicU64::new(0));
        let (sum, stopped) = (received.clone(), stop.clone());
        let reader = std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 20];
            while !stopped.load(Relaxed) {
                match socket.read(&mut buffer) {
                    Ok(0) | Err(_) => break,
                    Ok(length) => sum.fetch_add(length as u64, Relaxed),
                };
            }
        });
        Ok(Self { thread, received, stop, reader: Some(reader), writer: Some(writer) })
    }

    /// Bytes that were read so far.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        // The reader's end resets the connection, which ends the writer. What became of them is in the bytes.
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}
