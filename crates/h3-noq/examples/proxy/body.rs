//! A request's body on its way from HTTP/3 to HTTP/1.1.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use h3::error::StreamError;
use h3::server::RequestStream;
use hyper::body::{Body, Frame, SizeHint};
use trimtab_h3_noq::{RecvStream, h3};

/// The half of a request's stream that brings the body.
pub(crate) type Incoming = RequestStream<RecvStream, Bytes>;

/// A body. One that has no bytes is known to have none, so that no framing is made up for it.
pub(crate) struct RequestBody {
    first: Option<Bytes>,
    rest: Option<Incoming>,
}

impl RequestBody {
    /// Waits until it is clear whether there is one.
    pub(crate) async fn begin(mut stream: Incoming) -> Result<Self, StreamError> {
        let first = stream.recv_data().await?.map(|mut data| data.copy_to_bytes(data.remaining()));
        let rest = first.is_some().then_some(stream);
        Ok(Self { first, rest })
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        let Some(stream) = &mut self.rest else { return Poll::Ready(None) };
        let read = ready!(stream.poll_recv_data(cx)).transpose();
        Poll::Ready(match read {
            Some(Ok(mut data)) => Some(Ok(Frame::data(data.copy_to_bytes(data.remaining())))),
            Some(Err(problem)) => Some(Err(problem)),
            None => {
                self.rest = None;
                None
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.rest {
            Some(_) => SizeHint::default(),
            None => SizeHint::with_exact(self.first.as_ref().map_or(0, Bytes::len) as u64),
        }
    }
}
