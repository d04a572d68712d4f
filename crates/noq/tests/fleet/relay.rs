//! A link between two sockets in real time: a client sends to one, and the server sees the other's
//! address.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use trimtab_net::{Capacity, Event, Link, LinkConfig, Packet, QueueConfig};
use trimtab_noq::units::{Bytes, Duration, Rate, Time};

/// There and back.
const RTT: Duration = Duration::from_millis(20);
/// What may wait: more than a stall of the machine lets arrive at once.
const QUEUE: Bytes = Bytes::new(150_000);

type Datagrams = Link<Vec<u8>>;

/// A link of one client. It ends when this is dropped.
pub(crate) struct Relay {
    /// Where the client connects to.
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Relay {
    /// The server, which sends at this rate, sees a client at `from`.
    pub(crate) async fn start(server: SocketAddr, from: [u8; 4], rate: Rate) -> io::Result<Self> {
        let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let far = UdpSocket::bind((Ipv4Addr::from(from), 0)).await?;
        far.connect(server).await?;
        let address = near.local_addr()?;
        let task = tokio::spawn(async move {
            // An error is the other side's end.
            let _ = run(&near, &far, rate).await;
        });
        Ok(Self { address, task })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(near: &UdpSocket, far: &UdpSocket, rate: Rate) -> io::Result<()> {
    let link = |rate| {
        let config = LinkConfig::new(Capacity::Constant(rate));
        Datagrams::new(&config.queue(QueueConfig::drop_tail_bytes(QUEUE)).delay(RTT / 2), 1)
    };
    let (mut down, mut up) = (link(rate), link(Rate::from_mbps(1000.0)));
    let epoch = Instant::now();
    let (mut client, mut from_far, mut from_near) = (None, [0; 2048], [0; 2048]);
    loop {
        let now = Time::from_nanos(epoch.elapsed().as_nanos() as u64);
        for data in arrived(&mut down, now) {
            if let Some(client) = client {
                near.send_to(&data, client).await?;
            }
        }
        for data in arrived(&mut up, now) {
            far.send(&data).await?;
        }
        let next = [&down, &up].into_iter().filter_map(Link::next_event).min();
        let wait = next.unwrap_or(Time::MAX).since(now).min(Duration::from_secs(1));
        tokio::select! {
            size = far.recv(&mut from_far) => put(&mut down, epoch, &from_far[..size?]),
            got = near.recv_from(&mut from_near) => {
                let (size, from) = got?;
                client = Some(from);
                put(&mut up, epoch, &from_near[..size]);
            }
            () = tokio::time::sleep(std::time::Duration::from_nanos(wait.as_nanos())) => {}
        }
    }
}

/// A full queue drops it.
fn put(link: &mut Datagrams, epoch: Instant, data: &[u8]) {
    let now = Time::from_nanos(epoch.elapsed().as_nanos() as u64);
    let size = Bytes::new(data.len() as u64);
    let _ = link.send(now, Packet { size, payload: data.to_vec() });
}

fn arrived(link: &mut Datagrams, now: Time) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(event) = link.poll(now) {
        if let Event::Delivered(delivery) = event {
            all.push(delivery.packet.payload);
        }
    }
    all
}
