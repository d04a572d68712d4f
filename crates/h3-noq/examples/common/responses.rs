//! What a connection is answering, for its steering: the network cannot see how much is to come.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use h3::error::{ConnectionError, StreamError};
use h3::quic::{self, ConnectionErrorIncoming};
use h3::server::RequestStream;
use http::HeaderMap;
use trimtab_h3_noq::{h3, noq};
use trimtab_noq::units::{Bytes, Duration};
use trimtab_noq::{Factors, Handle, Metrics};

/// The responses of a connection. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Responses {
    handle: Handle,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Those that have begun and not been delivered, the oldest first.
    open: Vec<Open>,
    begun: u64,
    delivered: u64,
}

struct Open {
    number: u64,
    /// `None` where it is unknown.
    size: Option<u64>,
    buffer: Option<Duration>,
}

/// A response, from its beginning until it is dropped: it was delivered, or given up.
pub(crate) struct Answering {
    of: Responses,
    number: u64,
}

impl Responses {
    pub(crate) fn new(handle: Handle) -> Self {
        Self { handle, state: Arc::default() }
    }

    /// A response of so many bytes begins, or of `None` that one knows; the headers are the
    /// request's.
    pub(crate) fn begin(&self, size: Option<u64>, headers: &HeaderMap) -> Answering {
        let mut state = self.lock();
        let number = state.begun;
        state.begun += 1;
        state.open.push(Open { number, size, buffer: player_buffer(headers) });
        self.handle.set_factors(factors(&state.open));
        Answering { of: self.clone(), number }
    }

    /// How many responses were delivered.
    pub(crate) fn delivered(&self) -> u64 {
        self.lock().delivered
    }

    /// The connection's path as it is now.
    pub(crate) fn metrics(&self) -> Option<Metrics> {
        self.handle.metrics()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answering {
    /// Ends the stream, and waits until the client has all. A client that closes the connection
    /// without an error has what it wants.
    pub(crate) async fn finish(
        self,
        stream: &mut RequestStream<impl quic::SendStream<bytes::Bytes>, bytes::Bytes>,
    ) -> Result<(), StreamError> {
        match stream.finish().await {
            Err(problem) if !closed_without_error(&problem) => Err(problem),
            _ => {
                self.of.lock().delivered += 1;
                Ok(())
            }
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let mut state = self.of.lock();
        state.open.retain(|open| open.number != self.number);
        self.of.handle.set_factors(factors(&state.open));
    }
}

/// Whether the client has closed the connection, and not for an error.
fn closed_without_error(problem: &StreamError) -> bool {
    let StreamError::ConnectionError { 0: ConnectionError::Remote { 0: close, .. }, .. } = problem
    else {
        return problem.is_h3_no_error();
    };
    match close {
        // libcurl's code. One that HTTP/3 does not know is no error (RFC 9114 §8).
        ConnectionErrorIncoming::ApplicationClose { error_code: 0 } => true,
        // aioquic closes in the name of QUIC, by NO_ERROR (RFC 9000 §20.1).
        ConnectionErrorIncoming::Undefined(cause) => matches!(
            cause.downcast_ref(),
            Some(noq::ConnectionError::ConnectionClosed(close))
                if close.error_code == noq::TransportErrorCode::NO_ERROR
        ),
        _ => problem.is_h3_no_error(),
    }
}

/// Of the oldest response its size, `R`; of all their mean, `Rbar`; and of the newest that a player
/// waits for its size, `C`, with the player's buffer, `V`. None without responses.
fn factors(open: &[Open]) -> Factors {
    let sizes = || open.iter().filter_map(|response| response.size);
    let Some(oldest) = sizes().next() else { return Factors::new() };
    let mean = sizes().sum::<u64>() / sizes().count() as u64;
    let factors =
        Factors::new().with_request(Bytes::new(oldest)).with_mean_response(Bytes::new(mean));
    let chunk = open.iter().rev().find_map(|response| response.size.zip(response.buffer));
    match chunk {
        Some((size, buffer)) => factors.with_chunk(Bytes::new(size)).with_buffer(buffer),
        None => factors,
    }
}

/// A video player's buffer by Common Media Client Data (CTA-5004): `bl`, in milliseconds, of the
/// header `CMCD-Request`. dash.js, hls.js and Shaka Player have an option that sends it.
fn player_buffer(headers: &HeaderMap) -> Option<Duration> {
    let data = headers.get("cmcd-request")?.to_str().ok()?;
    let store = data.split(',').find_map(|item| item.trim().strip_prefix("bl="))?;
    Some(Duration::from_millis(store.parse::<u32>().ok()?.into()))
}

#[cfg(test)]
mod tests {
    use trimtab_noq::{Config, Factor};

    use super::*;

    fn of(responses: &Responses) -> [Option<f64>; 4] {
        let factors = factors(&responses.lock().open);
        [Factor::Request, Factor::MeanResponse, Factor::Chunk, Factor::Buffer]
            .map(|factor| factors.get(factor))
    }

    #[test]
    fn factors_are_those_of_what_is_being_answered() {
        let responses = Responses::new(Config::new("mortise").unwrap().connection().1);
        let mut player = HeaderMap::new();
        player.insert("cmcd-request", "mtp=25400,bl=8500".parse().unwrap());
        assert_eq!(of(&responses), [None; 4]);
        let page = responses.begin(Some(1_000_000), &HeaderMap::new());
        assert_eq!(of(&responses), [Some(8.0), Some(8.0), None, None]);
        let unknown = responses.begin(None, &player);
        let chunk = responses.begin(Some(500_000), &player);
        assert_eq!(of(&responses), [Some(8.0), Some(6.0), Some(4.0), Some(8.5)]);
        drop(page);
        assert_eq!(of(&responses), [Some(4.0), Some(4.0), Some(4.0), Some(8.5)]);
        drop((chunk, unknown));
        assert_eq!(of(&responses), [None; 4]);
    }

    #[test]
    fn what_is_no_media_data_is_no_buffer() {
        for text in ["bl=", "bl=-1", "bl=99999999999", "abl=8500", "bl"] {
            let mut headers = HeaderMap::new();
            headers.insert("cmcd-request", text.parse().unwrap());
            assert_eq!(player_buffer(&headers), None, "{text}");
        }
    }
}
