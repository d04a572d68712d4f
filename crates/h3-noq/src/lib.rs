//! HTTP/3 on noq: the traits of [`h3::quic`] for connections of [`noq`].
//!
//! The crate [`h3`] speaks HTTP/3 (RFC 9114) over any QUIC stack, and [`noq`] is one whose pacer
//! obeys its congestion controller. Give an established connection to [`Connection::new`], and that
//! to `h3`:
//!
//! ```no_run
//! use bytes::Bytes;
//! use trimtab_h3_noq::{Connection, h3, noq};
//!
//! # async fn serve(incoming: noq::Incoming) -> Result<(), Box<dyn std::error::Error>> {
//! let connection = Connection::new(incoming.await?);
//! let mut requests = h3::server::Connection::<_, Bytes>::new(connection).await?;
//! while let Some(request) = requests.accept().await? {
//!     let (request, mut stream) = request.resolve_request().await?;
//!     stream.send_response(http::Response::new(())).await?;
//!     stream.send_data(Bytes::from(format!("you asked for {}", request.uri()))).await?;
//!     stream.finish().await?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A client hands the same type to [`h3::client::new`]. Both ends offer [`ALPN`] in their
//! handshake.
//!
//! # Streams that are dropped
//!
//! * A stream on which more is to be read is stopped: by `H3_NO_ERROR` at a server, which may
//!   answer before it has read a request, and by `H3_REQUEST_CANCELLED` at a client (RFC 9114 §4.1,
//!   §4.1.1).
//! * A stream that ends within a frame, e.g. because its task was cancelled, is reset by
//!   `H3_REQUEST_CANCELLED`, or `H3_INTERNAL_ERROR` at a server. Its peer would otherwise close the
//!   connection, since a frame is incomplete.
//! * A stream that ends between two frames is finished, as noq does it. Reset it by
//!   [`stop_stream`](h3::server::RequestStream::stop_stream) where a response is not complete.
//!
//! # When a response has arrived
//!
//! [`finish`](h3::server::RequestStream::finish) returns when noq has taken the data, of which many
//! megabytes may be still to be sent. With [`Connection::finish_when_delivered`] it returns when
//! the peer has acknowledged all. A server that steers its congestion control by what is in flight,
//! or that logs how long responses take, needs that.
//!
//! # Not here
//!
//! Datagrams and WebTransport, which are other crates' traits. 0-RTT works as far as noq's
//! [`Connecting::into_0rtt`](noq::Connecting::into_0rtt) does; h3 has no error for a
//! rejection, so streams then fail with an unknown one.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod connection;
mod error;
mod opener;
mod pending;
mod recv;
mod send;
mod streams;

pub use connection::Connection;
/// HTTP/3 (RFC 9114) over any stack that implements its traits.
pub use h3;
/// The QUIC stack.
pub use noq;
pub use opener::OpenStreams;
pub use recv::RecvStream;
pub use send::SendStream;
pub use streams::BidiStream;

/// The protocol's name in the TLS handshake (RFC 9114 §3.1).
pub const ALPN: &[u8] = b"h3";
