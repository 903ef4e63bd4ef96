//! Cross-origin requests (Fetch standard): browsers may send the key, and scripts may see the marker.
//!
//! Every origin is allowed: credentials here are bearer tokens that a page must know, not cookies that a browser adds.

use crate::reference::app::App;
use crate::reference::fault;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use std::sync::Arc;

/// Answers preflights, and says on every other answer to a cross-origin request what a script may see of it.
pub(super) async fn cors(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if !request.headers().contains_key(header::ORIGIN) {
        return next.run(request).await;
    }
    let asks = request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if request.method() == Method::OPTIONS && asks {
        let mut response = Response::default();
        *response.status_mut() = StatusCode::NO_CONTENT;
        allow(&app, response.headers_mut());
        return response;
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    let shown = fault::shown_to_scripts(app.faults, app.contract.marker_name());
    let names: Vec<_> = ["location", "etag", "link", "retry-after"].into_iter().chain(shown).collect();
    if let Ok(names) = HeaderValue::try_from(names.join(", ")) {
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, names);
    }
    response
}

fn allow(app: &App, headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    let methods = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    let key = fault::allowed_in_browsers(app.faults, app.contract.key_field());
    let names: Vec<_> = ["authorization", "content-type", "if-match", "if-none-match"].into_iter().chain(key).collect();
    if let Ok(names) = HeaderValue::try_from(names.join(", ")) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names);
    }
}
