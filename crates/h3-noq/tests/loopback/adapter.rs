//! The adapter's streams, with both ends in the test's hands.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h3::error::{Code, StreamError};
use h3::quic::{OpenStreams as _, SendStream as _, SendStreamUnframed as _};
use h3::server::RequestStream;
use http::{Method, Response};
use noq::{Endpoint, TransportConfig, VarInt};
use trimtab_h3_noq::{BidiStream, Connection, OpenStreams, SendStream, h3, noq};

use crate::client::trust::Trust;
use crate::common::identity::Identity;
use crate::support::{PATIENCE, hash, noise, request};

type Requests = h3::client::SendRequest<OpenStreams, Bytes>;
type Server = h3::server::Connection<Connection, Bytes>;

/// Both ends of a connection over loopback; the endpoints have to live as long.
async fn pair() -> (noq::Connection, noq::Connection, [Endpoint; 2]) {
    pair_with(None).await
}

/// The same, with the time that silence may last.
async fn pair_with(idle: Option<Duration>) -> (noq::Connection, noq::Connection, [Endpoint; 2]) {
    let identity = Identity::self_signed(vec!["localhost".to_owned()]).unwrap();
    let any = ([127, 0, 0, 1], 0).into();
    let server = Endpoint::server(identity.server_config().unwrap(), any).unwrap();
    let client = Endpoint::client(any).unwrap();
    let mut config = Trust::Anybody.client_config().unwrap();
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(idle.map(|idle| idle.try_into().unwrap()));
    config.transport_config(Arc::new(transport));
    let connecting = client.connect_with(config, server.local_addr().unwrap(), "localhost");
    let accept = async { server.accept().await.expect("a client").await.unwrap() };
    let (ours, theirs) = tokio::join!(async { connecting.unwrap().await.unwrap() }, accept);
    (ours, theirs, [client, server])
}

/// A client that sends requests, and a server that takes them.
async fn http3(delivers: bool) -> (Requests, Server, [Endpoint; 2]) {
    let (client, server, endpoints) = pair().await;
    let (mut driver, requests) = h3::client::new(Connection::new(client)).await.unwrap();
    tokio::spawn(async move { driver.wait_idle().await });
    let server = Connection::new(server);
    let server = if delivers { server.finish_when_delivered() } else { server };
    (requests, Server::new(server).await.unwrap(), endpoints)
}

/// The next request at a server that goes on taking them.
async fn accept(mut server: Server) -> RequestStream<BidiStream<Bytes>, Bytes> {
    let resolver = server.accept().await.unwrap().expect("a request");
    tokio::spawn(async move { while let Ok(Some(_)) = server.accept().await {} });
    resolver.resolve_request().await.unwrap().1
}

fn code(problem: &StreamError) -> Code {
    let StreamError::RemoteTerminate { code, .. } = problem else { panic!("{problem}") };
    *code
}

#[tokio::test]
async fn a_client_that_drops_a_response_cancels_it() {
    let (mut requests, server, _endpoints) = http3(false).await;
    let mut asked = requests.send_request(request(Method::GET, "/", &[])).await.unwrap();
    asked.finish().await.unwrap();
    let mut stream = accept(server).await;
    stream.send_response(Response::new(())).await.unwrap();
    asked.recv_response().await.unwrap();
    drop(asked);
    let endless = async {
        loop {
            if let Err(problem) = stream.send_data(Bytes::from_static(&[0; 10_000])).await {
                return problem;
            }
        }
    };
    let problem = tokio::time::timeout(PATIENCE, endless).await.expect("an end");
    assert_eq!(code(&problem), Code::H3_REQUEST_CANCELLED);
}

#[tokio::test]
async fn a_server_may_answer_before_it_has_read_the_request() {
    let (mut requests, server, _endpoints) = http3(false).await;
    let mut asked = requests.send_request(request(Method::POST, "/", &[])).await.unwrap();
    asked.send_data(Bytes::from_static(b"the beginning")).await.unwrap();
    let mut stream = accept(server).await;
    stream.send_response(Response::new(())).await.unwrap();
    stream.finish().await.unwrap();
    drop(stream);
    assert_eq!(asked.recv_response().await.unwrap().status(), 200);
    assert!(asked.recv_data().await.unwrap().is_none());
    let endless = async {
        loop {
            if let Err(problem) = asked.send_data(Bytes::from_static(&[0; 10_000])).await {
                return problem;
            }
        }
    };
    let problem = tokio::time::timeout(PATIENCE, endless).await.expect("an end");
    assert_eq!(code(&problem), Code::H3_NO_ERROR);
}

#[tokio::test]
async fn a_task_that_is_cancelled_within_a_frame_resets_its_stream_alone() {
    let (mut requests, server, _endpoints) = http3(false).await;
    let mut asked = requests.send_request(request(Method::GET, "/", &[])).await.unwrap();
    asked.finish().await.unwrap();
    let mut stream = accept(server).await;
    stream.send_response(Response::new(())).await.unwrap();
    // Much more than the client's window, and the client does not read.
    let more = stream.send_data(vec![0; 30_000_000].into());
    tokio::time::timeout(Duration::from_millis(50), more).await.expect_err("it waits");
    drop(stream);
    asked.recv_response().await.unwrap();
    let problem = loop {
        match asked.recv_data().await.map(|data| data.is_some()) {
            Ok(more) => assert!(more, "it passed for whole"),
            Err(problem) => break problem,
        }
    };
    assert_eq!(code(&problem), Code::H3_INTERNAL_ERROR);
    requests.send_request(request(Method::GET, "/", &[])).await.expect("the connection lives");
}

#[tokio::test]
async fn finishing_lasts_until_all_is_delivered_where_that_was_asked_for() {
    for delivers in [false, true] {
        let (mut requests, server, _endpoints) = http3(delivers).await;
        let mut asked = requests.send_request(request(Method::GET, "/", &[])).await.unwrap();
        asked.finish().await.unwrap();
        let mut stream = accept(server).await;
        stream.send_response(Response::new(())).await.unwrap();
        // noq takes all at once. It sends when the test waits: the runtime has one thread.
        stream.send_data(vec![0; 1_000_000].into()).await.unwrap();
        let mut finish = pin!(stream.finish());
        let lasts = poll_fn(|cx| Poll::Ready(finish.as_mut().poll(cx).is_pending())).await;
        assert_eq!(lasts, delivers);
        asked.recv_response().await.unwrap();
        while asked.recv_data().await.unwrap().is_some() {}
        if delivers {
            tokio::time::timeout(PATIENCE, finish).await.expect("an end").unwrap();
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_stopped_was_not_delivered() {
    let (mut requests, server, _endpoints) = http3(true).await;
    let mut asked = requests.send_request(request(Method::GET, "/", &[])).await.unwrap();
    asked.finish().await.unwrap();
    let mut stream = accept(server).await;
    stream.send_response(Response::new(())).await.unwrap();
    asked.recv_response().await.unwrap();
    asked.stop_sending(Code::H3_EXCESSIVE_LOAD);
    // It arrives before the end of the stream is acknowledged.
    tokio::time::sleep(Duration::from_millis(20)).await;
    let finished = tokio::time::timeout(PATIENCE, stream.finish()).await.expect("an end");
    assert_eq!(code(&finished.unwrap_err()), Code::H3_EXCESSIVE_LOAD);
}

#[tokio::test]
async fn codes_of_closes_arrive() {
    let (client, server, _endpoints) = pair().await;
    let (mut driver, _requests) = h3::client::new(Connection::new(client.clone())).await.unwrap();
    server.close(VarInt::from_u32(0x107), b"too much");
    let ended = tokio::time::timeout(PATIENCE, driver.wait_idle()).await.expect("an end");
    assert_eq!(ended.to_string(), "Remote error: ApplicationClose: H3_EXCESSIVE_LOAD");

    let (client, server, _endpoints) = pair().await;
    let mut adapter = Connection::new(client);
    h3::quic::OpenStreams::<Bytes>::close(&mut adapter, Code::H3_NO_ERROR, b"done");
    let noq::ConnectionError::ApplicationClosed(close) = server.closed().await else { panic!() };
    assert_eq!((close.error_code.into_inner(), &*close.reason), (0x100, &b"done"[..]));
}

#[tokio::test]
async fn a_silent_peer_is_a_timeout() {
    let idle = Duration::from_millis(200);
    let (client, _server, _endpoints) = pair_with(Some(idle)).await;
    let (mut driver, _requests) = h3::client::new(Connection::new(client)).await.unwrap();
    let ended = tokio::time::timeout(PATIENCE, driver.wait_idle()).await.expect("an end");
    assert_eq!(ended.to_string(), "Timeout");
}

#[tokio::test]
async fn a_shutdown_lets_requests_end_and_refuses_more() {
    let (mut requests, mut server, _endpoints) = http3(true).await;
    let mut asked = requests.send_request(request(Method::GET, "/", &[])).await.unwrap();
    asked.finish().await.unwrap();
    let resolver = server.accept().await.unwrap().expect("a request");
    server.shutdown(0).await.unwrap();
    let respond = async {
        let (_, mut stream) = resolver.resolve_request().await.unwrap();
        stream.send_response(Response::new(())).await.unwrap();
        stream.send_data(Bytes::from_static(b"the last")).await.unwrap();
        stream.finish().await.unwrap();
    };
    let read = async {
        asked.recv_response().await.unwrap();
        let mut bytes = 0;
        while let Some(data) = asked.recv_data().await.unwrap() {
            bytes += bytes::Buf::remaining(&data);
        }
        bytes
    };
    let ((), bytes) = tokio::join!(respond, read);
    assert_eq!(bytes, 8);
    let refused = tokio::time::timeout(PATIENCE, async {
        loop {
            match requests.send_request(request(Method::GET, "/", &[])).await {
                Err(problem) => return problem,
                Ok(_) => tokio::task::yield_now().await,
            }
        }
    });
    let problem = refused.await.expect("it is refused");
    assert_eq!(problem.to_string(), "Remote is closing the connection");
}

#[tokio::test]
async fn bytes_without_frames_are_sent_as_they_are() {
    let (client, server, _endpoints) = pair().await;
    let mut open = h3::quic::Connection::<Bytes>::opener(&Connection::new(client));
    let mut stream: SendStream<Bytes> = poll_fn(|cx| open.poll_open_send(cx)).await.unwrap();
    let sent = noise(3_000_000, 8);
    let mut left = Bytes::from(sent.clone());
    let send = async {
        while !left.is_empty() {
            poll_fn(|cx| stream.poll_send(cx, &mut left)).await.unwrap();
        }
        poll_fn(|cx| stream.poll_finish(cx)).await.unwrap();
    };
    let receive = async { server.accept_uni().await.unwrap().read_to_end(sent.len()).await };
    let ((), received) = tokio::join!(send, receive);
    assert_eq!(hash(&received.unwrap()), hash(&sent));
}
