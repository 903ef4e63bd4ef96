//! From the answers of the core to responses of axum.

use crate::reference::app::App;
use crate::reference::core::Answer;
use crate::reference::fault;
use crate::reference::keyed::Reply;
use crate::reference::server::Died;
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use hyper::body::Frame;
use serde_json::Value;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The length of a chunk, in bytes.
const CHUNK: usize = 512;

/// The response that carries a reply. A success of a `streamed` operation is sent in chunks, its length not told.
pub(super) fn respond(app: &App, reply: Reply, streamed: bool) -> Response {
    let with = |answer: Answer, replay: bool| {
        let mut answer = app.contract.written(answer);
        if fault::seems_a_replay(app.faults, replay, answer.status) {
            answer = app.contract.marked(answer);
        }
        let body = match streamed && answer.status < 300 {
            true => Body::new(Chunks { rest: std::mem::take(&mut answer.body) }),
            false => Body::from(std::mem::take(&mut answer.body)),
        };
        with_body(answer, body)
    };
    match reply {
        Reply::Fresh(answer) => with(answer, false),
        Reply::Replay(answer) => with(answer, true),
        Reply::Died => {
            let mut response = Response::default();
            response.extensions_mut().insert(Died);
            response
        }
    }
}

/// The response that carries an answer.
pub(super) fn response(mut answer: Answer) -> Response {
    let body = Body::from(std::mem::take(&mut answer.body));
    with_body(answer, body)
}

fn with_body(answer: Answer, body: Body) -> Response {
    let mut response = Response::new(body);
    // A stored answer was a response once, so these conversions succeed unless the store was changed by hand.
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in answer.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// A response of 200 with JSON.
pub(super) fn json(value: &Value) -> Response {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    response(Answer { status: 200, headers, body: value.to_string().into() })
}

/// A body that is sent a few bytes at a time and does not say how long it is.
struct Chunks {
    rest: Bytes,
}

impl hyper::body::Body for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.rest.len().min(CHUNK);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }
}
