//! The client of one connection: sends the application's requests at their times, and tells it what arrives.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use trimtab_apps::wire::{self, Responses};
use trimtab_apps::{App, Application, Command};
use trimtab_units::{Bytes, Duration, Time};

use crate::clock::{Clock, hurry};

/// How much is read at once.
const PIECE: usize = 1 << 17;

/// An application that its client drives and others ask.
#[derive(Clone, Debug)]
pub(crate) struct SharedApp(Arc<Mutex<App>>);

impl SharedApp {
    pub(crate) fn new(app: App) -> Self {
        Self(Arc::new(Mutex::new(app)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, App> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client, ready to run.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) socket: TcpStream,
    pub(crate) app: SharedApp,
    /// Bytes of responses that arrived, for others to read.
    pub(crate) received: Arc<AtomicU64>,
    pub(crate) clock: Clock,
    /// When it starts asking, and when it stops.
    pub(crate) active: (Time, Time),
}

impl Client {
    /// Runs until the connection ends.
    pub(crate) fn run(mut self) -> io::Result<()> {
        hurry();
        self.socket.set_nonblocking(true)?;
        let mut unsent: VecDeque<u8> = VecDeque::new();
        let mut awaited = Responses::default();
        let mut buffer = vec![0; PIECE];
        loop {
            let next = self.ask(&mut unsent, &mut awaited);
            self.send(&mut unsent)?;
            self.wait(next, !unsent.is_empty())?;
            match self.socket.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(length) => self.take(length as u64, &mut awaited),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Asks for what the application wants now; when to look again.
    fn ask(&self, unsent: &mut VecDeque<u8>, awaited: &mut Responses) -> Option<Time> {
        let now = self.clock.now();
        let (start, stop) = self.active;
        if now < start {
            return Some(start);
        }
        let mut app = self.app.lock();
        while now < stop
            && let Some(Command::Request { id, size, upload }) = app.poll(now)
        {
            unsent.extend(wire::encode(size, upload));
            awaited.expect(id, size);
        }
        app.next_timer().filter(|&at| at < stop)
    }

    /// Hands over what the kernel takes.
    fn send(&mut self, unsent: &mut VecDeque<u8>) -> io::Result<()> {
        while !unsent.is_empty() {
            match self.socket.write(unsent.as_slices().0) {
                Ok(length) => drop(unsent.drain(..length)),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Sleeps until something arrives, `next` has come, or there is room for what is unsent.
    fn wait(&self, next: Option<Time>, unsent: bool) -> io::Result<()> {
        let timeout = next.map(|next| {
            let left = next.since(self.clock.now()).as_nanos();
            let (s, ns) = (left / 1_000_000_000, left % 1_000_000_000);
            // Both fit: the clock began with the run.
            Timespec { tv_sec: s.cast_signed(), tv_nsec: ns.cast_signed() }
        });
        let flags = if unsent { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut fds = [PollFd::from_borrowed_fd(self.socket.as_fd(), flags)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// `length` bytes of responses arrived.
    fn take(&self, length: u64, awaited: &mut Responses) {
        let now = self.clock.now();
        self.received.fetch_add(length, Ordering::Relaxed);
        awaited.take(&mut self.app.lock(), now, Bytes::new(length));
    }
}

/// The steps in which a waiting thread checks whether to end.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use trimtab_apps::{Download, DownloadConfig, Outcome, RequestRecord, Workload};

    use super::*;
    use crate::server;

    /// What a client that plays a workload over loopback, and asks between these two times, had when
    /// its application was done, or the second time was over; and the bytes that it received.
    fn played(workload: &str, active: (Time, Time)) -> (Vec<RequestRecord>, u64) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (end, received) = (socket.try_clone().unwrap(), Arc::new(AtomicU64::new(0)));
        let workload = Workload::parse(workload).unwrap();
        let app = SharedApp::new(Download::new(DownloadConfig::new(workload)).into());
        let clock = Clock::start();
        std::thread::scope(|scope| {
            let accepted = listener.accept().unwrap().0;
            scope.spawn(|| server::serve(accepted));
            let (app, received) = (app.clone(), Arc::clone(&received));
            let client = Client { socket, app: app.clone(), received, clock, active };
            let client = scope.spawn(|| client.run());
            while clock.now() < active.1 && !app.lock().is_finished() {
                clock.sleep_until(clock.now() + Duration::from_millis(5));
            }
            end.shutdown(std::net::Shutdown::Both).unwrap();
            client.join().unwrap().expect("an end of the connection is no error");
        });
        let Outcome::Requests(records) = app.lock().outcome(clock.now()) else {
            panic!("downloads are requests")
        };
        (records, received.load(Ordering::Relaxed))
    }

    /// The first response is longer than what is read at once, so both ends take it in pieces.
    #[test]
    fn responses_arrive_whole_and_in_their_order() {
        let (records, received) = played("0 3000000\n0 1\n20 5000\n", (Time::ZERO, Time::MAX));
        let sizes: Vec<u64> = records.iter().map(|record| record.size.get()).collect();
        assert_eq!(sizes, [3_000_000, 1, 5000]);
        assert_eq!(received, 3_005_001);
        let ends: Vec<Time> = records.iter().map(|r| r.completed_at.expect("complete")).collect();
        assert!(ends.is_sorted(), "{ends:?}");
        for record in &records {
            assert!(record.sent_at >= record.scheduled_at, "{record:?}");
            assert!(record.first_byte_at.expect("began") <= record.completed_at.unwrap());
        }
        let gap = records[2].scheduled_at.since(records[0].scheduled_at);
        assert_eq!(gap, Duration::from_millis(20), "the workload's time");
    }

    #[test]
    fn nothing_is_asked_before_the_start_or_after_the_stop() {
        let (start, stop) = (Time::from_millis(60), Time::from_millis(260));
        let (records, received) = played("0 1000\n1000 1000\n", (start, stop));
        assert_eq!(records.len(), 1, "the second is due after the stop: {records:?}");
        assert!(records[0].sent_at >= start);
        assert_eq!(received, 1000);
    }
}
