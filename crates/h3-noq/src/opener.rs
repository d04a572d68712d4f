//! What opens streams.

use std::task::{Context, Poll, ready};

use bytes::Buf;
use h3::error::Code;
use h3::quic::StreamErrorIncoming;
use noq::ConnectionError;

use crate::pending::Pending;
use crate::{BidiStream, SendStream, error};

/// Opens streams of a connection. Its clones wait for their streams each by itself.
#[derive(Debug)]
pub struct OpenStreams {
    pub(crate) connection: noq::Connection,
    pub(crate) delivers: bool,
    bidi: Pending<Result<(noq::SendStream, noq::RecvStream), ConnectionError>>,
    uni: Pending<Result<noq::SendStream, ConnectionError>>,
}

impl OpenStreams {
    pub(crate) fn new(connection: noq::Connection, delivers: bool) -> Self {
        Self { connection, delivers, bidi: Pending::default(), uni: Pending::default() }
    }
}

impl Clone for OpenStreams {
    fn clone(&self) -> Self {
        Self::new(self.connection.clone(), self.delivers)
    }
}

impl<B: Buf> h3::quic::OpenStreams<B> for OpenStreams {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        let connection = &self.connection;
        let opened = ready!(self.bidi.poll(cx, || {
            let connection = connection.clone();
            Box::pin(async move { connection.open_bi().await })
        }));
        let streams = opened.map_err(error::lost)?;
        Poll::Ready(Ok(BidiStream::new(streams, self.connection.side(), self.delivers)))
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        let connection = &self.connection;
        let opened = ready!(self.uni.poll(cx, || {
            let connection = connection.clone();
            Box::pin(async move { connection.open_uni().await })
        }));
        let stream = opened.map_err(error::lost)?;
        // Control streams have no end, and that of grease is of interest to nobody.
        Poll::Ready(Ok(SendStream::new(stream, self.connection.side(), false)))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.connection.close(error::code(code.value()), reason);
    }
}
