//! Server and client: tasks of s2n-quic's executor. The client drives the application's state
//! machine over one stream, whose responses follow each other.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use bytes::Bytes as Piece;
use s2n_quic::client::Connect;
use s2n_quic::provider::io::testing::time::delay_until;
use s2n_quic::{Client, Server};
use s2n_quic_core::time::Timestamp;
use trimtab_apps::wire::{self, Messages, Responses};
use trimtab_apps::{App, Application, Command};
use trimtab_lab::run::datapath::RunError;
use trimtab_s2n_quic::{Connected, Factors, Handle};
use trimtab_units::{Bytes, Time};

use super::network::{now, timestamp};
use crate::clock::Clock;
use crate::identity::NAME;

/// What responses are made of.
static FILLER: [u8; 65_536] = [0; 65_536];

/// What the client's application has gone through, and how its connection does.
pub(super) struct State {
    pub(super) app: App,
    responses: Responses,
    pub(super) goodput: Bytes,
    pub(super) is_established: bool,
    /// What steers the server; s2n-quic's own controllers have none.
    pub(super) handle: Option<Handle>,
    /// Why an end gave up.
    pub(super) failure: Option<String>,
}

/// The state, in the hands of both ends and of who looks at it.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<State>>);

impl Shared {
    pub(super) fn new(app: App) -> Self {
        Self(Arc::new(Mutex::new(State {
            app,
            responses: Responses::default(),
            goodput: Bytes::ZERO,
            is_established: false,
            handle: None,
            failure: None,
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs an end, and keeps why it gave up.
    pub(super) async fn keep(self, end: impl Future<Output = Result<(), RunError>>) {
        if let Err(problem) = end.await {
            self.lock().failure.get_or_insert(problem.to_string());
        }
    }
}

/// The times of a run.
#[derive(Clone, Copy)]
pub(super) struct Times {
    pub(super) clock: Clock,
    /// Time zero of connections by s2n-quic's clock.
    pub(super) zero: Timestamp,
}

impl Times {
    /// A time of the run by s2n-quic's clock.
    pub(super) fn of_run(self, run: Time) -> Timestamp {
        timestamp(self.zero, self.clock.of_run(run))
    }

    /// The time of the run.
    pub(super) fn run(self) -> Time {
        self.clock.run(now(self.zero))
    }
}

/// Answers each request of a connection with as many bytes as it asks for.
pub(super) async fn serve(
    mut server: Server,
    shared: Shared,
    times: Times,
    wants_factors: bool,
) -> Result<(), RunError> {
    let mut connection = server.accept().await.ok_or("the server's endpoint was closed")?;
    // s2n-quic's own controllers have no such context.
    let handle = connection.query_event_context(Connected::handle).ok().flatten();
    shared.lock().handle.clone_from(&handle);
    let Some(stream) = connection.accept_bidirectional_stream().await? else { return Ok(()) };
    let (mut receive, mut send) = stream.split();
    let (mut messages, mut left) = (Messages::default(), 0_u64);
    poll_fn(|cx| -> Poll<Result<(), RunError>> {
        if wants_factors && let Some(handle) = &handle {
            handle.set_factors(Factors::from(&shared.lock().app.factors(times.run())));
        }
        while let Poll::Ready(piece) = receive.poll_receive(cx) {
            let Some(piece) = piece? else { return Poll::Ready(Ok(())) };
            messages.take(&piece, |size| left += size.get());
        }
        while left > 0
            && let Poll::Ready(room) = send.poll_send_ready(cx)
        {
            let length = left.min(room? as u64).min(FILLER.len() as u64);
            send.send_data(Piece::from_static(&FILLER[..length as usize]))?;
            left -= length;
        }
        Poll::Pending
    })
    .await
}

/// Asks for what the application wants, from the beginning of the run on.
pub(super) async fn request(
    client: Client,
    address: SocketAddr,
    shared: Shared,
    times: Times,
) -> Result<(), RunError> {
    let mut connection = client.connect(Connect::new(address).with_server_name(NAME)).await?;
    connection.keep_alive(true)?;
    shared.lock().is_established = true;
    delay_until(times.of_run(Time::ZERO)).await;
    let (mut receive, mut send) = connection.open_bidirectional_stream().await?.split();
    loop {
        let timer = {
            let mut state = shared.lock();
            while let Some(Command::Request { id, size, upload }) = state.app.poll(times.run()) {
                state.responses.expect(id, size);
                send.send_data(Piece::from(wire::encode(size, upload)))?;
            }
            state.app.next_timer()
        };
        let mut timer = pin!(async {
            match timer {
                Some(at) => delay_until(times.of_run(at)).await,
                None => std::future::pending().await,
            }
        });
        let piece = poll_fn(|cx| match receive.poll_receive(cx) {
            Poll::Ready(piece) => Poll::Ready(piece.map(Some)),
            Poll::Pending => timer.as_mut().poll(cx).map(|()| Ok(None)),
        });
        match piece.await? {
            None => {}
            Some(None) => return Err("the server ended the stream".into()),
            Some(Some(piece)) => {
                let bytes = Bytes::new(piece.len() as u64);
                let mut state = shared.lock();
                let State { app, responses, goodput, .. } = &mut *state;
                *goodput += bytes;
                responses.take(app, times.run(), bytes);
            }
        }
    }
}
