//! A UDP socket in a namespace of the emulated link, with congestion marks.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use bytes::BytesMut;
use noq_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::net::sockopt::{set_socket_recv_buffer_size_force, set_socket_send_buffer_size_force};
use trimtab_emu::Namespace;
use trimtab_units::Time;

use crate::carrier::{Carrier, End};
use crate::side::Datagram;

/// What a socket may hold, by the kernel's accounting: some thousand packets, so that a machine that
/// stalls delays them and loses none.
const BUFFER: usize = 16 << 20;
/// How many datagrams are read at once, and room for each, even where the kernel joins several.
const BATCH: usize = 8;
const ROOM: usize = 1 << 16;

/// Memory to read datagrams into.
pub(crate) struct Room(Vec<u8>);

impl Room {
    pub(crate) fn new() -> Self {
        Self(vec![0; BATCH * ROOM])
    }
}

/// One end's socket, which does not block.
#[derive(Debug)]
pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    /// Datagrams that have arrived.
    arrived: VecDeque<Datagram>,
    /// Datagrams that the kernel has not taken.
    unsent: VecDeque<Datagram>,
    peer: SocketAddr,
    /// Why it does not send any more.
    failure: Option<io::Error>,
}

impl Socket {
    /// One with a port of its own at an address of the namespace. It has no peer yet.
    fn open(namespace: &Namespace, address: Ipv4Addr) -> io::Result<Self> {
        let io = namespace.run(move || UdpSocket::bind((address, 0)))?;
        io.set_nonblocking(true)?;
        set_socket_recv_buffer_size_force(&io, BUFFER)?;
        set_socket_send_buffer_size_force(&io, BUFFER)?;
        let (state, peer) = (UdpSocketState::new(UdpSockRef::from(&io))?, io.local_addr()?);
        let (arrived, unsent) = (VecDeque::new(), VecDeque::new());
        Ok(Self { io, state, arrived, unsent, peer, failure: None })
    }

    fn connect(&mut self, peer: SocketAddr) -> io::Result<()> {
        self.peer = peer;
        self.io.connect(peer)
    }

    /// Whether something waits for the kernel to take it.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    fn send(&mut self, datagram: Datagram) {
        self.unsent.push_back(datagram);
        if self.unsent.len() == 1 {
            self.flush();
        }
    }

    /// Hands over what the kernel takes.
    pub(crate) fn flush(&mut self) {
        while let Some(Datagram { data, ecn }) = self.unsent.front() {
            let transmit = Transmit {
                destination: self.peer,
                ecn: ecn.and_then(|ecn| noq_udp::EcnCodepoint::from_bits(ecn as u8)),
                contents: data,
                segment_size: None,
                src_ip: None,
            };
            match self.state.try_send(UdpSockRef::from(&self.io), &transmit) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                sent => {
                    self.failure = self.failure.take().or(sent.err());
                    self.unsent.pop_front();
                }
            }
        }
    }

    /// Reads what has arrived; whether there was anything.
    ///
    /// # Errors
    /// The socket failed, now or when it sent.
    pub(crate) fn receive(&mut self, room: &mut Room) -> io::Result<bool> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let before = self.arrived.len();
        loop {
            let mut meta = [RecvMeta::default(); BATCH];
            let mut pieces = room.0.chunks_mut(ROOM).map(IoSliceMut::new);
            let mut slices: [IoSliceMut<'_>; BATCH] =
                std::array::from_fn(|_| pieces.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
            let count = match self.state.recv(UdpSockRef::from(&self.io), &mut slices, &mut meta) {
                Ok(count) => count,
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            for (slice, meta) in slices.iter().zip(&meta[..count]) {
                let ecn = meta.ecn.and_then(|ecn| noq_proto::EcnCodepoint::from_bits(ecn as u8));
                let datagrams = slice[..meta.len].chunks(meta.stride.max(1));
                self.arrived
                    .extend(datagrams.map(|data| Datagram { data: BytesMut::from(data), ecn }));
            }
            if count < BATCH {
                break;
            }
        }
        Ok(self.arrived.len() > before)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

/// The sockets of a flow, connected with each other over the link.
#[derive(Debug)]
pub(crate) struct Sockets {
    pub(crate) server: Socket,
    pub(crate) client: Socket,
}

impl Sockets {
    /// A pair in these namespaces.
    ///
    /// # Errors
    /// The system has no more sockets.
    pub(crate) fn open(
        server: (&Namespace, Ipv4Addr),
        client: (&Namespace, Ipv4Addr),
    ) -> io::Result<Self> {
        let (mut server, mut client) =
            (Socket::open(server.0, server.1)?, Socket::open(client.0, client.1)?);
        let (of_server, of_client) = (server.io.local_addr()?, client.io.local_addr()?);
        server.connect(of_client)?;
        client.connect(of_server)?;
        Ok(Self { server, client })
    }

    /// The client's port, which names the flow on the link.
    pub(crate) fn port(&self) -> u16 {
        self.server.peer.port()
    }

    fn end(&mut self, end: End) -> &mut Socket {
        match end {
            End::Server => &mut self.server,
            End::Client => &mut self.client,
        }
    }
}

impl Carrier for Sockets {
    fn send(&mut self, from: End, _: Time, datagram: Datagram) {
        self.end(from).send(datagram);
    }

    fn take(&mut self, at: End, _: Time) -> Option<Datagram> {
        self.end(at).arrived.pop_front()
    }

    fn next(&self, at: End) -> Time {
        let socket = match at {
            End::Server => &self.server,
            End::Client => &self.client,
        };
        if socket.arrived.is_empty() { Time::MAX } else { Time::ZERO }
    }
}
