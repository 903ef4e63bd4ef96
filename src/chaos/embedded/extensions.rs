//! The part of the API that Toxiproxy does not have, under `/idemproof`, which a real one answers with 404.
//!
//! | verb, path below `/idemproof` | body | what |
//! |---|---|---|
//! | GET (nothing) | - | the seed, and which extensions there are |
//! | GET, POST `/proxies/{p}/triggers` | a trigger: `at`, `do`, and which exchanges | list, or add |
//! | GET, DELETE `/proxies/{p}/triggers/{t}` | - | show with `fired`, or remove |
//! | POST `/proxies/{p}/triggers/{t}/release` | - | let go what it holds, for good |
//! | GET `/proxies/{p}/connections[/{n}]` | - | the ledger |
//! | DELETE `/proxies/{p}/connections/{n}` | `client`, `server`: `close`, `reset`, ... | cut one |
//! | POST `/proxies/{p}/wait` | `until`, `count`, `connection`, `after`, `within` | long-poll; 408 when it has not happened |
//! | GET, POST `/proxies/{p}/dial` | `mode`, `delay` | how the upstream is reached from now on |
//!
//! Codes and errors are those of the rest of the API.

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};

use super::body::{Fields, Refusal};
use super::registry::Registry;

/// Longest wait that a caller may ask for, in milliseconds; the default too.
const LONGEST_WAIT: u64 = 20_000;

/// What a path below `/idemproof` names.
#[derive(Debug)]
pub(super) enum Route {
    About,
    Connections(String),
    Connection(String, u64),
    Wait(String),
    Triggers(String),
    Trigger(String, String),
    Release(String, String),
    Dial(String),
}

impl Route {
    /// Reads the parts of a path behind `/idemproof`.
    pub(super) fn of(parts: &[&str]) -> Option<Self> {
        Some(match *parts {
            [] => Self::About,
            ["proxies", proxy, "connections"] => Self::Connections(proxy.to_owned()),
            ["proxies", proxy, "connections", number] => Self::Connection(proxy.to_owned(), number.parse().ok()?),
            ["proxies", proxy, "wait"] => Self::Wait(proxy.to_owned()),
            ["proxies", proxy, "triggers"] => Self::Triggers(proxy.to_owned()),
            ["proxies", proxy, "triggers", trigger] => Self::Trigger(proxy.to_owned(), trigger.to_owned()),
            ["proxies", proxy, "triggers", trigger, "release"] => Self::Release(proxy.to_owned(), trigger.to_owned()),
            ["proxies", proxy, "dial"] => Self::Dial(proxy.to_owned()),
            _ => return None,
        })
    }

    pub(super) fn allows(&self, verb: &Method) -> bool {
        let verbs: &[Method] = match self {
            Self::About | Self::Connections(_) => &[Method::GET],
            Self::Connection(..) | Self::Trigger(..) => &[Method::GET, Method::DELETE],
            Self::Wait(_) | Self::Release(..) => &[Method::POST],
            Self::Triggers(_) | Self::Dial(_) => &[Method::GET, Method::POST],
        };
        verbs.contains(verb)
    }
}

/// Does what was asked. No value means that there is nothing to say.
pub(super) async fn dispatch(
    registry: &Registry,
    route: &Route,
    verb: &Method,
    body: &[u8],
) -> Result<Option<Value>, Refusal> {
    let read = verb == Method::GET;
    let fields = || Fields::decode(body);
    Ok(Some(match route {
        Route::About => json!({
            "idemproof": env!("CARGO_PKG_VERSION"),
            "seed": registry.common().seed,
            "extensions": [
                "triggers", "records", "endings", "delivered-reset", "live-reset", "times", "ledger", "wait", "hold",
                "seed", "replay", "dial", "kill",
            ],
        }),
        Route::Connections(proxy) => registry.get(proxy)?.connections_json(),
        Route::Connection(proxy, number) if read => registry.get(proxy)?.connection_json(*number)?,
        Route::Connection(proxy, number) => {
            // A body says how; without one both sides are closed in order.
            let fields = if body.trim_ascii().is_empty() { Fields::default() } else { fields()? };
            registry.get(proxy)?.kill(*number, &fields).await?;
            return Ok(None);
        }
        Route::Wait(proxy) => {
            let (proxy, fields) = (registry.get(proxy)?, fields()?);
            let within = super::trigger::natural(&fields, "within")?.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT);
            let waited = tokio::time::timeout(Duration::from_millis(within), proxy.wait(&fields)).await;
            waited.unwrap_or_else(|_| Err(Refusal::new(408, format!("it has not happened within {within} ms"))))?
        }
        Route::Triggers(proxy) if read => registry.get(proxy)?.triggers_json(),
        Route::Triggers(proxy) => registry.get(proxy)?.add_trigger(&fields()?).await?,
        Route::Trigger(proxy, trigger) if read => registry.get(proxy)?.trigger_json(trigger)?,
        Route::Trigger(proxy, trigger) => {
            registry.get(proxy)?.remove_trigger(trigger).await?;
            return Ok(None);
        }
        Route::Release(proxy, trigger) => registry.get(proxy)?.release(trigger).await?,
        Route::Dial(proxy) if read => registry.get(proxy)?.dial_json(),
        Route::Dial(proxy) => registry.get(proxy)?.set_dial(&fields()?)?,
    }))
}
