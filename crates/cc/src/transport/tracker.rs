//! The connection's books.

use trimtab_units::{Bytes, Duration, Time};

use super::packet::{Fate, Packet, clamped};
use crate::{Ack, Discarded, Loss, LostPacket, Marked, RateSample, Sent};

/// The books of one connection: bytes by fate, delivery-rate estimation
/// (draft-cheng-iccrg-delivery-rate-estimation-02 §3), and the batches of one acknowledgement.
///
/// At every moment `sent = inflight + delivered + (lost - spurious) + discarded`.
#[derive(Clone, Debug, Default)]
pub struct Tracker {
    sent: Bytes,
    inflight: Bytes,
    /// The draft's `C.delivered`.
    delivered: Bytes,
    /// The draft's `C.lost`: also what arrived later.
    lost: Bytes,
    /// Of the lost bytes those that arrived later.
    spurious: Bytes,
    discarded: Bytes,
    delivered_at: Time,
    first_sent_at: Time,
    /// The connection is application-limited until more than this was delivered; zero if it is not.
    app_limited_until: Bytes,
    next_number: u64,
    /// The window limited the sender at some moment after every packet below this number was sent.
    limited_below: u64,
    /// Packets below this number were sent over another path.
    path_from: u64,
    largest_acked: Option<u64>,
    /// Marks that were heeded, by the peer's count.
    marks: u64,
    arrivals: Option<Arrivals>,
    losses: Option<Losses>,
}

/// What an acknowledgement covers, as far as was told.
#[derive(Clone, Debug)]
struct Arrivals {
    prior_inflight: Bytes,
    acked: Bytes,
    /// Its fate is the one before.
    newest: Packet,
    oldest_sent_at: Time,
    /// Whether the newest packet is newer than all that were acknowledged before.
    advances: bool,
}

/// What was declared lost at once, as far as was told.
#[derive(Clone, Copy, Debug)]
struct Losses {
    prior_inflight: Bytes,
    lost: Bytes,
    newest_sent_at: Time,
}

impl Tracker {
    /// A connection that has sent nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes sent.
    #[inline]
    pub fn sent(&self) -> Bytes {
        self.sent
    }

    /// Bytes in flight.
    #[inline]
    pub fn inflight(&self) -> Bytes {
        self.inflight
    }

    /// Bytes acknowledged, those that had been declared lost included.
    #[inline]
    pub fn delivered(&self) -> Bytes {
        self.delivered
    }

    /// Bytes declared lost, those that arrived later included.
    #[inline]
    pub fn lost(&self) -> Bytes {
        self.lost
    }

    /// Bytes declared lost that arrived later.
    #[inline]
    pub fn spurious(&self) -> Bytes {
        self.spurious
    }

    /// Bytes that left flight without a signal.
    #[inline]
    pub fn discarded(&self) -> Bytes {
        self.discarded
    }

    /// The number that the next packet gets.
    #[inline]
    pub fn next_number(&self) -> u64 {
        self.next_number
    }

    /// The highest number that was acknowledged.
    #[inline]
    pub fn largest_acked(&self) -> Option<u64> {
        self.largest_acked
    }

    /// A packet leaves that counts as in flight (RFC 9002 §2). Sizes above 4 GiB count as 4 GiB.
    /// The transport keeps the record.
    #[inline]
    pub fn on_sent(&mut self, now: Time, size: Bytes) -> (Packet, Sent) {
        // §3.2: the clocks start anew after an idle time.
        if self.inflight.is_zero() {
            self.delivered_at = now;
            self.first_sent_at = now;
        }
        let stored = clamped(size);
        let size = Bytes::new(u64::from(stored));
        self.inflight += size;
        self.sent += size;
        let app_limited = !self.app_limited_until.is_zero();
        let packet = Packet {
            number: self.next_number,
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost: self.lost,
            tx_in_flight: self.inflight,
            size: stored,
            fate: Fate::InFlight,
            app_limited,
        };
        self.next_number += 1;
        (packet, Sent { now, bytes: size, inflight: self.inflight, app_limited })
    }

    /// The window has room and the application has nothing to send (§3.4): samples of what is sent
    /// until all that is in flight has arrived tell no more than what the application gave.
    #[inline]
    pub fn on_app_limited(&mut self) {
        self.app_limited_until = (self.delivered + self.inflight).max(Bytes::new(1));
    }

    /// The window keeps the sender from sending: the acknowledgement of what was sent so far may
    /// let the window grow (RFC 9002 §7.8).
    #[inline]
    pub fn on_window_limited(&mut self) {
        self.limited_below = self.next_number;
    }

    /// The acknowledgement that arrives covers a packet. Gives what was believed of the packet
    /// before:
    /// [`Fate::Lost`] shows that the loss was spurious, [`Fate::Acked`] that nothing is new.
    #[inline]
    pub fn on_acked(&mut self, packet: &mut Packet) -> Fate {
        let fate = packet.fate;
        if packet.number < self.path_from {
            // RFC 9000 §9.4: it says nothing of this path, and its bytes are discarded already.
            packet.fate = Fate::Acked;
            return Fate::Acked;
        }
        let prior_inflight = self.inflight;
        let acked = match fate {
            Fate::Acked => return fate,
            Fate::InFlight => take(&mut self.inflight, packet.size()),
            Fate::Discarded => take(&mut self.discarded, packet.size()),
            Fate::Lost => {
                let late = packet.size().min(self.lost - self.spurious);
                self.spurious += late;
                late
            }
        };
        self.delivered += acked;
        let number = packet.number;
        let advances = self.largest_acked.is_none_or(|largest| number > largest);
        if advances {
            self.largest_acked = Some(number);
        }
        match &mut self.arrivals {
            Some(arrivals) => {
                arrivals.acked += acked;
                arrivals.oldest_sent_at = arrivals.oldest_sent_at.min(packet.sent_at);
                if number > arrivals.newest.number {
                    arrivals.newest = *packet;
                    arrivals.advances = advances;
                }
            }
            None => {
                let (newest, oldest_sent_at) = (*packet, packet.sent_at);
                self.arrivals =
                    Some(Arrivals { prior_inflight, acked, newest, oldest_sent_at, advances });
            }
        }
        // Last: a copy of a record that has just changed would wait for the change.
        packet.fate = Fate::Acked;
        fate
    }

    /// When the newest packet was sent that the present acknowledgement covers for the first time.
    #[inline]
    pub fn newest_sent_at(&self) -> Option<Time> {
        self.arrivals.as_ref().map(|arrivals| arrivals.newest.sent_at)
    }

    /// When the oldest packet was sent that the present acknowledgement covers for the first time.
    #[inline]
    pub fn oldest_sent_at(&self) -> Option<Time> {
        self.arrivals.as_ref().map(|arrivals| arrivals.oldest_sent_at)
    }

    /// The round-trip time that the present acknowledgement measures; `None` where it covers
    /// nothing newer than those before did (RFC 9002 §5.1). The peer's delay is part of it.
    #[inline]
    pub fn rtt_sample(&self, now: Time) -> Option<Duration> {
        let arrivals = self.arrivals.as_ref().filter(|arrivals| arrivals.advances)?;
        Some(now.since(arrivals.newest.sent_at))
    }

    /// Loss detection declares a packet lost. `new_range` says that the packet sent just before it
    /// is not lost. `None` where the packet was not in flight.
    #[inline]
    pub fn on_lost(
        &mut self,
        now: Time,
        packet: &mut Packet,
        new_range: bool,
    ) -> Option<LostPacket> {
        if packet.fate != Fate::InFlight || packet.number < self.path_from {
            return None;
        }
        packet.fate = Fate::Lost;
        let prior_inflight = self.inflight;
        let bytes = take(&mut self.inflight, packet.size());
        self.lost += bytes;
        let losses = self.losses.get_or_insert(Losses {
            prior_inflight,
            lost: Bytes::ZERO,
            newest_sent_at: packet.sent_at,
        });
        losses.lost += bytes;
        losses.newest_sent_at = losses.newest_sent_at.max(packet.sent_at);
        Some(LostPacket {
            now,
            bytes,
            sent_at: packet.sent_at,
            tx_in_flight: packet.tx_in_flight,
            lost_since_sent: self.lost - packet.lost,
            app_limited: packet.app_limited,
            delivered_at_send: packet.delivered,
            new_range,
        })
    }

    /// The batch of losses is complete. `None` without losses. A retransmission timeout takes the
    /// same batch as a [`Timeout`](crate::Timeout) ([`Loss::timeout`]).
    #[inline]
    pub fn end_losses(&mut self, now: Time) -> Option<Loss> {
        let Losses { prior_inflight, lost, newest_sent_at } = self.losses.take()?;
        Some(Loss { now, lost, newest_sent_at, inflight: self.inflight, prior_inflight })
    }

    /// A packet leaves flight that neither arrived nor was lost (RFC 9002 §6.4). `None` where it
    /// was not in flight.
    #[inline]
    pub fn on_discarded(&mut self, now: Time, packet: &mut Packet) -> Option<Discarded> {
        if packet.fate != Fate::InFlight || packet.number < self.path_from {
            return None;
        }
        packet.fate = Fate::Discarded;
        let bytes = take(&mut self.inflight, packet.size());
        self.discarded += bytes;
        Some(Discarded { now, bytes, inflight: self.inflight })
    }

    /// A packet that was declared lost, or discarded, is in flight after all: the timeout that
    /// wrote it off was spurious (RFC 5682). Nothing happens to others.
    #[inline]
    pub fn restore(&mut self, packet: &mut Packet) {
        if packet.number < self.path_from {
            return;
        }
        let bytes = match packet.fate {
            Fate::InFlight | Fate::Acked => return,
            Fate::Discarded => take(&mut self.discarded, packet.size()),
            Fate::Lost => {
                let bytes = packet.size().min(self.lost - self.spurious);
                self.lost -= bytes;
                bytes
            }
        };
        packet.fate = Fate::InFlight;
        self.inflight += bytes;
    }

    /// The peer counts so many packets with a congestion mark (RFC 9000 §19.3.2). Gives the event
    /// if the count has grown (RFC 9002 §7.1, §B.7). To be called before
    /// [`end_ack`](Self::end_ack).
    #[inline]
    pub fn on_ce_count(&mut self, now: Time, count: u64) -> Option<Marked> {
        if count <= self.marks {
            return None;
        }
        self.marks = count;
        Some(self.marked(now))
    }

    /// The present acknowledgement says that the path marked packets, without a count. To be called
    /// before
    /// [`end_ack`](Self::end_ack).
    #[inline]
    pub fn marked(&self, now: Time) -> Marked {
        let (newest_sent_at, prior_inflight) = match &self.arrivals {
            Some(arrivals) => (arrivals.newest.sent_at, arrivals.prior_inflight),
            None => (now, self.inflight),
        };
        Marked { now, newest_sent_at, inflight: self.inflight, prior_inflight }
    }

    /// The acknowledgement is complete: the event for the algorithm, with a delivery-rate sample
    /// (§3.3). `srtt` and `min_rtt` are those of the transport's estimator, this acknowledgement
    /// included. `None` where it covered nothing new.
    ///
    /// [`Ack::cwnd_limited`] follows [`on_window_limited`](Self::on_window_limited), and
    /// [`Ack::in_recovery`] is false: a transport that knows better changes the event.
    #[inline]
    pub fn end_ack(&mut self, now: Time, srtt: Duration, min_rtt: Duration) -> Option<Ack> {
        let arrivals = self.arrivals.as_ref()?;
        let newest = &arrivals.newest;
        let ack = Ack {
            now,
            acked: arrivals.acked,
            rtt: arrivals.advances.then(|| now.since(newest.sent_at)),
            srtt,
            min_rtt,
            inflight: self.inflight,
            prior_inflight: arrivals.prior_inflight,
            delivered: self.delivered,
            newest_sent_at: newest.sent_at,
            rate: self.rate_sample(now, newest, min_rtt),
            cwnd_limited: newest.number < self.limited_below,
            in_recovery: false,
        };
        self.arrivals = None;
        self.delivered_at = now;
        self.first_sent_at = ack.newest_sent_at;
        if self.delivered > self.app_limited_until {
            self.app_limited_until = Bytes::ZERO;
        }
        Some(ack)
    }

    #[inline]
    fn rate_sample(&self, now: Time, packet: &Packet, min_rtt: Duration) -> Option<RateSample> {
        let send_elapsed = packet.sent_at.since(packet.first_sent_at);
        let ack_elapsed = now.since(packet.delivered_at);
        let interval = send_elapsed.max(ack_elapsed);
        // Too short to be true: acknowledgements that were held up together.
        if interval.is_zero() || interval < min_rtt {
            return None;
        }
        Some(RateSample {
            delivered: self.delivered - packet.delivered,
            interval,
            prior_delivered: packet.delivered,
            app_limited: packet.app_limited,
            tx_in_flight: packet.tx_in_flight,
            lost: self.lost - packet.lost,
        })
    }

    /// The connection goes on over another path (RFC 9000 §9.4): what was sent over the old one
    /// leaves flight, and its acknowledgements and losses say nothing any more. The transport gives
    /// the algorithm and the round-trip estimator their initial values.
    #[inline]
    pub fn on_path_change(&mut self) {
        self.discarded += core::mem::take(&mut self.inflight);
        self.path_from = self.next_number;
        self.limited_below = 0;
        self.app_limited_until = Bytes::ZERO;
        (self.arrivals, self.losses) = (None, None);
    }
}

/// Takes `bytes` from a sum, as far as they are there: a record that a transport gives twice, or
/// for more than was sent, cannot make a sum negative.
#[inline]
fn take(from: &mut Bytes, bytes: Bytes) -> Bytes {
    let taken = bytes.min(*from);
    *from -= taken;
    taken
}
