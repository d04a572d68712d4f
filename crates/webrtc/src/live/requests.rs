//! What the receiver asks for, which `rtc` keeps from the application: key frames and packets.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use rtc::interceptor::{Interceptor, Packet, StreamInfo, TaggedPacket};
use rtc::rtcp::payload_feedbacks::full_intra_request::FullIntraRequest;
use rtc::rtcp::payload_feedbacks::picture_loss_indication::PictureLossIndication;
use rtc::rtcp::transport_feedbacks::transport_layer_nack::{NackPair, TransportLayerNack};
use rtc::sansio::Protocol;
use rtc::shared::error::Error;

/// What the receiver asks for.
#[derive(Clone, Debug, Default)]
pub struct Requests(Arc<Asked>);

#[derive(Debug, Default)]
struct Asked {
    key_frame: AtomicBool,
    packets: AtomicU64,
}

impl Requests {
    /// Takes the request for a key frame, if there is one.
    pub fn take_key_frame(&self) -> bool {
        self.0.key_frame.swap(false, Ordering::Relaxed)
    }

    /// How many packets it asked for again.
    pub fn packets(&self) -> u64 {
        self.0.packets.load(Ordering::Relaxed)
    }

    /// The part for the chain of interceptors that notes requests.
    pub fn listener(&self) -> Listener {
        Listener { requests: self.clone(), read: VecDeque::new(), write: VecDeque::new() }
    }
}

/// Notes requests for key frames (RFC 4585 §6.3.1, RFC 5104 §4.3.1) and packets (RFC 4585 §6.2.1).
pub struct Listener {
    requests: Requests,
    read: VecDeque<TaggedPacket>,
    write: VecDeque<TaggedPacket>,
}

impl Protocol<TaggedPacket, TaggedPacket, ()> for Listener {
    type Rout = TaggedPacket;
    type Wout = TaggedPacket;
    type Eout = ();
    type Error = Error;
    type Time = Instant;

    fn handle_read(&mut self, packet: TaggedPacket) -> Result<(), Error> {
        if let Packet::Rtcp(parts) = &packet.message.packet {
            for part in parts {
                let part = part.as_any();
                if part.is::<PictureLossIndication>() || part.is::<FullIntraRequest>() {
                    self.requests.0.key_frame.store(true, Ordering::Relaxed);
                }
                if let Some(missing) = part.downcast_ref::<TransportLayerNack>() {
                    let count = |pair: &NackPair| 1 + u64::from(pair.lost_packets.count_ones());
                    let packets = missing.nacks.iter().map(count).sum();
                    self.requests.0.packets.fetch_add(packets, Ordering::Relaxed);
                }
            }
        }
        self.read.push_back(packet);
        Ok(())
    }

    fn poll_read(&mut self) -> Option<TaggedPacket> {
        self.read.pop_front()
    }

    fn handle_write(&mut self, packet: TaggedPacket) -> Result<(), Error> {
        self.write.push_back(packet);
        Ok(())
    }

    fn poll_write(&mut self) -> Option<TaggedPacket> {
        self.write.pop_front()
    }
}

impl Interceptor for Listener {
    fn bind_local_stream(&mut self, _info: &StreamInfo) {}

    fn unbind_local_stream(&mut self, _info: &StreamInfo) {}

    fn bind_remote_stream(&mut self, _info: &StreamInfo) {}

    fn unbind_remote_stream(&mut self, _info: &StreamInfo) {}
}
