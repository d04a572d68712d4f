//! The thread that carries packets: it reads them from one end, asks the link what becomes of them, and writes
//! them to the other end when their time has come.
//!
//! One thread serves both directions and sleeps in between, so an emulator costs little and four of them share two
//! processors. It runs before every ordinary thread where the system lets it, and never touches a disk.

use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use trimtab_net::{Event, Link, LinkConfig, Packet};
use trimtab_units::{Bytes, Duration, Time};

use crate::clock::Clock;
use crate::device::{MTU, Tun};
use crate::ecn;
use crate::log::{Entry, LogSender};
use crate::passage::{Direction, Fate, Observer, Passage};
use crate::report::{DirectionReport, Scheduling};
use crate::sys;
use crate::tally::Tally;

/// How many packets are read from an end before the departures are looked at again: some tens of microseconds.
const READ_MAX: usize = 16;

/// Above the threads that stand for hosts. Low enough for threads that must run before us.
const PRIORITY: u8 = 2;

/// Memory for one packet.
struct Buffer(Box<[u8; MTU as usize]>);

impl Buffer {
    fn new() -> Self {
        Self(Box::new([0; MTU as usize]))
    }
}

/// A packet on its way.
struct Frame {
    buffer: Buffer,
    length: usize,
    arrived: Time,
}

impl Frame {
    fn passage(&self, direction: Direction, fate: Fate) -> Passage<'_> {
        let packet = &self.buffer.0[..self.length];
        Passage { direction, packet, arrived: self.arrived, fate }
    }
}

/// One direction of the link.
struct Lane {
    direction: Direction,
    from: Tun,
    to: Tun,
    link: Link<Frame>,
    tally: Tally,
}

/// Both directions of a link between two ends.
pub(crate) struct Forwarder {
    clock: Clock,
    lanes: [Lane; 2],
    /// Readable when it is time to end.
    stop: OwnedFd,
    log: Option<LogSender>,
    observer: Option<Observer>,
    /// Memory to use again.
    spare: Vec<Buffer>,
}

/// What the thread hands back at its end.
pub(crate) struct Outcome {
    pub(crate) duration: Duration,
    pub(crate) scheduling: Scheduling,
    pub(crate) down: DirectionReport,
    pub(crate) up: DirectionReport,
}

impl Forwarder {
    /// `down` goes from `server` to `client`, `up` back. The clock starts now.
    pub(crate) fn new(
        (server, client): (Tun, Tun),
        (down, up): (&LinkConfig, &LinkConfig),
        seed: u64,
        stop: OwnedFd,
        log: Option<LogSender>,
        observer: Option<Observer>,
    ) -> Result<Self, crate::EmuError> {
        let lane = |direction, from, to, config: &LinkConfig, seed| Lane {
            direction,
            from,
            to,
            link: Link::new(config, seed),
            tally: Tally::new(config),
        };
        let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
        let lanes = [
            lane(Direction::Down, server, client, down, seed),
            // Each direction draws its own losses.
            lane(Direction::Up, from_client, to_server, up, !seed),
        ];
        Ok(Self { clock: Clock::start(), lanes, stop, log, observer, spare: Vec::new() })
    }

    /// Carries packets until `stop` becomes readable.
    pub(crate) fn run(mut self) -> Outcome {
        let scheduling = prepare_thread();
        let mut stopping = false;
        while !stopping {
            let mut has_more = false;
            let Self { clock, lanes, log, observer, spare, .. } = &mut self;
            for lane in lanes {
                lane.deliver_due(*clock, spare, log.as_mut(), observer.as_mut());
                has_more |= lane.read(*clock, spare, log.as_mut(), observer.as_mut());
            }
            if !has_more {
                stopping = self.wait();
            }
        }
        let end = self.clock.now();
        let [down, up] = self.lanes.map(|lane| {
            let stats = *lane.link.stats();
            lane.tally.report(&stats, lane.link.capacity(), end)
        });
        Outcome { duration: end.since(Time::ZERO), scheduling, down, up }
    }

    /// Sleeps until a packet comes, one is due, or it is time to end; whether it is.
    fn wait(&mut self) -> bool {
        if let Some(log) = &mut self.log {
            log.flush_before_sleep(self.clock.now());
        }
        let next = self.lanes.iter().filter_map(|lane| lane.link.next_event()).min();
        let timeout = next.map(|next| {
            let left = next.since(self.clock.now()).as_nanos();
            let (s, ns) = (left / 1_000_000_000, left % 1_000_000_000);
            // Both fit: the clock began with this program.
            Timespec { tv_sec: s.cast_signed(), tv_nsec: ns.cast_signed() }
        });
        let [down, up] = &self.lanes;
        let watch = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds = [watch(down.from.as_fd()), watch(up.from.as_fd()), watch(self.stop.as_fd())];
        // Interrupted by a signal, it looks again.
        let _ = poll(&mut fds, timeout.as_ref());
        !fds[2].revents().is_empty()
    }
}

/// Puts the thread before the ordinary ones, and its wake-ups at their time.
fn prepare_thread() -> Scheduling {
    // Ordinary threads are woken up to 50 us late, to save power. A kernel that refuses leaves it so.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    if sys::schedule_first(PRIORITY).is_ok() {
        return Scheduling::RealTime;
    }
    // In Linux priorities are per thread, and 0 is the calling one.
    match rustix::process::setpriority_process(None, -20) {
        Ok(()) => Scheduling::HighPriority,
        Err(_) => Scheduling::Ordinary,
    }
}

impl Lane {
    /// Writes what is due; what CoDel dropped is noted.
    fn deliver_due(
        &mut self,
        clock: Clock,
        spare: &mut Vec<Buffer>,
        mut log: Option<&mut LogSender>,
        mut observer: Option<&mut Observer>,
    ) {
        // What becomes due while these are written is for the next round, so that both directions have their turn.
        let now = clock.now();
        while let Some(event) = self.link.poll(now) {
            let direction = self.direction;
            let (entry, frame, fate) = match event {
                Event::Delivered(mut delivery) => {
                    if delivery.marked {
                        let frame = &mut delivery.packet.payload;
                        ecn::mark(&mut frame.buffer.0[..frame.length]);
                    }
                    let frame = &delivery.packet.payload;
                    let accepted = self.to.write(&frame.buffer.0[..frame.length]).is_ok();
                    let written = clock.now();
                    self.tally.delivered(&delivery, written, accepted);
                    let entry = Entry::Delivered {
                        direction,
                        size: delivery.packet.size,
                        arrived: frame.arrived,
                        departed: delivery.departed_at,
                        due: delivery.at,
                        written,
                    };
                    let fate = Fate::Delivered { at: written, departed: delivery.departed_at };
                    (entry, delivery.packet.payload, fate)
                }
                Event::Dropped(dropped) => {
                    let entry = Entry::Dropped {
                        direction,
                        size: dropped.packet.size,
                        arrived: dropped.packet.payload.arrived,
                        at: dropped.at,
                        cause: dropped.cause,
                    };
                    (entry, dropped.packet.payload, Fate::Dropped { at: dropped.at })
                }
            };
            if let Some(observer) = &mut observer {
                observer(&frame.passage(direction, fate));
            }
            spare.push(frame.buffer);
            if let Some(log) = &mut log {
                log.send(entry);
            }
        }
    }

    /// Reads some packets into the link; whether there may be more.
    fn read(
        &mut self,
        clock: Clock,
        spare: &mut Vec<Buffer>,
        mut log: Option<&mut LogSender>,
        mut observer: Option<&mut Observer>,
    ) -> bool {
        for _ in 0..READ_MAX {
            let mut buffer = spare.pop().unwrap_or_else(Buffer::new);
            let Ok(Some(length)) = self.from.read(&mut buffer.0[..]) else {
                spare.push(buffer);
                return false;
            };
            let now = clock.now();
            let direction = self.direction;
            let size = Bytes::new(length as u64);
            let capable = ecn::is_capable(&buffer.0[..length]);
            let payload = Frame { buffer, length, arrived: now };
            if let Some(observer) = &mut observer {
                observer(&payload.passage(direction, Fate::Arrived));
            }
            let packet = Packet { size, payload };
            let result = if capable {
                self.link.send_capable(now, packet)
            } else {
                self.link.send(now, packet)
            };
            if let Some(log) = &mut log {
                let dropped = result.as_ref().err().map(|dropped| dropped.cause);
                log.send(Entry::Arrived { direction, size, at: now, dropped });
            }
            if let Err(dropped) = result {
                if let Some(observer) = &mut observer {
                    let fate = Fate::Dropped { at: now };
                    observer(&dropped.packet.payload.passage(direction, fate));
                }
                spare.push(dropped.packet.payload.buffer);
            }
        }
        true
    }
}
