//! A folder's answers.

use std::io::SeekFrom;
use std::net::SocketAddr;

use bytes::{Buf as _, BytesMut};
use h3::error::Code;
use http::header::{ACCEPT_RANGES, ALLOW, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use trimtab_h3_noq::h3;

use super::Failure;
use super::common::responses::Responses;
use super::common::server::{Answer, Stream};
use super::kinds::kind;
use super::range::{Part, wanted};
use super::site::{Found, Site};

/// What is read of a file at once.
const PIECE: u64 = 64 << 10;
/// What is read of a request's body, which nobody wants.
const BODY_MAX: usize = 1 << 20;

impl Answer for Site {
    async fn answer(
        &self,
        _peer: SocketAddr,
        request: Request<()>,
        mut stream: Stream,
        responses: &Responses,
    ) -> Result<(), Failure> {
        // libcurl takes a stream that is stopped before it has sent all for an error.
        discard_body(&mut stream).await?;
        let (headers, path) = (request.headers(), request.uri().path());
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let refusal = Response::builder().header(ALLOW, "GET, HEAD");
            return refuse(stream, refusal, StatusCode::METHOD_NOT_ALLOWED, responses).await;
        }
        let Some(found) = self.find(path).await else {
            return refuse(stream, Response::builder(), StatusCode::NOT_FOUND, responses).await;
        };
        let (status, range) = match wanted(headers, found.length) {
            Part::Whole => (StatusCode::OK, 0..found.length),
            Part::Bytes(range) => (StatusCode::PARTIAL_CONTENT, range),
            Part::Beyond => {
                let length = format!("bytes */{}", found.length);
                let refusal = Response::builder().header(CONTENT_RANGE, length);
                return refuse(stream, refusal, StatusCode::RANGE_NOT_SATISFIABLE, responses).await;
            }
        };
        let size = range.end - range.start;
        let mut response = Response::builder()
            .status(status)
            .header(CONTENT_TYPE, kind(&found.path))
            .header(CONTENT_LENGTH, size)
            .header(ACCEPT_RANGES, "bytes");
        if status == StatusCode::PARTIAL_CONTENT {
            let part = format!("bytes {}-{}/{}", range.start, range.end - 1, found.length);
            response = response.header(CONTENT_RANGE, part);
        }
        let size = if request.method() == Method::HEAD { 0 } else { size };
        let answering = responses.begin(Some(size), headers);
        stream.send_response(response.body(())?).await?;
        if let Err(problem) = send(found, range.start, size, &mut stream).await {
            // What has arrived must not pass for all.
            stream.stop_stream(Code::H3_INTERNAL_ERROR);
            return Err(problem);
        }
        Ok(answering.finish(&mut stream).await?)
    }
}

/// Reads what a request brings, as far as that is reasonable.
async fn discard_body(stream: &mut Stream) -> Result<(), Failure> {
    let mut read = 0;
    while let Some(piece) = stream.recv_data().await? {
        read += piece.remaining();
        if read > BODY_MAX {
            stream.stop_sending(Code::H3_NO_ERROR);
            break;
        }
    }
    Ok(())
}

/// Answers without a file.
async fn refuse(
    mut stream: Stream,
    response: http::response::Builder,
    status: StatusCode,
    responses: &Responses,
) -> Result<(), Failure> {
    let text = format!("{status}\n");
    let answering = responses.begin(Some(text.len() as u64), &HeaderMap::new());
    let response = response
        .status(status)
        .header(CONTENT_TYPE, "text/plain; charset=utf-8")
        .header(CONTENT_LENGTH, text.len());
    stream.send_response(response.body(())?).await?;
    stream.send_data(text.into()).await?;
    Ok(answering.finish(&mut stream).await?)
}

/// Sends so many bytes of a file from a place on.
async fn send(found: Found, from: u64, size: u64, stream: &mut Stream) -> Result<(), Failure> {
    let Found { path, mut file, .. } = found;
    let unread = |e: std::io::Error| format!("cannot read {}: {e}", path.display());
    file.seek(SeekFrom::Start(from)).await.map_err(unread)?;
    let mut file: tokio::io::Take<File> = file.take(size);
    while file.limit() > 0 {
        let mut piece = BytesMut::with_capacity(PIECE.min(file.limit()) as usize);
        if file.read_buf(&mut piece).await.map_err(unread)? == 0 {
            return Err(format!("{} has become shorter", path.display()).into());
        }
        stream.send_data(piece.freeze()).await?;
    }
    Ok(())
}
