//! The HTTP side: routes, status codes, headers and bodies of the Toxiproxy API.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};

use super::body::{Fields, Refusal};
use super::extensions::{self, Route};
use super::registry::Registry;

/// The Toxiproxy version whose API this is.
const VERSION: &str = "2.12.0";
/// Largest request body.
const MAX_BODY: usize = 1024 * 1024;
/// Longest wait for a request body.
const BODY_WAIT: Duration = Duration::from_secs(15);

/// All routes. One fallback, because wrong verbs and paths are answered as Toxiproxy does and not as axum would.
pub(super) fn router(registry: Arc<Registry>, metrics: bool) -> Router {
    Router::new().fallback(answer).with_state(Arc::new(Served { registry, metrics }))
}

/// What the routes serve.
struct Served {
    registry: Arc<Registry>,
    /// Whether counters are shown.
    metrics: bool,
}

/// What a path names.
enum Place {
    Version,
    Proxies,
    Populate,
    Reset,
    Proxy(String),
    Toxics(String),
    Toxic(String, String),
    Metrics,
    Extension(Route),
}

impl Place {
    fn of(path: &str) -> Option<Self> {
        let path = decode_percent(path)?;
        if let Some(below) = path.strip_prefix("/idemproof") {
            let below: Vec<&str> = match below {
                "" => vec![],
                below => below.strip_prefix('/')?.split('/').collect(),
            };
            return Route::of(&below).map(Self::Extension);
        }
        let mut parts = path.strip_prefix('/')?.split('/');
        let place = match (parts.next()?, parts.next(), parts.next(), parts.next()) {
            ("version", None, ..) => Self::Version,
            ("proxies", None, ..) => Self::Proxies,
            ("populate", None, ..) => Self::Populate,
            ("reset", None, ..) => Self::Reset,
            ("metrics", None, ..) => Self::Metrics,
            ("proxies", Some(proxy), None, _) => Self::Proxy(proxy.to_owned()),
            ("proxies", Some(proxy), Some("toxics"), None) => Self::Toxics(proxy.to_owned()),
            ("proxies", Some(proxy), Some("toxics"), Some(toxic)) => Self::Toxic(proxy.to_owned(), toxic.to_owned()),
            _ => return None,
        };
        let empty = match &place {
            Self::Proxy(name) | Self::Toxics(name) => name.is_empty(),
            Self::Toxic(proxy, toxic) => proxy.is_empty() || toxic.is_empty(),
            _ => false,
        };
        (!empty && parts.next().is_none()).then_some(place)
    }

    fn allows(&self, verb: &Method) -> bool {
        let verbs: &[Method] = match self {
            Self::Metrics => return true,
            Self::Extension(route) => return route.allows(verb),
            Self::Version => &[Method::GET],
            Self::Populate | Self::Reset => &[Method::POST],
            Self::Proxies | Self::Toxics(_) => &[Method::GET, Method::POST],
            Self::Proxy(_) | Self::Toxic(..) => &[Method::GET, Method::POST, Method::PATCH, Method::DELETE],
        };
        verbs.contains(verb)
    }
}

fn decode_percent(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        bytes.push((digit()? * 16 + digit()?) as u8);
    }
    String::from_utf8(bytes).ok()
}

async fn answer(State(served): State<Arc<Served>>, request: Request) -> Response {
    let place = Place::of(request.uri().path());
    let Some(place) = place.filter(|place| served.metrics || !matches!(place, Place::Metrics)) else {
        return plain(StatusCode::NOT_FOUND, "404 page not found\n");
    };
    if !place.allows(request.method()) {
        return respond(StatusCode::METHOD_NOT_ALLOWED, None, Body::empty());
    }
    let agent = request.headers().get(header::USER_AGENT).map(HeaderValue::as_bytes).unwrap_or_default();
    let mut response = if agent.starts_with(b"Mozilla/") {
        plain(StatusCode::FORBIDDEN, "User agent not allowed\n")
    } else {
        perform(Arc::clone(&served.registry), place, request).await
    };
    if let Ok(id) = HeaderValue::from_str(&request_id()) {
        response.headers_mut().insert("X-Toxiproxy-Request-Id", id);
    }
    response
}

/// Does what was asked, in a task of its own: a caller that hangs up does not leave a change half done.
async fn perform(registry: Arc<Registry>, place: Place, request: Request) -> Response {
    let verb = request.method().clone();
    let body = match read_body(request.into_body()).await {
        Ok(body) => body,
        Err(refusal) => return refuse(&refusal),
    };
    let work = tokio::spawn(async move {
        if let Place::Populate = place {
            return populate(&registry, &body).await;
        }
        dispatch(&registry, &place, &verb, &body).await.unwrap_or_else(|refusal| refuse(&refusal))
    });
    work.await.unwrap_or_else(|error| refuse(&Refusal::new(500, format!("internal error: {error}"))))
}

async fn read_body(body: Body) -> Result<Bytes, Refusal> {
    match tokio::time::timeout(BODY_WAIT, axum::body::to_bytes(body, MAX_BODY)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => Err(Refusal::body(format!("{error} (at most {MAX_BODY} bytes are read)"))),
        Err(_) => Err(Refusal::body(format!("not complete after {} seconds", BODY_WAIT.as_secs()))),
    }
}

async fn dispatch(registry: &Registry, place: &Place, verb: &Method, body: &[u8]) -> Result<Response, Refusal> {
    let read = verb == Method::GET;
    let delete = verb == Method::DELETE;
    let ok = |value: &Value| Ok(as_json(StatusCode::OK, value));
    let gone = || Ok(respond(StatusCode::NO_CONTENT, None, Body::empty()));
    match place {
        Place::Version => {
            let body = format!("{{\"version\": \"{VERSION}\"}}\n");
            Ok(respond(StatusCode::OK, Some("application/json;charset=utf-8"), body.into()))
        }
        Place::Metrics => {
            Ok(respond(StatusCode::OK, Some("text/plain; version=0.0.4"), registry.common().metrics.text().into()))
        }
        Place::Extension(route) => match extensions::dispatch(registry, route, verb, body).await? {
            Some(answer) => ok(&answer),
            None => gone(),
        },
        Place::Proxies if read => ok(&registry.to_json()),
        Place::Proxies => {
            let created = registry.create(&Fields::decode(body)?).await?;
            Ok(as_json(StatusCode::CREATED, &created))
        }
        Place::Populate => Ok(populate(registry, body).await),
        Place::Reset => {
            registry.reset().await?;
            gone()
        }
        Place::Proxy(name) if delete => {
            registry.delete(name).await?;
            gone()
        }
        Place::Proxy(name) => {
            let proxy = registry.get(name)?;
            if !read {
                proxy.update(&Fields::decode(body)?).await?;
            }
            ok(&proxy.to_json())
        }
        Place::Toxics(name) => {
            let proxy = registry.get(name)?;
            if read { ok(&proxy.toxics_json()) } else { ok(&proxy.add_toxic(&Fields::decode(body)?).await?) }
        }
        Place::Toxic(name, toxic) => {
            let proxy = registry.get(name)?;
            if delete {
                proxy.remove_toxic(toxic).await?;
                return gone();
            }
            let known = proxy.toxic_json(toxic)?;
            if read { ok(&known) } else { ok(&proxy.update_toxic(toxic, &Fields::decode(body)?).await?) }
        }
    }
}

/// The one call that answers with a list and an error at once.
async fn populate(registry: &Registry, body: &[u8]) -> Response {
    let (proxies, refusal) = match Fields::decode_list(body) {
        Ok(bodies) => registry.populate(&bodies).await,
        Err(refusal) => (None, Some(refusal)),
    };
    match refusal {
        None => as_json(StatusCode::CREATED, &json!({"proxies": proxies})),
        Some(Refusal { status, text }) => {
            as_json(status_code(status), &json!({"error": text, "status": status, "proxies": proxies}))
        }
    }
}

fn status_code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

fn respond(status: StatusCode, content_type: Option<&'static str>, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    if let Some(content_type) = content_type {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    response
}

fn as_json(status: StatusCode, value: &Value) -> Response {
    respond(status, Some("application/json"), value.to_string().into())
}

fn plain(status: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = respond(status, Some("text/plain; charset=utf-8"), text.into());
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// An error. The body is JSON although the header says text, as with Toxiproxy.
fn refuse(refusal: &Refusal) -> Response {
    let body = json!({"error": refusal.text, "status": refusal.status});
    plain(status_code(refusal.status), format!("{body}\n"))
}

/// A 20-character id, unique in this process and unlikely to repeat in another.
fn request_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{:012x}{:08x}", now.as_micros() as u64 & 0xffff_ffff_ffff, COUNT.fetch_add(1, Ordering::Relaxed) as u32)
}
