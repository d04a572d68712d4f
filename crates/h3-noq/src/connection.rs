//! A connection.

use std::task::{Context, Poll, ready};

use bytes::Buf;
use h3::error::Code;
use h3::quic::{ConnectionErrorIncoming, StreamErrorIncoming};
use noq::ConnectionError;

use crate::pending::Pending;
use crate::{BidiStream, OpenStreams, RecvStream, SendStream, error};

/// A connection of noq for [`h3::server::Connection`] or [`h3::client::new`].
#[derive(Debug)]
pub struct Connection {
    open: OpenStreams,
    bidi: Pending<Result<(noq::SendStream, noq::RecvStream), ConnectionError>>,
    uni: Pending<Result<noq::RecvStream, ConnectionError>>,
}

impl Connection {
    /// For a connection whose handshake is over. Keep a clone of it for what h3 does not
    /// offer, e.g. statistics.
    pub fn new(connection: noq::Connection) -> Self {
        Self::with(OpenStreams::new(connection, false))
    }

    fn with(open: OpenStreams) -> Self {
        Self { open, bidi: Pending::default(), uni: Pending::default() }
    }

    /// Has h3's `finish` of a request's stream last until the peer has acknowledged all of it. It
    /// is an error if the peer stops the stream instead.
    ///
    /// For servers: a client that awaits `finish` before it reads the response would wait a round
    /// trip longer.
    #[must_use]
    pub fn finish_when_delivered(self) -> Self {
        Self::with(OpenStreams::new(self.open.connection, true))
    }
}

impl<B: Buf> h3::quic::Connection<B> for Connection {
    type RecvStream = RecvStream;
    type OpenStreams = OpenStreams;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        let connection = &self.open.connection;
        let accepted = ready!(self.uni.poll(cx, || {
            let connection = connection.clone();
            Box::pin(async move { connection.accept_uni().await })
        }));
        let stream = accepted.map_err(error::connection)?;
        Poll::Ready(Ok(RecvStream::new(stream, connection.side())))
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, ConnectionErrorIncoming>> {
        let connection = &self.open.connection;
        let accepted = ready!(self.bidi.poll(cx, || {
            let connection = connection.clone();
            Box::pin(async move { connection.accept_bi().await })
        }));
        let streams = accepted.map_err(error::connection)?;
        Poll::Ready(Ok(BidiStream::new(streams, connection.side(), self.open.delivers)))
    }

    fn opener(&self) -> OpenStreams {
        self.open.clone()
    }
}

impl<B: Buf> h3::quic::OpenStreams<B> for Connection {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        self.open.poll_open_bidi(cx)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        self.open.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        h3::quic::OpenStreams::<B>::close(&mut self.open, code, reason);
    }
}
