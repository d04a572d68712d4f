//! One flow: a server with a sender, a client with a receiver and an application, and the packets on
//! their way between them and the links.

use std::collections::VecDeque;

use trimtab_apps::{App, Application, Call, Command, Concurrency};
use trimtab_cc::resume::Resumption;
use trimtab_cc::set_knob;
use trimtab_net::{DelayConfig, DelayLine, JitterConfig};
use trimtab_qoe::Factors;
use trimtab_steer::{HostView, Steer, Steerer};
use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::control::Control;
use crate::governor::Governor;
use crate::histogram::Histogram;
use crate::media::{self, Media};
use crate::outside::{Host, Sight};
use crate::receiver::Receiver;
use crate::sender::{AckInfo, Outgoing, SendTotals, Sender};
use crate::streams::{Progress, ReceiveStreams, SendStreams};
use crate::transport::{LossDetection, Transport};

/// A flow of a world.
#[derive(Clone, Debug)]
pub struct FlowConfig {
    /// What decides how it sends.
    pub control: Control,
    /// How its connection resumes what an earlier one observed (RFC 9959), or observes; `None` for
    /// neither. A sender that sees the links or is set from outside does neither.
    pub resume: Option<Resumption>,
    /// The transport.
    pub transport: Transport,
    /// The application of its client.
    pub app: App,
    /// When the client starts.
    pub start: Time,
    /// When it stops asking; what is outstanding then is abandoned. [`Time::MAX`] for never.
    pub stop: Time,
    /// The links that its data crosses, in order, by their number in the world.
    pub forward: Vec<usize>,
    /// The links that its acknowledgements and requests cross. None is a path without a bottleneck.
    pub reverse: Vec<usize>,
    /// Propagation delay from the server to the first link.
    pub forward_delay: DelayConfig,
    /// Propagation delay from the last link of the way back to the server.
    pub reverse_delay: DelayConfig,
    /// Variation of the forward delay.
    pub jitter: JitterConfig,
    /// Seed of the algorithm's and the path's randomness.
    pub seed: u64,
}

impl FlowConfig {
    /// A flow of seed 1 that starts at once, stops with the run, and sends its data over link 0. Half
    /// of the round trip of propagation is on each way. Nothing varies it.
    pub fn new(control: Control, transport: Transport, app: App, rtt: Duration) -> Self {
        Self {
            control,
            resume: None,
            transport,
            app,
            start: Time::ZERO,
            stop: Time::MAX,
            forward: vec![0],
            reverse: Vec::new(),
            forward_delay: (rtt / 2).into(),
            reverse_delay: (rtt - rtt / 2).into(),
            jitter: JitterConfig::None,
            seed: 1,
        }
    }
}

/// What travels back to the server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Upstream {
    /// An acknowledgement.
    Ack(AckInfo),
    /// Request number `number` of the flow, for a response of `size` bytes.
    Request { number: u32, size: Bytes, upload: Bytes },
    /// Report number `number` of a flow of media, of that size.
    Report { number: u64, size: Bytes },
}

/// What a client received.
#[derive(Clone, Debug, Default)]
pub struct ReceiveTotals {
    /// Packets of this flow that a link or random loss dropped.
    pub dropped: u64,
    /// Response bytes handed to the application, in order.
    pub goodput: Bytes,
    /// Time that the data packets waited in queues.
    pub queue_delay: Histogram,
}

/// A running flow.
#[derive(Clone, Debug)]
pub struct Flow {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) app: App,
    pub(crate) transport: Transport,
    pub(crate) forward: Vec<usize>,
    pub(crate) reverse: Vec<usize>,
    pub(crate) reverse_line: DelayLine,
    pub(crate) forward_line: DelayLine,
    /// Data packets between the server and the first link.
    pub(crate) outbound: VecDeque<(Time, Outgoing)>,
    /// Acknowledgements and requests between the last link of the way back and the server.
    pub(crate) inbound: VecDeque<(Time, Upstream)>,
    /// Requests that were dropped on their way and will be sent again.
    pub(crate) repeat: VecDeque<(Time, Upstream)>,
    pub(crate) start: Time,
    pub(crate) stop: Time,
    pub(crate) received: ReceiveTotals,
    steerer: Option<Steerer>,
    /// What carries a call, in the place of streams; the sender then keeps only the account.
    media: Option<Box<Media>>,
    /// Requests made by the client.
    asked: u32,
    /// Requests answered in order by the server, and those that came too early.
    answered: u32,
    early: Vec<(u32, Bytes)>,
}

impl Flow {
    /// A flow over a path of this round-trip time.
    pub(crate) fn new(config: &FlowConfig, rtt: Duration) -> Self {
        let call = config.app.call();
        let transport = match call {
            Some(_) => media::transport(config.transport),
            None => config.transport,
        };
        let governor = config.control.governor(&transport.cc_config(config.seed), config.resume);
        let steerer = config.control.steerer();
        // TCP is one byte stream, whatever the application would like.
        let concurrency = match transport.loss_detection {
            LossDetection::RackTlp => Concurrency::InOrder,
            LossDetection::Rfc9002 => config.app.concurrency(),
        };
        // The handshake has measured the path once.
        let base = (!rtt.is_zero()).then_some((config.start, rtt));
        let mut sender =
            Sender::new(governor, SendStreams::new(concurrency), transport, base, config.seed);
        let srtt = sender.rtt().smoothed();
        if let (Some(steerer), Some(driver)) = (&steerer, sender.governor.driver_mut()) {
            driver.report_from(config.start, steerer.interval(srtt), steerer.needs());
        }
        Self {
            sender,
            receiver: Receiver::new(ReceiveStreams::new(concurrency), transport, config.seed),
            app: config.app.clone(),
            transport,
            forward: config.forward.clone(),
            reverse: config.reverse.clone(),
            reverse_line: DelayLine::plain(config.reverse_delay.clone()),
            forward_line: DelayLine::new(
                config.forward_delay.clone(),
                config.jitter,
                None,
                config.seed,
            ),
            outbound: VecDeque::new(),
            inbound: VecDeque::new(),
            repeat: VecDeque::new(),
            start: config.start,
            stop: config.stop,
            received: ReceiveTotals::default(),
            steerer,
            media: call.map(|call| Box::new(Media::new(call))),
            asked: 0,
            answered: 0,
            early: Vec::new(),
        }
    }

    /// What was sent and what became of it.
    pub fn sent(&self) -> &SendTotals {
        &self.sender.totals
    }

    /// What the client received.
    pub fn received(&self) -> &ReceiveTotals {
        &self.received
    }

    /// Packets that the client received with a congestion mark (ECN).
    pub fn marks(&self) -> u64 {
        self.receiver.marks()
    }

    /// The application.
    pub fn app(&self) -> &App {
        &self.app
    }

    /// What governs the sender's window.
    pub fn governor(&self) -> &Governor {
        &self.sender.governor
    }

    /// The rate that the sender of a call gives its encoder, headers, sound and what waits included;
    /// `None` of a flow that carries no call.
    pub fn media_rate(&self) -> Option<Rate> {
        self.media.as_ref().map(|media| media.rate(&self.sender))
    }

    /// What steers the algorithm.
    pub fn steerer(&self) -> Option<&Steerer> {
        self.steerer.as_ref()
    }

    /// The congestion window as the transport applies it.
    pub fn window(&self) -> Bytes {
        self.sender.window()
    }

    /// Bytes in flight.
    pub fn inflight(&self) -> Bytes {
        self.sender.inflight()
    }

    /// The smoothed round-trip time.
    pub fn srtt(&self) -> Duration {
        self.sender.rtt().smoothed()
    }

    /// The lowest round-trip time.
    pub fn min_rtt(&self) -> Duration {
        self.sender.rtt().min()
    }

    /// What the flow saw since this was asked last, where somebody outside sets it; `None` of others.
    pub(crate) fn take_sight(&mut self, now: Time) -> Option<Sight> {
        let (rtt, mss) = (self.sender.rtt(), self.transport.packet);
        let (srtt, min_rtt) = (rtt.smoothed(), rtt.min());
        let host = Host { srtt, min_rtt, inflight: self.sender.inflight(), mss };
        match &mut self.sender.governor {
            Governor::Outside(outside) => Some(outside.take(now, host)),
            Governor::Driven(_) | Governor::Seeing(_) => None,
        }
    }

    /// Sets a knob of the running algorithm; a sender without an algorithm has none.
    ///
    /// # Errors
    /// There is no such knob, or the value is out of its range.
    pub fn set_knob(&mut self, name: &str, value: f64) -> Result<(), trimtab_cc::KnobError> {
        match self.sender.governor.algorithm_mut() {
            Some(cca) => set_knob(cca, name, value),
            None => Err(trimtab_cc::KnobError::Unknown { knobs: &[] }),
        }
    }

    /// What carries a call, with the account of its packets, and the call.
    fn media(&mut self) -> Option<(&mut Media, &mut Sender, &mut Call)> {
        Some((self.media.as_mut()?, &mut self.sender, self.app.call_mut()?))
    }

    /// The next packet of the server, if one may leave now. Call until it returns `None`.
    #[inline]
    pub(crate) fn poll_send(&mut self, now: Time) -> Option<Outgoing> {
        match self.media() {
            None => self.sender.poll_send(now),
            Some((media, sender, call)) => media.poll_send(now, sender, call),
        }
    }

    /// Whether the server has anything to send, for the first time or again.
    pub(crate) fn has_data(&self) -> bool {
        self.media.as_ref().map_or_else(|| self.sender.has_data(), |media| media.has_data())
    }

    /// What the client reports of a call, as a message on its way.
    pub(crate) fn poll_report(&mut self, now: Time) -> Option<Upstream> {
        let (media, sender, call) = self.media()?;
        let (number, size) = media.report(now, call, sender.rtt().smoothed())?;
        Some(Upstream::Report { number, size })
    }

    /// The client has begun. Whether the server has to be woken, since it sends unasked.
    pub(crate) fn begin_media(&mut self, now: Time) -> bool {
        self.media().is_some_and(|(media, sender, call)| media.begin(now, sender, call))
    }

    /// What the client wants next, as a request on its way.
    pub(crate) fn poll_app(&mut self, now: Time) -> Option<Upstream> {
        if now >= self.stop {
            return None;
        }
        let Command::Request { id, size, upload } = self.app.poll(now)?;
        self.receiver.streams.expect(id, size);
        let number = self.asked;
        self.asked += 1;
        Some(Upstream::Request { number, size, upload })
    }

    /// When the client's side has something to do.
    pub(crate) fn client_timer(&self, now: Time) -> Time {
        let mut next = self.receiver.ack_at();
        if let (Some(media), Some(call)) = (&self.media, self.app.call()) {
            next = next.min(media.client_timer(call));
        }
        if let Some(&(at, _)) = self.repeat.front() {
            next = next.min(at);
        }
        if now < self.start {
            next = next.min(self.start);
        } else if now < self.stop
            && let Some(at) = self.app.next_timer().filter(|&at| at < self.stop)
        {
            // A stopped client is not asked; what it would have asked by now stays due.
            next = next.min(at);
        }
        next
    }

    /// A data packet reached the client.
    pub(crate) fn deliver(&mut self, now: Time, packet: Outgoing) {
        if let Some((media, sender, call)) = self.media() {
            let fresh = media.deliver(now, packet.number, call, sender.rtt().smoothed());
            self.received.goodput += fresh;
            return;
        }
        let (app, received) = (&mut self.app, &mut self.received);
        self.receiver.on_packet(now, &packet, |progress: Progress| {
            received.goodput += progress.newly;
            if progress.first {
                app.on_first_byte(now, progress.id);
            }
            app.on_bytes(now, progress.id, progress.newly);
            if progress.complete {
                app.on_complete(now, progress.id);
            }
        });
    }

    /// Something reached the server.
    pub(crate) fn arrive(&mut self, now: Time, message: Upstream) {
        match message {
            Upstream::Ack(info) => {
                let arrivals = self.receiver.take(info);
                self.sender.on_ack(now, info, arrivals);
                if let Some(driver) = self.sender.governor.driver_mut() {
                    driver.decide();
                }
            }
            Upstream::Request { number, size, .. } => self.answer(now, number, size),
            Upstream::Report { number, .. } => {
                if let Some((media, sender, call)) = self.media() {
                    media.arrive(now, number, sender, call);
                }
            }
        }
    }

    /// The server answers. On TCP requests come in the order in which they were sent, so one that
    /// overtook a lost one waits for it.
    fn answer(&mut self, now: Time, number: u32, size: Bytes) {
        if self.transport.loss_detection == LossDetection::Rfc9002 {
            self.sender.write(now, number, size);
            return;
        }
        self.early.push((number, size));
        while let Some(i) = self.early.iter().position(|&(n, _)| n == self.answered) {
            let (number, size) = self.early.swap_remove(i);
            self.sender.write(now, number, size);
            self.answered += 1;
        }
    }

    /// When the server's side has something to do.
    pub(crate) fn server_timer(&self) -> Time {
        match (&self.media, self.app.call()) {
            (Some(media), Some(call)) => media.server_timer(&self.sender, call),
            _ => self.sender.next_timer(),
        }
    }

    /// Does what is due on the server's side.
    pub(crate) fn on_server_timer(&mut self, now: Time) {
        match self.media() {
            None => self.sender.on_timer(now),
            Some((media, sender, call)) => media.on_server_timer(now, sender, call),
        }
        self.steer(now);
    }

    /// A report to the steering where one is due, and what it answers to the algorithm.
    fn steer(&mut self, now: Time) {
        let sender = &mut self.sender;
        let (srtt, min_rtt) = (sender.rtt().smoothed(), sender.rtt().min());
        let unsent = self.media.as_ref().map_or_else(|| sender.unsent(), |media| media.unsent());
        let inflight = sender.inflight();
        let (Some(steerer), Some(driver)) = (&mut self.steerer, sender.governor.driver_mut())
        else {
            return;
        };
        if !driver.is_report_due(now) {
            return;
        }
        let (mss, factors) = (self.transport.packet, Factors::from(&self.app.factors(now)));
        let view = HostView { srtt, min_rtt, inflight, mss, unsent, factors };
        let Some(report) = driver.report(now, view) else { return };
        if let Some(action) = steerer.on_report(&report) {
            let done = driver.act(now, &action);
            debug_assert!(done.is_ok(), "the steering asked for {action:?}: {done:?}");
        }
        driver.report_after(now, steerer.interval(report.srtt));
    }
}
