//! From the answers of the core to responses of axum.

use crate::reference::core::Answer;
use crate::reference::keyed::Reply;
use crate::reference::server::Died;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::Value;

/// The response that carries a reply.
pub(super) fn respond(reply: Reply) -> Response {
    match reply {
        Reply::Fresh(answer) => response(answer),
        Reply::Replay(answer) => {
            let mut response = response(answer);
            response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
            response
        }
        Reply::Died => {
            let mut response = Response::default();
            response.extensions_mut().insert(Died);
            response
        }
    }
}

/// The response that carries an answer.
pub(super) fn response(answer: Answer) -> Response {
    let mut response = Response::new(Body::from(answer.body));
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
