//! What a proxy does with a request.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use h3::error::Code;
use h3::server::RequestStream;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use trimtab_h3_noq::{SendStream, h3};

use super::Failure;
use super::body::RequestBody;
use super::common::responses::Responses;
use super::common::server::{Answer, Stream};
use super::headers;

/// For a connection to the origin.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// For the head of its response.
const RESPONSE_MAX: Duration = Duration::from_secs(30);

/// The half of a request's stream that takes the response.
type Outgoing = RequestStream<SendStream<Bytes>, Bytes>;

/// A server of HTTP/1.1, and connections to it.
pub(crate) struct Origin {
    authority: Authority,
    client: Client<HttpConnector, RequestBody>,
}

impl Origin {
    /// A server that may be there or not.
    pub(crate) fn new(authority: Authority) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_MAX));
        connector.set_nodelay(true);
        Self { authority, client: Client::builder(TokioExecutor::new()).build(connector) }
    }

    /// Asks the origin; a refusal where it does not answer.
    async fn ask(&self, request: Request<RequestBody>) -> Result<Response<Incoming>, Refusal> {
        match tokio::time::timeout(RESPONSE_MAX, self.client.request(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(problem)) => {
                let why =
                    format!("the origin {} does not answer: {}", self.authority, causes(&problem));
                Err(Refusal { status: StatusCode::BAD_GATEWAY, why })
            }
            Err(_) => {
                let why = format!("the origin {} takes too long", self.authority);
                Err(Refusal { status: StatusCode::GATEWAY_TIMEOUT, why })
            }
        }
    }

    /// The request as the origin gets it.
    fn forwarded(
        &self,
        peer: SocketAddr,
        request: Request<()>,
        body: RequestBody,
    ) -> Result<Request<RequestBody>, Refusal> {
        let (mut parts, ()) = request.into_parts();
        if parts.method == Method::CONNECT {
            let why = "there are no tunnels here".to_owned();
            return Err(Refusal { status: StatusCode::NOT_IMPLEMENTED, why });
        }
        if parts.headers.get_all(CONTENT_LENGTH).iter().count() > 1 {
            let why = "the request has several lengths".to_owned();
            return Err(Refusal { status: StatusCode::BAD_REQUEST, why });
        }
        headers::forward(&mut parts.headers, &parts.uri, peer);
        let path = parts.uri.path_and_query().cloned();
        let mut uri = http::uri::Parts::default();
        uri.scheme = Some(Scheme::HTTP);
        uri.authority = Some(self.authority.clone());
        uri.path_and_query = Some(path.unwrap_or(PathAndQuery::from_static("/")));
        parts.uri = Uri::from_parts(uri).map_err(|problem| Refusal {
            status: StatusCode::BAD_REQUEST,
            why: problem.to_string(),
        })?;
        parts.version = Version::HTTP_11;
        Ok(Request::from_parts(parts, body))
    }
}

/// An error with all its causes.
fn causes(problem: &dyn std::error::Error) -> String {
    let mut text = problem.to_string();
    let mut cause = problem.source();
    while let Some(deeper) = cause {
        text += &format!(": {deeper}");
        cause = deeper.source();
    }
    text
}

/// A response of the proxy's own.
struct Refusal {
    status: StatusCode,
    why: String,
}

impl Answer for Origin {
    async fn answer(
        &self,
        peer: SocketAddr,
        request: Request<()>,
        stream: Stream,
        responses: &Responses,
    ) -> Result<(), Failure> {
        let (mut client, body) = stream.split();
        let asked = request.headers().clone();
        let body = RequestBody::begin(body).await?;
        let answer = match self.forwarded(peer, request, body) {
            Ok(request) => self.ask(request).await,
            Err(refusal) => Err(refusal),
        };
        let sent = match answer {
            Ok(response) => relay(response, &asked, &mut client, responses).await,
            Err(refusal) => refuse(refusal, &mut client, responses).await,
        };
        if sent.is_err() {
            // What has arrived must not pass for all.
            client.stop_stream(Code::H3_INTERNAL_ERROR);
        }
        sent
    }
}

/// Sends what the origin answers.
async fn relay(
    response: Response<Incoming>,
    asked: &HeaderMap,
    client: &mut Outgoing,
    responses: &Responses,
) -> Result<(), Failure> {
    let (mut parts, mut body) = response.into_parts();
    headers::drop_hop(&mut parts.headers);
    // A response in chunks has no length beforehand, neither for the steering.
    let answering = responses.begin(body.size_hint().exact(), asked);
    client.send_response(Response::from_parts(parts, ())).await?;
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(data) => client.send_data(data).await?,
            Err(other) => {
                if let Ok(trailers) = other.into_trailers() {
                    client.send_trailers(trailers).await?;
                }
            }
        }
    }
    Ok(answering.finish(client).await?)
}

/// Answers without the origin.
async fn refuse(
    refusal: Refusal,
    client: &mut Outgoing,
    responses: &Responses,
) -> Result<(), Failure> {
    let text = format!("{}: {}\n", refusal.status, refusal.why);
    let answering = responses.begin(Some(text.len() as u64), &HeaderMap::new());
    let response = Response::builder()
        .status(refusal.status)
        .header(CONTENT_TYPE, "text/plain; charset=utf-8")
        .header(CONTENT_LENGTH, text.len());
    client.send_response(response.body(())?).await?;
    client.send_data(text.into()).await?;
    Ok(answering.finish(client).await?)
}
