//! The sending side of a transport: packet numbers, windows, pacing, loss detection, retransmission,
//! delivery-rate estimation.
//!
//! Read first: RFC 9002 (loss detection, probes), RFC 8985 (RACK-TLP),
//! draft-cheng-iccrg-delivery-rate-estimation.

mod acks;
mod segments;
mod timers;

use std::collections::VecDeque;

use trimtab_cc::Idle;
use trimtab_cc::transport::Tracker;
use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::governor::Governor;
use crate::histogram::Histogram;
use crate::pacer::Pacer;
use crate::packets::{Packet, SentPackets};
use crate::recovery::{Prr, Recovery, Reduction};
use crate::responses::Responses;
use crate::rtt::RttEstimator;
use crate::streams::{Chunk, SendStreams};
use crate::transport::{LossDetection, Pacing, Transport};

/// Linux does not pace the first packets of a connection, whatever the algorithm
/// (`tcp_update_skb_after_send`).
const UNPACED_PACKETS: u64 = 10;
/// What an algorithm in eBPF paces at that has no rate of its own, over its window per round trip:
/// Muses (`crates/kernel/bpf/muses.bpf.h`, RFC 9002 §7.7).
const PACING_OF_ITS_OWN: f64 = 1.25;

/// What a flow sent and what became of it.
#[derive(Clone, Debug, Default)]
pub struct SendTotals {
    /// Packets sent, retransmissions included.
    pub packets: u64,
    /// Bytes of these.
    pub bytes: Bytes,
    /// Packets that carried data for a second time.
    pub retransmits: u64,
    /// Packets declared lost.
    pub lost: u64,
    /// Packets declared lost that arrived after all.
    pub spurious: u64,
    /// Retransmission timeouts (TCP) or persistent congestions (QUIC).
    pub timeouts: u64,
    /// Bytes acknowledged.
    pub delivered: Bytes,
    /// Round-trip times.
    pub rtt: Histogram,
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckInfo {
    /// Everything below in the receiver's list of arrivals has arrived.
    pub(crate) arrivals: u64,
    /// All of stream 0 below has arrived (TCP's cumulative acknowledgement).
    pub(crate) cumulative: u64,
    /// How long the receiver held it back.
    pub(crate) delay: Duration,
    /// Packets that arrived with a congestion mark so far (QUIC's ECN-CE count, RFC 9000 §19.3.2).
    pub(crate) marks: u64,
    /// A mark that the sender has not answered yet (TCP's ECE, RFC 3168 §6.1.3).
    pub(crate) echo: bool,
}

/// A packet that wants to leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) number: u64,
    pub(crate) size: Bytes,
    pub(crate) chunk: Chunk,
    /// The transport understands congestion marks on it (ECT).
    pub(crate) capable: bool,
    /// The window was reduced, so that the receiver need not repeat its echo (TCP's CWR).
    pub(crate) reduced: bool,
    /// With a congestion mark (CE).
    pub(crate) marked: bool,
}

/// The sender of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub(crate) governor: Governor,
    pub(crate) streams: SendStreams,
    pub(crate) totals: SendTotals,
    responses: Responses,
    transport: Transport,
    pub(crate) rtt: RttEstimator,
    packets: SentPackets,
    /// Numbers of lost packets whose data is to be sent again.
    resend: VecDeque<u64>,
    pub(crate) tracker: Tracker,
    // Timers.
    last_sent_at: Time,
    backoff: u32,
    probes: u32,
    tail_probe_sent: bool,
    loss_timer: Option<Time>,
    pacer: Pacer,
    /// The rate that the transport makes of this window and round-trip time, as computed last.
    pace: (Bytes, Duration, Rate),
    pacing_blocked: bool,
    // Loss recovery.
    recovery: Recovery,
    /// The reduction for a congestion mark, without a loss.
    reduction: Option<Reduction>,
    /// The next new data tells the receiver that the window was reduced.
    tell_reduced: bool,
    /// A mark is among the reasons of this episode: no spurious loss takes it back.
    marked_episode: bool,
    highest_offset: u64,
    /// All of stream 0 below has been acknowledged.
    cumulative: u64,
    episode_lost: u64,
    episode_spurious: u64,
}

impl Sender {
    pub(crate) fn new(
        mut governor: Governor,
        streams: SendStreams,
        transport: Transport,
        base_rtt: Option<(Time, Duration)>,
        seed: u64,
    ) -> Self {
        let mut rtt = RttEstimator::new();
        // The handshake took a round trip.
        if let Some((now, sample)) = base_rtt {
            rtt.sample(now, sample, Duration::ZERO);
            governor.on_established(sample);
        }
        let mut sender = Self {
            governor,
            responses: Responses::new(streams.concurrency()),
            streams,
            totals: SendTotals::default(),
            transport,
            rtt,
            packets: SentPackets::default(),
            resend: VecDeque::new(),
            tracker: Tracker::new(),
            last_sent_at: Time::ZERO,
            backoff: 0,
            probes: 0,
            tail_probe_sent: false,
            loss_timer: None,
            pacer: Pacer::new(
                transport.loss_detection == LossDetection::RackTlp,
                transport.timer_late,
                transport.pacing_credit,
                seed,
            ),
            pace: (Bytes::ZERO, Duration::ZERO, Rate::ZERO),
            pacing_blocked: false,
            recovery: Recovery::Open,
            reduction: None,
            tell_reduced: false,
            marked_episode: false,
            highest_offset: 0,
            cumulative: 0,
            episode_lost: 0,
            episode_spurious: 0,
        };
        // Linux has a rate as soon as the handshake is done (`tcp_rcv_state_process`): more than the
        // unpaced packets may leave before the first acknowledgement.
        sender.update_pacing();
        sender
    }

    /// The application gives response number `number` to the transport.
    pub(crate) fn write(&mut self, now: Time, number: u32, size: Bytes) {
        self.streams.write(number, size);
        if self.governor.collector_mut().is_some() {
            self.responses.give(now, number, size);
        }
    }

    /// Response bytes that wait to be sent for the first time.
    pub(crate) fn unsent(&self) -> Bytes {
        self.responses.unsent()
    }

    pub(crate) fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    pub(crate) fn inflight(&self) -> Bytes {
        self.tracker.inflight()
    }

    /// Whether there is anything to send, for the first time or again.
    pub(crate) fn has_data(&self) -> bool {
        !self.streams.is_empty() || !self.resend.is_empty()
    }

    /// The window as the transport applies it now.
    pub(crate) fn window(&self) -> Bytes {
        match (&self.recovery, &self.reduction) {
            (Recovery::Fast { prr: Some(prr), .. }, _)
            | (Recovery::Open, Some(Reduction { prr: Some(prr), .. })) => {
                prr.window(self.inflight())
            }
            _ => self.governor.window(),
        }
    }

    /// The proportional rate reduction that goes on, if one does.
    fn prr(&mut self) -> Option<&mut Prr> {
        match &mut self.recovery {
            Recovery::Open => self.reduction.as_mut()?.prr.as_mut(),
            recovery => recovery.prr(),
        }
    }

    fn pacing_rate(&mut self) -> Option<Rate> {
        let linux = matches!(self.transport.pacing, Pacing::Linux { .. });
        if linux && self.totals.packets <= UNPACED_PACKETS {
            return None;
        }
        let by_window = || (self.governor.window(), self.rtt.smoothed());
        self.governor.pacing_rate().or_else(|| match self.transport.pacing {
            Pacing::Unpaced => None,
            // RFC 9002 §7.7: N * cwnd / smoothed_rtt.
            Pacing::Multiple(gain) => {
                let (window, srtt) = by_window();
                if (self.pace.0, self.pace.1) != (window, srtt) {
                    self.pace = (window, srtt, (window / srtt).mul_f64(gain));
                }
                Some(self.pace.2)
            }
            // Linux leaves it to an algorithm with `cong_control`, which manages the window in
            // recovery, too. A resumed one does so for a while, and is paced as it always is.
            Pacing::Linux { .. }
                if self.governor.manages_recovery() && self.governor.resume().is_none() =>
            {
                let (window, srtt) = by_window();
                Some((window / srtt).mul_f64(PACING_OF_ITS_OWN))
            }
            Pacing::Linux { .. } => Some(self.pace.2),
        })
    }

    /// Linux works out its rate with every acknowledgement (`tcp_update_pacing_rate`).
    fn update_pacing(&mut self) {
        let Pacing::Linux { slow_start, avoidance } = self.transport.pacing else { return };
        let window = self.governor.window();
        let steep = self.governor.ssthresh().is_none_or(|threshold| window < threshold / 2);
        let gain = if steep { slow_start } else { avoidance };
        let (most, srtt) = (window.max(self.outstanding()), self.rtt.smoothed());
        self.pace = (most, srtt, (most / srtt).mul_f64(gain));
    }

    /// What was sent and is not cumulatively acknowledged, as if in full packets (TCP's
    /// `packets_out`).
    fn outstanding(&self) -> Bytes {
        let payload = self.transport.payload().get();
        let bytes = self.highest_offset.saturating_sub(self.cumulative);
        self.transport.packet * bytes.div_ceil(payload)
    }

    /// The next packet, if one may leave now. Call until it returns `None`.
    #[inline]
    pub(crate) fn poll_send(&mut self, now: Time) -> Option<Outgoing> {
        self.pacing_blocked = false;
        let size = self.next_size()?;
        if self.inflight().is_zero() {
            self.leave_idle(now);
        }
        if self.probes == 0 {
            if self.inflight() + size > self.window() || self.waits_for_a_full_segment(now) {
                self.tracker.on_window_limited();
                return None;
            }
            self.pacing_blocked = !self.pacer.allows(now, size);
            if self.pacing_blocked {
                if self.inflight() * 2 >= self.window() {
                    self.tracker.on_window_limited();
                }
                return None;
            }
        }
        self.probes = self.probes.saturating_sub(1);
        let (chunk, again) = self.next_chunk()?;
        Some(self.send(now, chunk, again))
    }

    /// The size of the packet that would leave next; marks the connection application-limited
    /// when there is none (draft-cheng §3.4).
    fn next_size(&mut self) -> Option<Bytes> {
        while let Some(&number) = self.resend.front() {
            match self.packets.get(number) {
                Some(p) if p.waits() => return Some(p.record.size()),
                // It arrived after all.
                _ => self.resend.pop_front(),
            };
        }
        if !self.streams.is_empty() {
            return Some(self.transport.packet);
        }
        self.tracker.on_app_limited();
        self.probes = 0;
        None
    }

    /// The data of a lost packet waits to be sent again: on TCP the lowest first, which matters where
    /// a retransmission is lost (Linux `tcp_xmit_retransmit_queue`).
    fn queue_again(&mut self, number: u64) {
        if self.transport.loss_detection == LossDetection::Rfc9002 {
            return self.resend.push_back(number);
        }
        let Self { packets, resend, .. } = self;
        let place = |n: u64| packets.get(n).map(|p| (p.stream, p.offset));
        let this = place(number);
        let mut at = resend.len();
        while at > 0 && place(resend[at - 1]) > this {
            at -= 1;
        }
        resend.insert(at, number);
    }

    fn next_chunk(&mut self) -> Option<(Chunk, bool)> {
        if let Some(number) = self.resend.pop_front() {
            let packet = self.packets.get_mut(number)?;
            packet.resent = true;
            return Some((packet.chunk(self.transport.header), true));
        }
        Some((self.streams.next(self.transport.payload())?, false))
    }

    /// Nothing was in flight: TCP validates a window that was not used for longer than the
    /// retransmission timeout.
    fn leave_idle(&mut self, now: Time) {
        let idle = now.since(self.last_sent_at);
        let rto = self.timeout_base();
        if self.transport.idle_restart && self.totals.packets > 0 && idle > rto {
            self.governor.on_idle(&Idle { now, idle, rto });
            // Once per idle period.
            self.last_sent_at = now;
        }
    }

    #[inline]
    fn send(&mut self, now: Time, chunk: Chunk, again: bool) -> Outgoing {
        let size = Bytes::new(u64::from(chunk.len)) + self.transport.header;
        let (record, sent) = self.tracker.on_sent(now, size);
        let number = record.number();
        let Chunk { stream, offset, .. } = chunk;
        self.packets.push(Packet { record, stream, offset, resent: false });
        self.highest_offset = self.highest_offset.max(chunk.offset + u64::from(chunk.len));
        self.last_sent_at = now;
        self.totals.packets += 1;
        self.totals.bytes += size;
        self.totals.retransmits += u64::from(again);
        self.governor.on_sent(&sent);
        if let (false, Some(collector)) = (again, self.governor.collector_mut()) {
            self.responses.on_sent(now, chunk, collector);
        }
        if let Some(prr) = self.prr() {
            prr.on_sent(size);
        }
        if let Some(rate) = self.pacing_rate() {
            self.pacer.on_sent(now, size, rate, self.transport.packet);
        }
        let tcp = self.transport.loss_detection == LossDetection::RackTlp;
        Outgoing {
            number,
            size,
            chunk,
            // RFC 3168 §6.1.5: not what TCP sends again.
            capable: !(tcp && again),
            reduced: !again && std::mem::take(&mut self.tell_reduced),
            marked: false,
        }
    }
}
