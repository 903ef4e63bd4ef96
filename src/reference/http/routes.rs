//! The routes, and the way of a request through the checks that come before its claim.

use super::answer::{json, respond, response};
use super::body::read;
use super::problem::DOCS;
use super::tenant::tenant;
use super::{Problem, problem};
use crate::reference::core::{Answer, Fingerprint};
use crate::reference::fault::Fault;
use crate::reference::fingerprint::fingerprint;
use crate::reference::key::{Key, KeyError};
use crate::reference::keyed::{self, App, Keyed, Reply};
use crate::reference::payments::{Controls, Order};
use crate::reference::policy::Policy;
use crate::reference::store::{KeyId, Scope, StoreError};
use axum::Router;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::json as value;
use std::sync::Arc;
use std::time::Duration;

/// A keyed operation.
#[derive(Debug, Clone, Copy)]
struct Operation {
    method: &'static str,
    route: &'static str,
    policy: Policy,
}

const PAYMENTS: Operation = Operation { method: "POST", route: "/payments", policy: Policy::Draft };
const V1_PAYMENTS: Operation = Operation { method: "POST", route: "/v1/payments", policy: Policy::StoredFailures };

/// A test may move the clock forward by this much at a time: ten years, in seconds.
const LONGEST_STEP: f64 = 315_360_000.0;

/// All routes of the server.
pub(in crate::reference) fn router(app: Arc<App>) -> Router {
    let create = |operation| move |State(app), request| create(app, operation, request);
    Router::new()
        .route(PAYMENTS.route, post(create(PAYMENTS)).get(list))
        .route(V1_PAYMENTS.route, post(create(V1_PAYMENTS)))
        .route("/payments/{id}", get(show))
        .route("/test/clock", post(advance_clock).get(read_clock))
        .route("/health", get(health))
        .route(DOCS, get(docs))
        .fallback(async || response(problem(Problem::NotFound, "see /docs/idempotency for what is here")))
        .method_not_allowed_fallback(async || {
            response(problem(Problem::MethodNotAllowed, "see the Allow field for the methods of this resource"))
        })
        .with_state(app)
}

async fn create(app: Arc<App>, operation: Operation, request: Request) -> Response {
    let keyed = match before_the_claim(&app, operation, request).await {
        Ok(keyed) => keyed,
        Err(answer) => return response(answer),
    };
    let Some(in_flight) = app.load.begin() else {
        return response(problem(Problem::Overloaded, "send the request again later"));
    };
    // A task of its own: the work goes on when the client hangs up and this future is dropped.
    let work = tokio::spawn(async move {
        let reply = keyed::execute(&app, keyed).await;
        drop(in_flight);
        reply
    });
    respond(work.await.unwrap_or_else(|error| Reply::Fresh(problem(Problem::Internal, error.to_string()))))
}

/// The checks that need no record, in their order: credentials, key, test headers, body. None of them uses up a key.
///
/// The body is read before the first of them, so that a client which is still sending gets to see its refusal.
async fn before_the_claim(app: &App, operation: Operation, request: Request) -> Result<Keyed, Answer> {
    let (head, body) = request.into_parts();
    let body = read(body).await;
    let tenant = tenant(&head.headers)?;
    let key = Key::read(&head.headers).map_err(|error| match error {
        KeyError::Missing => problem(Problem::KeyMissing, error.to_string()),
        _ => problem(Problem::KeyMalformed, error.to_string()),
    })?;
    let controls = Controls::read(&head.headers).map_err(|reason| problem(Problem::BadRequest, reason))?;
    let bytes = body?;
    let not_json =
        |reason: &dyn std::fmt::Display| problem(Problem::BadRequest, format!("the body is not JSON: {reason}"));
    let body = serde_json::from_slice(&bytes).map_err(|error| not_json(&error))?;
    let Operation { method, route, policy } = operation;
    let path = head.uri.path_and_query().map_or(route, |path| path.as_str());
    let fingerprint = if app.faults.contains(Fault::PayloadMismatchIgnored) {
        Fingerprint([0; 32])
    } else {
        fingerprint(method, path, &bytes).ok_or_else(|| not_json(&"it has no canonical form"))?
    };
    let scope_tenant = if app.faults.contains(Fault::CrossTenantReplay) { "" } else { tenant };
    let scope = Scope { tenant: scope_tenant.to_owned(), method, route };
    let order = Order { tenant: tenant.to_owned(), body, controls };
    Ok(Keyed { id: KeyId { scope, key: key.0 }, policy, fingerprint, order })
}

#[derive(serde::Deserialize)]
struct Filter {
    reference: String,
}

async fn list(State(app): State<Arc<App>>, uri: Uri, headers: HeaderMap) -> Response {
    let tenant = match tenant(&headers) {
        Ok(tenant) => tenant,
        Err(answer) => return response(answer),
    };
    let Ok(Query(Filter { reference })) = Query::try_from_uri(&uri) else {
        return response(problem(Problem::BadRequest, "name a reference: /payments?reference=R"));
    };
    match app.store.payments(tenant.to_owned(), reference).await {
        Ok(items) => json(&value!({ "items": items })),
        Err(error) => unavailable(&error),
    }
}

async fn show(State(app): State<Arc<App>>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    let tenant = match tenant(&headers) {
        Ok(tenant) => tenant,
        Err(answer) => return response(answer),
    };
    match app.store.payment(tenant.to_owned(), id).await {
        Ok(Some(payment)) => json(&value!(payment)),
        Ok(None) => response(problem(Problem::NotFound, "you have no payment of this id")),
        Err(error) => unavailable(&error),
    }
}

fn unavailable(error: &StoreError) -> Response {
    response(problem(Problem::StoreUnavailable, error.to_string()))
}

async fn read_clock(State(app): State<Arc<App>>) -> Response {
    json(&value!({ "now_ms": app.clock.now().0 }))
}

async fn advance_clock(State(app): State<Arc<App>>, request: Request) -> Response {
    let seconds = match read(request.into_body()).await {
        Ok(bytes) => serde_json::from_slice::<serde_json::Value>(&bytes).ok().and_then(|body| body["seconds"].as_f64()),
        Err(answer) => return response(answer),
    };
    match seconds.filter(|seconds| (0.0..=LONGEST_STEP).contains(seconds)) {
        Some(seconds) => json(&value!({ "now_ms": app.clock.advance(Duration::from_secs_f64(seconds)).0 })),
        None => {
            let expected = format!("send {{\"seconds\": N}} with N from 0 to {LONGEST_STEP}");
            response(problem(Problem::BadRequest, expected))
        }
    }
}

async fn health(State(app): State<Arc<App>>) -> Response {
    json(&value!({ "status": "ok", "in_flight": app.load.in_flight() }))
}

async fn docs() -> Response {
    let headers = vec![("content-type".to_owned(), "text/markdown; charset=utf-8".to_owned())];
    response(Answer { status: 200, headers, body: include_str!("idempotency.md").into() })
}
