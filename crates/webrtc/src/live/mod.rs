//! A call to a browser behind an emulated link.
//!
//! Read first: `peer.rs` for the sending end, `browser.rs` and `receiver.js` for the receiving end,
//! `call.rs` for what is sent when, `vmaf.rs` for what the pictures are worth.

mod browser;
mod call;
mod datapath;
mod encoder;
mod peer;
mod requests;
mod run;
mod stills;
mod studio;
mod vmaf;
mod watch;

use std::net::UdpSocket;

use rtc::interceptor::{CongestionControlBuilder, Registry, Slot};
use trimtab_apps::CallRecord;
use trimtab_emu::{Config as Link, Observer, Report, Topology};
use trimtab_net::{Capacity, LinkConfig};
use trimtab_rtc::units::{Bytes, Duration, Rate, Time};
use trimtab_rtc::{Bitrates, Config, Handle, Metrics};

use self::browser::Browser;
use self::call::Call;

use crate::error::WebrtcError;

pub use call::{Scene, Stats};
pub use datapath::Browsers;
pub use encoder::{Encoded, Encoder};
pub use peer::{CLOCK_RATE, Peer};
pub use requests::{Listener, Requests};
pub use studio::{Clip, Size, Studio};

/// How long frames that were sent last may take to the screen.
const AFTERMATH: Duration = Duration::from_millis(1000);

/// A call under way.
pub struct Live<'a> {
    call: Call<'a>,
    browser: Browser,
    handle: Handle,
}

/// How a call went.
#[derive(Clone, Debug)]
pub struct Called {
    /// What the viewer saw, with measured VMAF and pictures of the worst moments.
    pub record: CallRecord,
    /// What the browser reports.
    pub stats: Stats,
    /// The sender at the end.
    pub metrics: Option<Metrics>,
    /// Packets that the browser asked for again.
    pub retransmits: u64,
}

/// A direction that only delays.
fn delay(by: Duration) -> LinkConfig {
    LinkConfig::new(Capacity::Constant(Rate::MAX)).delay(by)
}

impl<'a> Live<'a> {
    /// Starts a browser at the client's end and a sender at the server's, connects them over a path
    /// that only delays, by half of `rtt` each way, and then starts the link. The call begins with it.
    ///
    /// # Errors
    /// There is no browser, the connection is not made, or the system refuses the link.
    pub fn begin(
        topology: &mut Topology,
        scene: Scene<'a>,
        (config, bitrates): (&Config, Bitrates),
        rtt: Duration,
        (link, observer): (&Link, Observer),
    ) -> Result<Self, WebrtcError> {
        let mut browser = topology.client().run(Browser::start)?;
        let address = topology.server_address();
        let socket = topology.server().run(move || UdpSocket::bind((address, 0)));
        let socket = socket.map_err(WebrtcError::system("open a socket"))?;
        let half = || delay(rtt / 2);
        topology.start(&Link { down: half(), up: half(), seed: link.seed, log: None })?;
        let (factory, handle) = config.connection();
        let sender = factory.sender(std::time::Instant::now(), bitrates);
        let estimator = CongestionControlBuilder::new(sender.estimator)
            .with_prune_horizon(trimtab_rtc::HISTORY)
            .build();
        let chain = Registry::new()
            .with(Slot::CongestionControl, estimator)
            .with(Slot::Pacer, sender.pacer);
        let (mut peer, answer) = Peer::answer(socket, &browser.offer()?, chain, sender.target)?;
        browser.answer(&answer)?;
        let connected = Call::connect(&mut peer);
        topology.stop()?;
        connected?;
        topology.start_observed(link, observer)?;
        let call = Call::begin(peer, bitrates.most, scene)?;
        Ok(Self { call, browser, handle })
    }

    /// The time of the call.
    pub fn now(&self) -> Time {
        self.call.now()
    }

    /// What steers the sender.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Bytes of video that were presented so far, some seconds late.
    pub fn presented(&self) -> Bytes {
        self.call.presented()
    }

    /// The bitrate that the encoder follows.
    pub fn target(&self) -> Rate {
        self.call.peer().target().bitrate()
    }

    /// Goes on until then.
    ///
    /// # Errors
    /// The connection or the browser failed.
    pub fn run_until(&mut self, until: Time) -> Result<(), WebrtcError> {
        self.call.run_until(until, &mut self.browser)
    }

    /// What the viewer saw so far, without a measured VMAF.
    pub fn record(&self) -> CallRecord {
        self.call.record(self.call.now())
    }

    /// Ends it: waits for what is on its way to the screen, and measures what the viewer saw.
    ///
    /// # Errors
    /// The browser or ffmpeg failed.
    pub fn end(mut self, studio: &Studio) -> Result<Called, WebrtcError> {
        let end = self.call.now();
        self.call.settle(AFTERMATH, &mut self.browser)?;
        let stats = Stats(self.browser.stats()?);
        let mut record = self.call.record(end);
        (record.measured_vmaf, record.stills) = self.call.measure(studio, &record)?;
        let retransmits = self.call.peer().retransmits();
        Ok(Called { record, stats, metrics: self.handle.metrics(), retransmits })
    }
}

/// A call of so long over a link, from beginning to end.
///
/// # Errors
/// As [`Live`]'s.
pub fn call(
    topology: &mut Topology,
    (studio, scene): (&Studio, Scene<'_>),
    (config, bitrates): (&Config, Bitrates),
    rtt: Duration,
    (link, length): (&Link, Duration),
) -> Result<(Called, Report), WebrtcError> {
    let observer: Observer = Box::new(|_| {});
    let mut live = Live::begin(topology, scene, (config, bitrates), rtt, (link, observer))?;
    live.run_until(Time::ZERO + length)?;
    let called = live.end(studio)?;
    Ok((called, topology.stop()?))
}
