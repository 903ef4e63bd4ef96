//! The routes, and the way of a request through the checks that come before its claim.

use super::answer::{json, respond, response};
use super::body::read;
use super::cors::cors;
use super::problem::DOCS;
use super::tenant::tenant;
use super::{Problem, problem};
use crate::reference::app::App;
use crate::reference::controls::Controls;
use crate::reference::core::Answer;
use crate::reference::fault;
use crate::reference::key::{Key, KeyError};
use crate::reference::keyed::{self, Keyed, Reply};
use crate::reference::keyless;
use crate::reference::operations::{Conditions, Input, KeyUse, LISTS, OPERATIONS, Operation, SHOWN, etag, plain};
use crate::reference::store::{KeyId, Kind, Row, RowId, Scope, StoreError};
use axum::Router;
use axum::extract::{FromRequestParts, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};
use axum::middleware;
use axum::response::Response;
use axum::routing::{MethodFilter, get, on, post};
use serde_json::{Value, json as value};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// A test may move the clock forward by this much at a time: ten years, in seconds.
const LONGEST_STEP: f64 = 315_360_000.0;

/// All routes of the server.
pub(in crate::reference) fn router(app: Arc<App>) -> Router {
    let mut router = Router::new()
        .route("/test/clock", post(advance_clock).get(read_clock))
        .route("/health", get(health))
        .route(DOCS, get(docs));
    for operation in OPERATIONS {
        let method = match operation.method {
            "PUT" => MethodFilter::PUT,
            "PATCH" => MethodFilter::PATCH,
            "DELETE" => MethodFilter::DELETE,
            _ => MethodFilter::POST,
        };
        router = router.route(operation.route, on(method, |State(app), request| perform(app, *operation, request)));
    }
    for (route, kind) in LISTS {
        router = router.route(route, get(|State(app), uri, headers| list(app, *kind, uri, headers)));
    }
    for (route, kind) in SHOWN {
        router = router.route(route, get(|State(app), Path(id), headers| show(app, *kind, id, headers)));
    }
    router
        .fallback(async || response(problem(Problem::NotFound, "see /docs/idempotency for what is here")))
        .method_not_allowed_fallback(async || {
            response(problem(Problem::MethodNotAllowed, "see the Allow field for the methods of this resource"))
        })
        .layer(middleware::from_fn_with_state(Arc::clone(&app), cors))
        .with_state(app)
}

async fn perform(app: Arc<App>, operation: Operation, request: Request) -> Response {
    let checked = match before_the_claim(&app, operation, request).await {
        Ok(checked) => checked,
        Err(answer) => return response(app.contract.written(answer)),
    };
    let Some(in_flight) = app.load.begin() else {
        return response(problem(Problem::Overloaded, "send the request again later"));
    };
    if app.faults.aborts() {
        return respond(&app, fault::while_waited_for(&app, operation, checked).await, operation.streamed);
    }
    if !app.contract.finishes {
        return respond(&app, while_waited_for(&app, operation, checked).await, operation.streamed);
    }
    // A task of its own: the work goes on when the client hangs up and this future is dropped.
    let again = (Arc::clone(&app), checked.clone());
    let work = tokio::spawn(async move {
        let reply = execute(&app, operation, checked).await;
        drop(in_flight);
        reply
    });
    fault::resend(&again.0, operation, &again.1, &work.abort_handle());
    let reply = work.await.unwrap_or_else(|error| Reply::Fresh(problem(Problem::Internal, error.to_string())));
    respond(&again.0, reply, operation.streamed)
}

/// A request that has passed its checks.
#[derive(Clone)]
pub(in crate::reference) enum Checked {
    Keyed(Keyed),
    Keyless(Input),
}

/// From the checks to the answer.
pub(in crate::reference) async fn execute(app: &Arc<App>, operation: Operation, request: Checked) -> Reply {
    match request {
        Checked::Keyed(request) => keyed::execute(app, request).await,
        Checked::Keyless(input) => keyless::execute(app, operation.job, input).await,
    }
}

/// The checks that need no record, in their order: credentials, key, test headers, preconditions, body. None of them
/// uses up a key.
///
/// The body is read before the first of them, so that a client which is still sending gets to see its refusal.
async fn before_the_claim(app: &App, operation: Operation, request: Request) -> Result<Checked, Answer> {
    let (mut head, body) = request.into_parts();
    let bytes = read(body).await;
    let tenant = tenant(&head.headers);
    if let Some(answer) = fault::pinned(app, &head, tenant.as_ref().err()).await {
        return Err(answer);
    }
    let tenant = tenant?;
    let Operation { method, route, job, .. } = operation;
    let scope = app.contract.scope(Scope { tenant: tenant.to_owned(), method, route });
    let whole = bytes.as_deref().unwrap_or_default();
    let key = match operation.key {
        KeyUse::Required(policy) if app.contract.honours(method, operation.streamed) => {
            read_key(app, &head, whole)?.map(|key| (policy, key))
        }
        KeyUse::Required(_) if app.contract.refuses_key(method) && read_key(app, &head, whole)?.is_some() => {
            return Err(problem(Problem::KeyNotTaken, "requests with this method take no key"));
        }
        KeyUse::Required(_) | KeyUse::None => None,
    };
    let bad = |reason: String| problem(Problem::BadRequest, reason);
    let controls = Controls::read(&head.headers, job.phased()).map_err(bad)?;
    let conditions = Conditions::read(&head.headers).map_err(bad)?;
    let id = path_id(&mut head).await?;
    if let (Err(_), Some((_, key))) = (&bytes, &key) {
        fault::claim_too_early(app, KeyId { scope: scope.clone(), key: key.0.clone() }).await;
    }
    let bytes = bytes?;
    let body = if job.has_body() { parse(&bytes)? } else { Value::Null };
    let input = Input { tenant: tenant.to_owned(), id, body, conditions, controls };
    let Some((policy, key)) = key else { return Ok(Checked::Keyless(input)) };
    let path = head.uri.path_and_query().map_or(route, |path| path.as_str());
    let fingerprint = app.contract.fingerprint((method, path), &head.headers, &bytes);
    let fingerprint = fingerprint.ok_or_else(|| bad("the body is not JSON: it has no canonical form".into()))?;
    let request = Keyed { id: KeyId { scope, key: key.0 }, policy, fingerprint, job, input };
    Ok(Checked::Keyed(fault::taken_for(app.faults, request, &bytes)))
}

/// The key of a request, if it has one or needs none.
fn read_key(app: &App, head: &Parts, body: &[u8]) -> Result<Option<Key>, Answer> {
    let contract = &app.contract;
    let read = Key::read(&contract.key, &head.headers, &head.uri, body);
    match read.or_else(|error| fault::excused(app.faults, error)) {
        Ok(key) => Ok(Some(key)),
        Err(KeyError::Missing) if !contract.key.required => Ok(None),
        Err(KeyError::Missing) => Err(contract.refuse(Problem::KeyMissing, KeyError::Missing.to_string())),
        Err(error) => {
            let refusal = || contract.refuse(Problem::KeyMalformed, error.to_string());
            Err(fault::crash(app.faults, error).unwrap_or_else(refusal))
        }
    }
}

/// Does the work of a request for as long as its client waits. When it hangs up, nothing more is committed, and the key
/// is free again at once.
async fn while_waited_for(app: &Arc<App>, operation: Operation, request: Checked) -> Reply {
    let mut watch = Watch { app: Arc::clone(app), id: None };
    if let Checked::Keyed(keyed) = &request {
        watch.id = Some(keyed.id.clone());
    }
    let reply = execute(app, operation, request).await;
    watch.id = None;
    reply
}

/// Dropped with its key when the client hangs up.
struct Watch {
    app: Arc<App>,
    id: Option<KeyId>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            tokio::spawn(keyed::give_up(Arc::clone(&self.app), id));
        }
    }
}

fn parse(bytes: &[u8]) -> Result<Value, Answer> {
    serde_json::from_slice(bytes)
        .map_err(|error| problem(Problem::BadRequest, format!("the body is not JSON: {error}")))
}

/// The identifier in the path, or nothing when the route has none.
async fn path_id(head: &mut Parts) -> Result<String, Answer> {
    let unreadable = |_| problem(Problem::BadRequest, "the path is not UTF-8");
    let Path(mut params) = Path::<HashMap<String, String>>::from_request_parts(head, &()).await.map_err(unreadable)?;
    Ok(params.remove("id").unwrap_or_default())
}

#[derive(serde::Deserialize)]
struct Filter {
    reference: String,
}

async fn list(app: Arc<App>, kind: Kind, uri: Uri, headers: HeaderMap) -> Response {
    let tenant = match tenant(&headers) {
        Ok(tenant) => tenant,
        Err(answer) => return response(answer),
    };
    let Ok(Query(Filter { reference })) = Query::try_from_uri(&uri) else {
        return response(problem(Problem::BadRequest, format!("name a reference: {}?reference=R", uri.path())));
    };
    // What cannot be stored is not there.
    if !plain(&reference) {
        return json(&value!({ "items": [] }));
    }
    match app.store.list(kind, tenant.to_owned(), reference).await {
        Ok(rows) => json(&value!({ "items": rows.into_iter().map(|row| row.body).collect::<Vec<_>>() })),
        Err(error) => unavailable(&error),
    }
}

async fn show(app: Arc<App>, kind: Kind, id: String, headers: HeaderMap) -> Response {
    let tenant = match tenant(&headers) {
        Ok(tenant) => tenant,
        Err(answer) => return response(answer),
    };
    let found = match plain(&id) {
        true => app.store.find(RowId { kind, tenant: tenant.to_owned(), id }).await,
        false => Ok(None),
    };
    match found {
        Ok(Some(row)) => representation(&row),
        Ok(None) => response(problem(Problem::NotFound, "you have nothing of this id")),
        Err(error) => unavailable(&error),
    }
}

fn representation(row: &Row) -> Response {
    let headers = [("content-type", "application/json".to_owned()), ("etag", etag(row))];
    let headers = headers.map(|(name, value)| (name.to_owned(), value)).to_vec();
    response(Answer { status: 200, headers, body: row.body.to_string().into() })
}

fn unavailable(error: &StoreError) -> Response {
    response(problem(Problem::StoreUnavailable, error.to_string()))
}

async fn read_clock(State(app): State<Arc<App>>) -> Response {
    json(&value!({ "now_ms": app.clock.now().0 }))
}

async fn advance_clock(State(app): State<Arc<App>>, request: Request) -> Response {
    let seconds = match read(request.into_body()).await {
        Ok(bytes) => serde_json::from_slice::<Value>(&bytes).ok().and_then(|body| body["seconds"].as_f64()),
        Err(answer) => return response(answer),
    };
    match seconds.filter(|seconds| (0.0..=LONGEST_STEP).contains(seconds)) {
        Some(seconds) => {
            let now = app.clock.advance(Duration::from_secs_f64(seconds)).await;
            // In the time that has passed by the clock, living owners would have renewed their leases.
            app.leases.renew(&app.clock, app.terms).await;
            json(&value!({ "now_ms": now.0 }))
        }
        None => {
            let expected = format!("send {{\"seconds\": N}} with N from 0 to {LONGEST_STEP}");
            response(problem(Problem::BadRequest, expected))
        }
    }
}

async fn health(State(app): State<Arc<App>>) -> Response {
    json(&value!({ "status": "ok", "in_flight": app.load.in_flight(), "owners": app.leases.count() }))
}

async fn docs() -> Response {
    let headers = vec![("content-type".to_owned(), "text/markdown; charset=utf-8".to_owned())];
    response(Answer { status: 200, headers, body: include_str!("idempotency.md").into() })
}
