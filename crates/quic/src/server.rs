//! The server's application: each request says how long its response is.

use std::time::Instant;

use bytes::Bytes;
use noq_proto::{Connection, ConnectionError, Dir, StreamEvent, StreamId};
use trimtab_apps::Concurrency;
use trimtab_apps::wire::Messages;

use crate::side::{Datagram, Side};

/// What responses are made of.
static FILLER: [u8; 65_536] = [0; 65_536];
/// On one stream for all responses, at least so much waits to be sent. The rest of a response
/// without an end is handed over when its turn comes.
const AHEAD: u64 = 4_000_000;

/// A server of one connection.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) side: Side,
    concurrency: Concurrency,
    answers: Vec<Answer>,
    /// Bytes of responses handed to noq.
    written: u64,
    /// Bytes that left in datagrams, which is no less than what left of responses.
    sent: u64,
}

/// What a stream still has to carry.
#[derive(Debug)]
struct Answer {
    stream: StreamId,
    messages: Messages,
    /// Whether a request has arrived.
    asked: bool,
    left: u64,
}

impl Server {
    pub(crate) fn new(side: Side, concurrency: Concurrency) -> Self {
        Self { side, concurrency, answers: Vec::new(), written: 0, sent: 0 }
    }

    /// Does what is due: reads requests, and writes and sends what may leave.
    ///
    /// # Errors
    /// The connection ended.
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        mut out: impl FnMut(Datagram),
    ) -> Result<(), ConnectionError> {
        let Self { side, answers, .. } = self;
        let (mut opened, mut readable) = (false, Vec::new());
        side.work(now, |event| match event {
            StreamEvent::Opened { dir: Dir::Bi } => opened = true,
            StreamEvent::Readable { id } => readable.push(id),
            _ => {}
        })?;
        if let Some(connection) = side.connection() {
            while opened && let Some(stream) = connection.streams().accept(Dir::Bi) {
                let messages = Messages::default();
                answers.push(Answer { stream, messages, asked: false, left: 0 });
                readable.push(stream);
            }
            for answer in answers.iter_mut().filter(|answer| readable.contains(&answer.stream)) {
                answer.read(connection);
            }
        }
        self.write();
        let sent = &mut self.sent;
        self.side.transmit(now, |datagram| {
            *sent += datagram.size().get();
            out(datagram);
        });
        Ok(())
    }

    /// Hands over what noq is to send. A stream of its own ends with its response.
    fn write(&mut self) {
        let Self { side, concurrency, answers, written, sent } = self;
        let Some(connection) = side.connection() else { return };
        let may_write = |written: u64| match concurrency {
            Concurrency::InOrder => written < *sent + AHEAD,
            Concurrency::Streams => true,
        };
        answers.retain_mut(|answer| {
            let mut stream = connection.send_stream(answer.stream);
            while answer.left > 0 && may_write(*written) {
                let length = answer.left.min(FILLER.len() as u64) as usize;
                let mut piece = [Bytes::from_static(&FILLER[..length])];
                let Ok(taken) = stream.write_chunks(&mut &mut piece[..]) else { break };
                answer.left -= taken as u64;
                *written += taken as u64;
            }
            let ends = *concurrency == Concurrency::Streams && answer.asked && answer.left == 0;
            if ends {
                // It fails only where the client wants no more.
                let _ = stream.finish();
            }
            !ends
        });
    }
}

impl Answer {
    /// Reads what has arrived of requests.
    fn read(&mut self, connection: &mut Connection) {
        let Self { stream, messages, asked, left } = self;
        let mut stream = connection.recv_stream(*stream);
        let Ok(mut chunks) = stream.read(true) else { return };
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            messages.take(&chunk.bytes, |size| {
                *asked = true;
                *left += size.get();
            });
        }
        // What it asks for leaves with the next packet.
        let _ = chunks.finalize();
    }
}
