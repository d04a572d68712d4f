//! The world: flows and links under a virtual clock.

use trimtab_apps::Application;
use trimtab_cc::migrate::Switch;
use trimtab_cc::{Decision, Spec};
use trimtab_net::{Capacity, Event, Link, LinkConfig, Packet};
use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::agenda::Agenda;
use crate::flow::{Flow, FlowConfig, Upstream};
use crate::foresight::Foresight;
use crate::omniscient::LinkView;
use crate::outside::{Dial, Sight};
use crate::sender::Outgoing;

/// A lost request is sent again after this long (TCP's initial retransmission timeout is a second,
/// a connection in use has measured less).
const REQUEST_RETRY: Duration = Duration::from_millis(300);

/// What is simulated.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// The links, with the seed of each.
    pub links: Vec<(LinkConfig, u64)>,
    /// The flows.
    pub flows: Vec<FlowConfig>,
}

/// What links carry: of which flow, and on which hop of its route.
#[derive(Clone, Copy, Debug)]
struct Cargo {
    flow: u32,
    hop: u32,
    load: Load,
}

/// A packet of either direction.
#[derive(Clone, Copy, Debug)]
enum Load {
    Data(Outgoing),
    Upstream(Upstream),
}

/// The sources of a flow on the agenda, after those of the links.
const SOURCES: usize = 4;
const OUTBOUND: usize = 0;
const INBOUND: usize = 1;
const SERVER: usize = 2;
const CLIENT: usize = 3;

/// A running simulation.
///
/// It is `Clone`: a copy continues exactly as the original would, so trying several continuations
/// from the same instant gives exact counterfactuals. Equal configurations give equal runs on every
/// machine.
#[derive(Clone, Debug)]
pub struct World {
    now: Time,
    agenda: Agenda,
    links: Vec<Link<Cargo>>,
    /// Where a flow's governor sees the links.
    foresight: Option<Foresight>,
    flows: Vec<Flow>,
    events: u64,
    /// The flow whose algorithm waits for a decision from outside.
    undecided: Option<usize>,
}

impl World {
    /// A world at time zero.
    ///
    /// # Panics
    /// A flow's route names a link that is not there.
    pub fn new(config: &WorldConfig) -> Self {
        let links: Vec<_> =
            config.links.iter().map(|(link, seed)| Link::new(link, *seed)).collect();
        for flow in &config.flows {
            let known = |route: &[usize]| route.iter().all(|&link| link < links.len());
            assert!(known(&flow.forward) && known(&flow.reverse), "a route names a missing link");
        }
        // What the handshake takes, at least.
        let propagation = |flow: &FlowConfig| {
            let route = flow.forward.iter().chain(&flow.reverse);
            let links = route.map(|&link| &config.links[link].0.delay);
            let all = links.chain([&flow.forward_delay, &flow.reverse_delay]);
            all.fold(Duration::ZERO, |sum, delay| sum + delay.at(flow.start))
        };
        let flows: Vec<_> =
            config.flows.iter().map(|flow| Flow::new(flow, propagation(flow))).collect();
        let mut agenda = Agenda::new(links.len() + SOURCES * flows.len());
        for (i, flow) in flows.iter().enumerate() {
            agenda.set(links.len() + SOURCES * i + CLIENT, flow.start);
        }
        let sees = |flow: &Flow| flow.sender.governor.looks_every().is_some();
        let foresight = flows.iter().any(sees).then(|| Foresight::new(&config.links));
        Self { now: Time::ZERO, agenda, links, foresight, flows, events: 0, undecided: None }
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The flows.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// A flow, to turn its knobs.
    pub fn flow_mut(&mut self, flow: usize) -> &mut Flow {
        &mut self.flows[flow]
    }

    /// Asks a flow for another algorithm, now. Whether that can be had: only with a steering that says that it switches
    /// ([`Steer::needs`](trimtab_steer::Steer::needs)).
    pub fn switch(&mut self, flow: usize, to: Spec, how: Switch) -> bool {
        let now = self.now;
        let done = self.flows[flow].sender.governor.request(to, how, now);
        // A window that grew lets packets go.
        self.pump(flow);
        done
    }

    /// Sets the window and the rate of a flow from now on; one that waited for a decision goes on.
    /// Whether that can be had: only of one that is set from outside
    /// ([`Control::Outside`](crate::Control::Outside)).
    pub fn set(&mut self, flow: usize, dial: Dial) -> bool {
        let done = self.flows[flow].sender.governor.set(dial);
        if done {
            self.undecided.take_if(|waiting| *waiting == flow);
            self.pump(flow);
        }
        done
    }

    /// What a flow saw since this was asked last, where it is set from outside; `None` of others.
    pub fn take_sight(&mut self, flow: usize) -> Option<Sight> {
        let now = self.now;
        self.flows[flow].take_sight(now)
    }

    /// From now on another future, drawn by `seed`, and the same past: other losses, jitter and marks,
    /// another place of a link's trace, and other requests. What is under way stays, and so does what
    /// an algorithm draws.
    pub fn redraw(&mut self, seed: u64) {
        self.redraw_around(seed, 0);
    }

    /// The same, but the first `kept` flows go on with the requests that they would have made.
    pub fn redraw_around(&mut self, seed: u64, kept: usize) {
        let now = self.now;
        for link in 0..self.links.len() {
            self.links[link].redraw(now, seed.wrapping_add(link as u64));
            self.arm_link(link);
        }
        if let Some(foresight) = &mut self.foresight {
            foresight.redraw(now, seed);
        }
        for i in 0..self.flows.len() {
            let flow = &mut self.flows[i];
            // Not those of the links.
            let seed = seed.rotate_left(32).wrapping_add(i as u64);
            flow.forward_line.reseed(seed);
            if i < kept {
                continue;
            }
            flow.app.redraw(now, seed);
            let next = flow.client_timer(now);
            self.arm_early(self.source(i, CLIENT), next);
        }
    }

    /// Events handled so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// What a link counted.
    pub fn link_stats(&self, link: usize) -> &trimtab_net::LinkStats {
        self.links[link].stats()
    }

    /// Bytes waiting in a link's queue.
    pub fn queue(&self, link: usize) -> Bytes {
        self.links[link].queue_bytes()
    }

    /// Whether every application is finished.
    pub fn is_finished(&self) -> bool {
        self.flows.iter().all(|f| f.app.is_finished() || self.now >= f.stop)
    }

    /// Simulates up to and including `end`. A flow that waits for a decision keeps its window.
    pub fn run_until(&mut self, end: Time) {
        while self.run_to_decision(end).is_some() {
            self.decide(Decision::KEEP);
        }
    }

    /// Simulates until a flow waits for a decision from outside, at most up to and including `end`:
    /// its algorithm does ([`awaiting`](trimtab_cc::CongestionControl::awaiting)), or its
    /// [`Dial`] is to stop. Gives the flow's number; it sends nothing until
    /// [`decide`](Self::decide) or [`set`](Self::set) has answered.
    pub fn run_to_decision(&mut self, end: Time) -> Option<usize> {
        loop {
            // Also where the last stop was not answered.
            if let Some(flow) = self.undecided {
                return Some(flow);
            }
            if !self.advance(end) {
                break;
            }
        }
        self.now = self.now.max(end);
        None
    }

    /// Answers the flow at which [`run_to_decision`](Self::run_to_decision) stopped. The flow goes on as if its
    /// algorithm had decided itself. Nothing happens where no flow waits.
    pub fn decide(&mut self, decision: impl Into<Decision>) {
        if let Some(flow) = self.undecided.take() {
            self.flows[flow].sender.governor.on_decision(decision.into());
            self.pump(flow);
        }
    }

    /// Handles the next event, if it is not after `end`. Whether there was one.
    fn advance(&mut self, end: Time) -> bool {
        let (time, source) = self.agenda.next();
        if time > end {
            return false;
        }
        debug_assert!(time >= self.now, "time runs backwards");
        self.now = time;
        self.events += 1;
        self.handle(source);
        true
    }

    fn source(&self, flow: usize, which: usize) -> usize {
        self.links.len() + SOURCES * flow + which
    }

    fn handle(&mut self, source: usize) {
        let Some(of_flow) = source.checked_sub(self.links.len()) else {
            self.poll_link(source);
            return;
        };
        let flow = of_flow / SOURCES;
        match of_flow % SOURCES {
            OUTBOUND => self.outbound(flow),
            INBOUND => self.inbound(flow),
            SERVER => {
                self.flows[flow].on_server_timer(self.now);
                // The key may have been early; whatever is next is set anew.
                self.agenda.set(source, Time::MAX);
                self.pump(flow);
            }
            _ => self.client(flow),
        }
    }

    /// Lets a flow send what it may, and sets its timer.
    fn pump(&mut self, flow: usize) {
        let now = self.now;
        let sees = self.flows[flow].sender.governor.looks_every().is_some();
        if sees {
            self.look(flow);
        }
        while let Some(packet) = self.flows[flow].poll_send(now) {
            if sees {
                self.foresee(flow, packet.size);
                self.look(flow);
            }
            let at = self.flows[flow].forward_line.release(now);
            if at == now {
                self.send(flow, 0, packet);
            } else {
                let outbound = &mut self.flows[flow].outbound;
                outbound.push_back((at, packet));
                if outbound.len() == 1 {
                    self.agenda.set(self.source(flow, OUTBOUND), at);
                }
            }
        }
        self.arm(flow);
    }

    /// Sets a timer. One that is set too early is left: it fires and is set anew, which is cheaper
    /// than moving it with every packet or acknowledgement.
    fn arm_early(&mut self, source: usize, next: Time) {
        let set = self.agenda.time(source);
        if next < set || set <= self.now {
            self.agenda.set(source, next.max(self.now));
        }
    }

    /// Sets the server's timer.
    fn arm(&mut self, flow: usize) {
        let source = self.source(flow, SERVER);
        let f = &self.flows[flow];
        let mut next = f.server_timer();
        if let Some(every) = f.sender.governor.looks_every()
            && f.has_data()
        {
            next = next.min(self.now + every);
        }
        self.arm_early(source, next);
    }

    /// Shows the links to a governor that sees them.
    fn look(&mut self, flow: usize) {
        let f = &self.flows[flow];
        let Some(&bottleneck) = f.forward.first() else { return };
        let Some(foresight) = &mut self.foresight else { return };
        let at = f.forward_line.earliest(self.now);
        let (capacity, queue, queue_limit) = foresight.see(bottleneck, at);
        let (mut peers, mut least_inflight) = (0, Bytes::MAX);
        for other in &self.flows {
            if other.sender.governor.looks_every().is_some() && other.has_data() {
                peers += 1;
                least_inflight = least_inflight.min(other.sender.inflight());
            }
        }
        let (packet, inflight) = (f.transport.packet, f.sender.inflight());
        let is_call = f.app.call().is_some();
        let view = LinkView {
            at,
            capacity,
            queue,
            queue_limit,
            packet,
            inflight,
            peers,
            least_inflight,
            is_call,
        };
        self.flows[flow].sender.governor.look(&view);
    }

    /// A flow whose governor sees the links sends a packet: the first link of the future has it.
    fn foresee(&mut self, flow: usize, size: Bytes) {
        let Some(&bottleneck) = self.flows[flow].forward.first() else { return };
        let at = self.flows[flow].forward_line.earliest(self.now);
        if let Some(foresight) = &mut self.foresight {
            foresight.send(bottleneck, at, size);
        }
    }

    /// Packets that reach the first link.
    fn outbound(&mut self, flow: usize) {
        let link = self.flows[flow].forward.first().copied();
        let mut next = Time::MAX;
        while let Some(&(at, packet)) = self.flows[flow].outbound.front() {
            if at > self.now {
                next = at;
                break;
            }
            self.flows[flow].outbound.pop_front();
            match link {
                Some(link) => self.enter(link, flow, 0, packet),
                None => self.deliver(flow, packet),
            }
        }
        if let Some(link) = link {
            self.arm_link(link);
        }
        self.agenda.set(self.source(flow, OUTBOUND), next);
    }

    /// Acknowledgements and requests that reach the server.
    fn inbound(&mut self, flow: usize) {
        let now = self.now;
        let f = &mut self.flows[flow];
        let mut next = Time::MAX;
        while let Some(&(at, message)) = f.inbound.front() {
            if at > now {
                next = at;
                break;
            }
            f.inbound.pop_front();
            f.arrive(now, message);
        }
        let awaits = f.governor().awaits();
        self.agenda.set(self.source(flow, INBOUND), next);
        if awaits {
            self.undecided = Some(flow);
        } else {
            self.pump(flow);
        }
    }

    /// A data packet goes on to hop number `hop` of its route, or reaches the client.
    fn send(&mut self, flow: usize, hop: usize, packet: Outgoing) {
        match self.flows[flow].forward.get(hop) {
            Some(&link) => {
                self.enter(link, flow, hop, packet);
                self.arm_link(link);
            }
            None => self.deliver(flow, packet),
        }
    }

    /// A data packet enters a link. The caller then arms it, once for all that enter at one time.
    fn enter(&mut self, link: usize, flow: usize, hop: usize, packet: Outgoing) {
        let cargo = Cargo { flow: flow as u32, hop: hop as u32, load: Load::Data(packet) };
        let data = Packet { size: packet.size, payload: cargo };
        let link = &mut self.links[link];
        let sent = if packet.capable {
            link.send_capable(self.now, data)
        } else {
            link.send(self.now, data)
        };
        if sent.is_err() {
            self.flows[flow].received.dropped += 1;
        }
    }

    fn deliver(&mut self, flow: usize, packet: Outgoing) {
        self.flows[flow].deliver(self.now, packet);
        self.client(flow);
    }

    /// An acknowledgement or request enters hop number `hop` of its way back.
    fn send_back(&mut self, flow: usize, hop: usize, message: Upstream) {
        let Some(&link) = self.flows[flow].reverse.get(hop) else {
            let f = &mut self.flows[flow];
            let at = f.reverse_line.release(self.now);
            f.inbound.push_back((at, message));
            if f.inbound.len() == 1 {
                self.agenda.set(self.source(flow, INBOUND), at);
            }
            return;
        };
        let size = match message {
            Upstream::Ack(_) => self.flows[flow].transport.ack_size,
            Upstream::Request { upload, .. } => upload,
            Upstream::Report { size, .. } => size,
        };
        let cargo = Cargo { flow: flow as u32, hop: hop as u32, load: Load::Upstream(message) };
        if self.links[link].send(self.now, Packet { size, payload: cargo }).is_err() {
            self.dropped_back(flow, message);
        }
        self.arm_link(link);
    }

    /// A lost acknowledgement or report is made up for by the next one; a lost request is sent again.
    fn dropped_back(&mut self, flow: usize, message: Upstream) {
        if let Upstream::Request { .. } = message {
            let at = self.now + REQUEST_RETRY;
            self.flows[flow].repeat.push_back((at, message));
            let source = self.source(flow, CLIENT);
            if at < self.agenda.time(source) {
                self.agenda.set(source, at);
            }
        }
    }

    fn arm_link(&mut self, link: usize) {
        self.agenda.set(link, self.links[link].next_event().unwrap_or(Time::MAX));
    }

    fn poll_link(&mut self, link: usize) {
        while let Some(event) = self.links[link].poll(self.now) {
            match event {
                Event::Delivered(delivery) => {
                    let Cargo { flow, hop, load } = delivery.packet.payload;
                    let (flow, hop) = (flow as usize, hop as usize + 1);
                    match load {
                        Load::Data(mut packet) => {
                            packet.marked |= delivery.marked;
                            // A link without a limit is no queue, only a delay.
                            if !matches!(self.links[link].capacity(), Capacity::Constant(Rate::MAX))
                            {
                                let waited = delivery.departed_at.since(delivery.enqueued_at);
                                self.flows[flow].received.queue_delay.record(waited);
                            }
                            self.send(flow, hop, packet);
                        }
                        Load::Upstream(message) => self.send_back(flow, hop, message),
                    }
                }
                Event::Dropped(dropped) => {
                    let Cargo { flow, load, .. } = dropped.packet.payload;
                    match load {
                        Load::Data(_) => self.flows[flow as usize].received.dropped += 1,
                        Load::Upstream(message) => self.dropped_back(flow as usize, message),
                    }
                }
            }
        }
        self.arm_link(link);
    }

    /// The client's turn: its application may ask, its receiver may acknowledge.
    fn client(&mut self, flow: usize) {
        let now = self.now;
        if now >= self.flows[flow].start {
            while let Some(&(at, message)) = self.flows[flow].repeat.front() {
                if at > now {
                    break;
                }
                self.flows[flow].repeat.pop_front();
                self.send_back(flow, 0, message);
            }
            while let Some(request) = self.flows[flow].poll_app(now) {
                self.send_back(flow, 0, request);
            }
            if self.flows[flow].begin_media(now) {
                self.pump(flow);
            }
            while let Some(report) = self.flows[flow].poll_report(now) {
                self.send_back(flow, 0, report);
            }
        }
        if self.flows[flow].receiver.ack_at() <= now {
            let info = self.flows[flow].receiver.acknowledge(now);
            self.send_back(flow, 0, Upstream::Ack(info));
        }
        let next = self.flows[flow].client_timer(now);
        self.arm_early(self.source(flow, CLIENT), next);
    }
}
