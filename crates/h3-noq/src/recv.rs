//! The side of a stream that receives.

use std::pin::pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use h3::error::Code;
use h3::quic::{StreamErrorIncoming, StreamId};
use noq::Side;

use crate::error;

/// A stream that receives, of either kind.
#[derive(Debug)]
pub struct RecvStream {
    stream: noq::RecvStream,
    side: Side,
    /// Nothing more is to come: its end or an error was read, or it was stopped.
    ended: bool,
}

impl RecvStream {
    pub(crate) fn new(stream: noq::RecvStream, side: Side) -> Self {
        Self { stream, side, ended: false }
    }

    fn stop(&mut self, code: u64) {
        self.ended = true;
        // It fails only where nothing more can come.
        let _ = self.stream.stop(error::code(code));
    }
}

impl h3::quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        // noq keeps the waker with the stream and not with the future, which may go.
        let read = pin!(self.stream.read_chunk(usize::MAX)).poll(cx);
        self.ended |= matches!(read, Poll::Ready(Ok(None) | Err(_)));
        read.map_err(error::read)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.stop(error_code);
    }

    fn recv_id(&self) -> StreamId {
        id(self.stream.id())
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        if !self.ended {
            // RFC 9114 §4.1 and §4.1.1. noq alone would send 0, which is no code of HTTP/3.
            let code = match self.side {
                Side::Client => Code::H3_REQUEST_CANCELLED,
                Side::Server => Code::H3_NO_ERROR,
            };
            self.stop(code.value());
        }
    }
}

/// The number of a stream, as h3 has it.
pub(crate) fn id(id: noq::StreamId) -> StreamId {
    u64::from(id).try_into().expect("QUIC's numbers of streams are below 2^62 (RFC 9000 §2.1)")
}
