//! The thread that carries packets: it reads them from one end, asks the link what becomes of them, and writes
//! them to the other end when their time has come.
//!
//! One thread serves both directions and sleeps in between, so an emulator costs little and four of them share two
//! processors. One thread can serve many links, too. It runs before every ordinary thread where the system lets it,
//! and never touches a disk.

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
    /// Whether packets may wait to be read.
    readable: bool,
}

/// Both directions of a link between two ends.
pub(crate) struct Carried {
    lanes: [Lane; 2],
    log: Option<LogSender>,
    observer: Option<Observer>,
}

/// Links that one thread serves.
pub(crate) struct Forwarder {
    clock: Clock,
    links: Vec<Carried>,
    /// Time between two looks at the links: a packet is up to that late. Zero: each packet wakes the thread.
    grain: Duration,
    /// Readable when it is time to end.
    stop: OwnedFd,
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

impl Carried {
    /// `down` goes from `server` to `client`, `up` back.
    pub(crate) fn new(
        (server, client): (Tun, Tun),
        (down, up): (&LinkConfig, &LinkConfig),
        seed: u64,
        log: Option<LogSender>,
        observer: Option<Observer>,
    ) -> Result<Self, crate::EmuError> {
        let lane = |direction, from, to, config: &LinkConfig, seed| Lane {
            direction,
            from,
            to,
            link: Link::new(config, seed),
            tally: Tally::new(config),
            readable: true,
        };
        let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
        let lanes = [
            lane(Direction::Down, server, client, down, seed),
            // Each direction draws its own losses.
            lane(Direction::Up, from_client, to_server, up, !seed),
        ];
        Ok(Self { lanes, log, observer })
    }
}

impl Forwarder {
    /// The clock starts now.
    pub(crate) fn new(links: Vec<Carried>, grain: Duration, stop: OwnedFd) -> Self {
        Self { clock: Clock::start(), links, grain, stop, spare: Vec::new() }
    }

    /// Carries packets until `stop` becomes readable; the outcome of each link.
    pub(crate) fn run(mut self) -> Vec<Outcome> {
        let scheduling = prepare_thread();
        let mut stopping = false;
        while !stopping {
            let mut has_more = false;
            let Self { clock, links, spare, .. } = &mut self;
            for Carried { lanes, log, observer } in links {
                for lane in lanes {
                    lane.deliver_due(*clock, spare, log.as_mut(), observer.as_mut());
                    lane.read(*clock, spare, log.as_mut(), observer.as_mut());
                    has_more |= lane.readable;
                }
            }
            if !has_more {
                stopping = self.wait();
            }
        }
        let end = self.clock.now();
        let duration = end.since(Time::ZERO);
        let outcome = |carried: Carried| {
            let [down, up] = carried.lanes.map(|lane| {
                let stats = *lane.link.stats();
                lane.tally.report(&stats, lane.link.capacity(), end)
            });
            Outcome { duration, scheduling, down, up }
        };
        self.links.into_iter().map(outcome).collect()
    }

    /// Sleeps until a packet comes, one is due, or it is time to end; whether it is.
    fn wait(&mut self) -> bool {
        for log in self.links.iter_mut().filter_map(|carried| carried.log.as_mut()) {
            log.flush_before_sleep(self.clock.now());
        }
        if !self.grain.is_zero() {
            self.clock.sleep_until(self.clock.now() + self.grain);
        }
        let lanes = || self.links.iter().flat_map(|carried| &carried.lanes);
        let next = lanes().filter_map(|lane| lane.link.next_event()).min();
        let timeout = next.map(|next| {
            let left = next.since(self.clock.now()).as_nanos();
            let (s, ns) = (left / 1_000_000_000, left % 1_000_000_000);
            // Both fit: the clock began with this program.
            Timespec { tv_sec: s.cast_signed(), tv_nsec: ns.cast_signed() }
        });
        let watch = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds: Vec<PollFd<'_>> = lanes().map(|lane| watch(lane.from.as_fd())).collect();
        fds.push(watch(self.stop.as_fd()));
        // Interrupted by a signal, it looks again.
        let _ = poll(&mut fds, timeout.as_ref());
        let heard: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let lanes = self.links.iter_mut().flat_map(|carried| &mut carried.lanes);
        lanes.zip(&heard).for_each(|(lane, heard)| lane.readable = *heard);
        heard.last().is_some_and(|heard| *heard)
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

    /// Reads some packets into the link, where there may be any.
    fn read(
        &mut self,
        clock: Clock,
        spare: &mut Vec<Buffer>,
        mut log: Option<&mut LogSender>,
        mut observer: Option<&mut Observer>,
    ) {
        if !self.readable {
            return;
        }
        for _ in 0..READ_MAX {
            let mut buffer = spare.pop().unwrap_or_else(Buffer::new);
            let Ok(Some(length)) = self.from.read(&mut buffer.0[..]) else {
                spare.push(buffer);
                self.readable = false;
                return;
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
    }
}
