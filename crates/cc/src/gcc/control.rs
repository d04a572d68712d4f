//! GCC as a congestion control: what each event of a transport does, and what it may send.

use trimtab_units::{Bytes, Duration, Rate, Time};

use super::rivals::Rivals;
use super::search::Search;
use super::{Gcc, PACE, PACE_AMONG, PROCESS_EVERY, Told};
use crate::by_rate::{self, Transport};
use crate::knob::knob_methods;
use crate::{
    Ack, Config, CongestionControl, Feedback, Loss, LostPacket, Marked, Phase, Probe, Sent, Timeout,
};

impl CongestionControl for Gcc {
    fn on_established(&mut self, rtt: Duration) {
        self.srtt = rtt;
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.target.on_sent(sent.now);
        self.rivals.on_sent(sent);
        self.alr.on_sent(sent.now, sent.bytes, self.rate());
        if sent.now.since(self.processed_at) >= PROCESS_EVERY {
            self.process(sent.now);
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.srtt = ack.srtt;
        by_rate::grow(&mut self.ceiling, ack, self.config.mss);
        match self.told {
            Told::Media => return self.rivals.on_ack(ack, self.acked.rate()),
            Told::Nothing => {
                let rate = self.start_rate().max(self.window_rate());
                self.begin(rate);
                self.told = Told::Acks(Some(Search::new(rate, ack.now)));
            }
            Told::Acks(_) => {}
        }
        self.target.loss.observations().add(ack.newest_sent_at, ack.acked, true);
        by_rate::as_feedback(ack, |feedback| self.receive(feedback));
        self.search(ack);
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        if !matches!(self.told, Told::Media) {
            // What acknowledgements told is of another kind.
            let known = matches!(self.told, Told::Acks(None));
            self.begin(if known { self.target.rate() } else { self.start_rate() });
            self.told = Told::Media;
        }
        for packet in feedback.packets {
            let arrived = packet.arrived_at.is_some();
            self.target.loss.observations().add(packet.sent_at, packet.bytes, arrived);
        }
        self.look_around(feedback);
        self.receive(feedback);
    }

    /// Feedback counts them itself.
    fn on_packet_lost(&mut self, lost: &LostPacket) {
        if !matches!(self.told, Told::Media) {
            self.target.loss.observations().add(lost.sent_at, lost.bytes, false);
        }
    }

    /// Losses count by packet, in the loss part, unless others fill the queue.
    fn on_loss(&mut self, loss: &Loss) {
        self.rivals.on_loss(loss);
    }

    fn on_marked(&mut self, marked: &Marked) {
        // The window holds more than a round trip: the bound is one of what is in flight.
        self.ceiling.on_marked(marked, marked.prior_inflight, self.config.mss);
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        if let Told::Acks(search) = &mut self.told {
            *search = None;
        }
        let rate = self.rate().mul_f64(0.5);
        self.rivals = Rivals::default();
        self.go(rate, timeout.now);
    }

    fn on_mtu(&mut self, limits: &Config) {
        let initial_window = self.config.initial_window.max(limits.min_window);
        self.config = Config { initial_window, seed: self.config.seed, ..*limits };
        self.ceiling.on_mtu(limits.mss);
        self.rivals.on_mtu(limits);
    }

    fn window(&self) -> Bytes {
        let held = match self.told {
            Told::Nothing => self.config.initial_window,
            Told::Acks(_) => self.held(Transport::Stream),
            Told::Media => self.held_of_media(),
        };
        held.min(self.ceiling.get()).max(self.config.min_window)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(match self.told {
            Told::Nothing => self.rate().mul_f64(PACE).max(self.window_rate()),
            Told::Acks(_) => self.rate(),
            Told::Media if self.rivals.compete() => self.rate().mul_f64(PACE_AMONG),
            Told::Media => self.rate().mul_f64(PACE),
        })
    }

    fn target(&self) -> Option<Rate> {
        Some(self.rate())
    }

    fn take_probe(&mut self, now: Time) -> Option<Probe> {
        // Only transports of media ask.
        if matches!(self.told, Told::Nothing) {
            self.told = Told::Media;
        }
        if now.since(self.processed_at) >= PROCESS_EVERY {
            self.process(now);
        }
        let (since, calm) = (self.alr.since(), self.is_calm());
        let probe = self.probing.take(now, since, calm, &self.values)?;
        self.clusters.expect(&probe);
        Some(probe)
    }

    fn phase(&self) -> Phase {
        match self.told {
            Told::Nothing | Told::Acks(Some(_)) => Phase::SlowStart,
            Told::Acks(None) | Told::Media => Phase::Steady,
        }
    }

    /// It has no recovery: losses are a share of what was sent.
    fn manages_recovery(&self) -> bool {
        true
    }

    knob_methods!(self.values, then on_knob);
}
