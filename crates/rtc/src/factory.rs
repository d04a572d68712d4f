//! What a sender of media asks for, for each peer connection.

use std::sync::Arc;
use std::time::Instant;

use trimtab_stack::{Handle, Pacing, Paths, Stack, Traits};

use crate::bitrates::Bitrates;
use crate::estimator::Estimator;
use crate::pacer::Pacer;
use crate::shared::{Shared, Target};

/// The payload of a full RTP packet, as rtc and libwebrtc send it.
pub(crate) const PAYLOAD: u16 = 1200;
/// The size of such a packet on the wire: IPv4 20, UDP 8, RTP 12, its extension with the
/// transport-wide number 8, SRTP's tag 10. libwebrtc counts the same
/// (`WebRTC-SendSideBwe-WithOverhead`).
pub(crate) const PACKET: u16 = PAYLOAD + 12 + OVERHEAD;
/// What of that is not in the packet when it reaches the pacer.
pub(crate) const OVERHEAD: u16 = 20 + 8 + 8 + 10;

/// rtc-interceptor, as [`Config`](crate::Config) takes it: our pacer obeys a rate.
#[derive(Clone, Debug)]
pub enum Rtc {}

impl Stack for Rtc {
    type Factory = SenderFactory;
    const TRAITS: &'static Traits =
        &Traits { pacing: Pacing::ByRate, own: "rtc_interceptor::ConstantBitrate" };
}

/// Makes the parts of a sender ([`Config::connection`](trimtab_stack::Config::connection)).
#[derive(Debug)]
pub struct SenderFactory {
    paths: Paths,
}

/// The parts of a sender: two for the chain of interceptors, one for the encoder.
#[derive(Debug)]
pub struct Sender {
    /// For [`CongestionControlBuilder::new`](rtc_interceptor::CongestionControlBuilder::new).
    pub estimator: Estimator,
    /// For [`Slot::Pacer`](rtc_interceptor::Slot::Pacer).
    pub pacer: Pacer,
    /// For the encoder.
    pub target: Target,
}

impl SenderFactory {
    /// The parts of a sender over a new path.
    pub fn sender(&self, now: Instant, bitrates: Bitrates) -> Sender {
        let shared = Arc::new(Shared::new(self.paths.build(now, PACKET), bitrates, now));
        Sender {
            estimator: Estimator::new(shared.clone(), now),
            pacer: Pacer::new(shared.clone(), now),
            target: Target(shared),
        }
    }

    /// A handle to all senders that this factory made or will make.
    pub fn handle(&self) -> Handle {
        self.paths.handle()
    }
}

impl From<Paths> for SenderFactory {
    fn from(paths: Paths) -> Self {
        Self { paths }
    }
}
