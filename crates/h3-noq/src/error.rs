//! noq's errors, by the kinds that h3 distinguishes.

use std::sync::Arc;

use h3::quic::{ConnectionErrorIncoming, StreamErrorIncoming};
use noq::{ConnectionError, ReadError, StoppedError, VarInt, WriteError};

/// Why a connection ended. What is no close of HTTP/3 and no timeout is not h3's concern.
pub(crate) fn connection(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed(close) => {
            ConnectionErrorIncoming::ApplicationClose { error_code: close.error_code.into_inner() }
        }
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        other => ConnectionErrorIncoming::Undefined(Arc::new(other)),
    }
}

/// The same, where a stream notices it.
pub(crate) fn lost(error: ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error: connection(error) }
}

/// Why nothing more can be read.
pub(crate) fn read(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(code) => terminated(code),
        ReadError::ConnectionLost(error) => lost(error),
        other @ (ReadError::ClosedStream | ReadError::ZeroRttRejected) => unknown(other),
    }
}

/// Why nothing more can be written.
pub(crate) fn write(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(code) => terminated(code),
        WriteError::ConnectionLost(error) => lost(error),
        other @ (WriteError::ClosedStream | WriteError::ZeroRttRejected) => unknown(other),
    }
}

/// Why a stream was not delivered.
pub(crate) fn stopped(error: StoppedError) -> StreamErrorIncoming {
    match error {
        StoppedError::ConnectionLost(error) => lost(error),
        other @ StoppedError::ZeroRttRejected => unknown(other),
    }
}

/// The peer ended the stream by this code.
pub(crate) fn terminated(code: VarInt) -> StreamErrorIncoming {
    StreamErrorIncoming::StreamTerminated { error_code: code.into_inner() }
}

/// An error that HTTP/3 has no code for.
pub(crate) fn unknown(
    error: impl std::error::Error + Send + Sync + 'static,
) -> StreamErrorIncoming {
    StreamErrorIncoming::Unknown(Box::new(error))
}

/// A code as QUIC carries it. HTTP/3 has none above 2^62 - 1 (RFC 9114 §8.1).
pub(crate) fn code(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_keeps_its_code_and_a_timeout_is_one() {
        let closed = noq::ApplicationClose { error_code: code(0x10c), reason: Vec::new().into() };
        let error = connection(ConnectionError::ApplicationClosed(closed));
        assert!(matches!(error, ConnectionErrorIncoming::ApplicationClose { error_code: 0x10c }));
        let error = connection(ConnectionError::TimedOut);
        assert!(matches!(error, ConnectionErrorIncoming::Timeout));
        let error = connection(ConnectionError::Reset);
        assert!(matches!(&error, ConnectionErrorIncoming::Undefined(_)), "{error:?}");
        assert_eq!(error.to_string(), "Error undefined by h3: reset by peer");
    }

    #[test]
    fn a_stream_that_the_peer_ended_differs_from_a_lost_connection() {
        let ended = StreamErrorIncoming::StreamTerminated { error_code: 7 }.to_string();
        assert_eq!(read(ReadError::Reset(code(7))).to_string(), ended);
        assert_eq!(write(WriteError::Stopped(code(7))).to_string(), ended);
        for error in [
            read(ReadError::ConnectionLost(ConnectionError::TimedOut)),
            write(WriteError::ConnectionLost(ConnectionError::TimedOut)),
            stopped(StoppedError::ConnectionLost(ConnectionError::TimedOut)),
        ] {
            assert_eq!(error.to_string(), "ConnectionError: Timeout");
        }
        let error = read(ReadError::ClosedStream);
        assert!(matches!(error, StreamErrorIncoming::Unknown(_)), "{error}");
    }

    #[test]
    fn a_code_that_quic_cannot_carry_becomes_the_greatest() {
        assert_eq!(code(u64::MAX), VarInt::MAX);
        assert_eq!(code(0x100).into_inner(), 0x100);
    }
}
