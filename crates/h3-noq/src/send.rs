//! The side of a stream that sends.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use h3::error::Code;
use h3::quic::{ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use noq::{Side, StoppedError, VarInt};

use crate::error;
use crate::pending::Pending;
use crate::recv::id;

/// A stream that sends, of either kind.
#[derive(Debug)]
pub struct SendStream<B> {
    stream: noq::SendStream,
    side: Side,
    /// What h3 gave and noq has not taken yet.
    waiting: Option<Waiting<B>>,
    finished: bool,
    /// Whether finishing lasts until the peer has all, and the future that ends then.
    delivers: bool,
    delivered: Pending<Result<Option<VarInt>, StoppedError>>,
}

/// A frame; its content is not for logs.
struct Waiting<B>(WriteBuf<B>);

impl<B> std::fmt::Debug for Waiting<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a frame")
    }
}

impl<B> SendStream<B> {
    pub(crate) fn new(stream: noq::SendStream, side: Side, delivers: bool) -> Self {
        let delivered = Pending::default();
        Self { stream, side, waiting: None, finished: false, delivers, delivered }
    }

    fn end(&mut self, code: u64) {
        self.waiting = None;
        // It fails only where the stream has ended.
        let _ = self.stream.reset(error::code(code));
    }
}

/// Has noq take as much as it may of a buffer.
fn write(
    stream: &mut noq::SendStream,
    cx: &mut Context<'_>,
    buffer: &mut impl Buf,
) -> Poll<Result<usize, StreamErrorIncoming>> {
    let taken = ready!(Pin::new(stream).poll_write(cx, buffer.chunk())).map_err(error::write)?;
    buffer.advance(taken);
    Poll::Ready(Ok(taken))
}

impl<B: Buf> h3::quic::SendStream<B> for SendStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        if let Some(Waiting(frame)) = &mut self.waiting {
            while frame.has_remaining() {
                ready!(write(&mut self.stream, cx, frame))?;
            }
            self.waiting = None;
        }
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.waiting.is_some() {
            let problem = "data was given to a stream that is not ready for it".to_owned();
            let connection_error = ConnectionErrorIncoming::InternalError(problem);
            return Err(StreamErrorIncoming::ConnectionErrorIncoming { connection_error });
        }
        self.waiting = Some(Waiting(data.into()));
        Ok(())
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.poll_ready(cx))?;
        if !self.finished {
            self.stream.finish().map_err(error::unknown)?;
            self.finished = true;
        }
        if !self.delivers {
            return Poll::Ready(Ok(()));
        }
        let stream = &self.stream;
        Poll::Ready(match ready!(self.delivered.poll(cx, || Box::pin(stream.stopped()))) {
            Ok(None) => Ok(()),
            Ok(Some(code)) => Err(error::terminated(code)),
            Err(problem) => Err(error::stopped(problem)),
        })
    }

    fn reset(&mut self, reset_code: u64) {
        self.end(reset_code);
    }

    fn send_id(&self) -> StreamId {
        id(self.stream.id())
    }
}

impl<B: Buf> h3::quic::SendStreamUnframed<B> for SendStream<B> {
    fn poll_send<D: Buf>(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut D,
    ) -> Poll<Result<usize, StreamErrorIncoming>> {
        ready!(h3::quic::SendStream::poll_ready(self, cx))?;
        write(&mut self.stream, cx, buf)
    }
}

impl<B> Drop for SendStream<B> {
    fn drop(&mut self) {
        if self.waiting.is_some() {
            // The peer has a part of a frame. noq alone would finish the stream, and the peer then
            // close the connection by H3_FRAME_ERROR (RFC 9114 §7.1).
            let code = match self.side {
                Side::Client => Code::H3_REQUEST_CANCELLED,
                Side::Server => Code::H3_INTERNAL_ERROR,
            };
            self.end(code.value());
        }
    }
}
