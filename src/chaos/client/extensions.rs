//! What only the embedded server knows: triggers, the ledger, dial settings. A real Toxiproxy has none of it, which
//! [`Client::has_extensions`] finds out.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::http::same;
use super::{ChaosError, Client, Proxy};
use crate::chaos::{Ending, Trigger};

/// Longest time that one call of a long wait may take; well below the limit of a call.
const ONE_CALL: Duration = Duration::from_secs(3);

/// One direction of a connection, as counted at the proxy's sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Flow {
    /// Bytes that came from the source.
    pub read: u64,
    /// Bytes that were handed to the system for the destination.
    pub written: u64,
    /// TLS records with application data that were handed over whole.
    pub records: u64,
    /// When the first byte moved, in microseconds since the server started.
    pub first_us: Option<u64>,
    /// When the last byte moved.
    pub last_us: Option<u64>,
}

/// How one socket of a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SocketEnd {
    /// The peer closed it.
    PeerClosed,
    /// The peer reset it, or it broke.
    PeerReset,
    /// The proxy closed it.
    Closed,
    /// The proxy reset it.
    Reset,
}

/// What the proxy knows of one connection. Instants are in microseconds since the server started.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Connection {
    /// Its place among the connections of the proxy, from 1.
    pub number: u64,
    /// What the client speaks: `http/1`, `tls`, `opaque` or `unknown`.
    pub speech: String,
    /// When the client came.
    pub accepted_us: u64,
    /// When the upstream was reached.
    pub dialled_us: Option<u64>,
    /// When all was over.
    pub ended_us: Option<u64>,
    /// Towards the server.
    pub upstream: Flow,
    /// Towards the client.
    pub downstream: Flow,
    /// Requests whose last byte was handed to the server. Known for HTTP/1.1 in plain text, as what follows.
    pub requests: u64,
    /// Answers of which a byte was handed to the client.
    pub answers_begun: u64,
    /// Answers that were handed to the client whole.
    pub answers: u64,
    /// Answers that the server gave whole, to the client or to nobody.
    pub answers_drained: u64,
    /// The trigger that holds it.
    pub held: Option<String>,
    /// The triggers that have hit, in order.
    pub fired: Vec<String>,
    /// What came of requests that were sent a second time.
    pub replays: Vec<Replay>,
    /// What began its end.
    pub cause: Option<String>,
    /// How the client's socket ended.
    pub client: Option<SocketEnd>,
    /// How the server's socket ended.
    pub server: Option<SocketEnd>,
}

/// What came of a request that was sent a second time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Replay {
    /// Whether it was sent whole.
    pub sent: bool,
    /// Why not.
    #[serde(default)]
    pub why: Option<String>,
    /// The status of the answer, when nobody but the proxy got it.
    #[serde(default)]
    pub status: Option<u16>,
}

/// What to wait for on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The client has come.
    Accepted,
    /// A whole request was handed to the server.
    Request,
    /// A byte of an answer was handed to the client.
    AnswerBegun,
    /// A whole answer was handed to the client.
    Answer,
    /// The server has given a whole answer, whoever got it.
    Drained,
    /// A gate holds it.
    Held,
    /// A trigger has hit.
    Fired,
    /// A request was sent a second time, and what came of it is known.
    Replayed,
    /// All is over.
    Ended,
}

impl Until {
    fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Request => "request",
            Self::AnswerBegun => "answer-begun",
            Self::Answer => "answer",
            Self::Drained => "drained",
            Self::Held => "held",
            Self::Fired => "fired",
            Self::Replayed => "replayed",
            Self::Ended => "ended",
        }
    }
}

/// What happens when a client of a proxy comes, before any byte moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dial {
    /// The upstream is reached this much later.
    After(Duration),
    /// The client is accepted and closed, as when the upstream refuses.
    Refuse,
    /// The client is accepted and nothing ever happens.
    Blackhole,
}

impl Client {
    /// Whether the server is the embedded one (or `idemproof proxy`), with all its extensions.
    ///
    /// # Errors
    /// What went wrong with the call. That a server does not know it is no error.
    pub async fn has_extensions(&self) -> Result<bool, ChaosError> {
        match self.api().json(Method::GET, "/idemproof", None).await {
            Ok(about) => Ok(about.get("extensions").is_some_and(Value::is_array)),
            Err(ChaosError::Refused { status: 404, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Proxy {
    fn extension(&self, rest: &str) -> String {
        format!("/idemproof/proxies/{}/{rest}", self.name())
    }

    /// Adds a trigger. When this returns, every open connection looks out for it.
    ///
    /// # Errors
    /// [`ChaosError::Refused`] with status 404 by a real Toxiproxy; otherwise what went wrong with the call.
    pub async fn trigger(&self, trigger: &Trigger) -> Result<TriggerHandle, ChaosError> {
        let name = format!("trigger-{}", self.client().next_number());
        let path = self.extension("triggers");
        let body = trigger.body(&name);
        let answer = self.client().api().json(Method::POST, &path, Some(&body)).await?;
        for (field, asked) in body.as_object().into_iter().flatten() {
            same(&format!("POST {path}"), field, asked, &answer)?;
        }
        Ok(TriggerHandle { client: self.client().clone(), path: format!("{path}/{name}"), name })
    }

    /// What is known of all connections, the oldest first.
    ///
    /// # Errors
    /// What went wrong with the call.
    pub async fn connections(&self) -> Result<Vec<Connection>, ChaosError> {
        let path = self.extension("connections");
        let answer = self.client().api().json(Method::GET, &path, None).await?;
        let all = answer.as_array().cloned().unwrap_or_default();
        all.into_iter().map(|one| connection(&format!("GET {path}"), one)).collect()
    }

    /// Waits until something has happened `count` times on a connection later than `after` (0 for any). `None` when it
    /// has not within the time.
    ///
    /// # Errors
    /// What went wrong with a call.
    pub async fn wait(
        &self,
        until: Until,
        count: u64,
        after: u64,
        within: Duration,
    ) -> Result<Option<Connection>, ChaosError> {
        let path = self.extension("wait");
        let deadline = Instant::now() + within;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let ms = left.min(ONE_CALL).as_millis() as u64;
            let body = json!({"until": until.as_str(), "count": count, "after": after, "within": ms});
            match self.client().api().json(Method::POST, &path, Some(&body)).await {
                Ok(found) => return connection(&format!("POST {path}"), found).map(Some),
                Err(ChaosError::Refused { status: 408, .. }) if left > ONE_CALL => {}
                Err(ChaosError::Refused { status: 408, .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Cuts one connection; false when it is gone already.
    ///
    /// # Errors
    /// What went wrong with the call.
    pub async fn kill(&self, number: u64, client: Ending, server: Ending) -> Result<bool, ChaosError> {
        let path = self.extension(&format!("connections/{number}"));
        let body = json!({"client": client.as_str(), "server": server.as_str()});
        match self.client().api().call(Method::DELETE, &path, Some(&body)).await {
            Ok(_) => Ok(true),
            Err(ChaosError::Refused { status: 404, text, .. }) if text.contains("connection") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Changes how later connections reach the upstream.
    ///
    /// # Errors
    /// What went wrong with the call.
    pub async fn dial(&self, dial: Dial) -> Result<(), ChaosError> {
        let (mode, delay) = match dial {
            Dial::After(delay) => ("connect", delay.as_millis() as u64),
            Dial::Refuse => ("refuse", 0),
            Dial::Blackhole => ("blackhole", 0),
        };
        let path = self.extension("dial");
        let body = json!({"mode": mode, "delay": delay});
        let answer = self.client().api().json(Method::POST, &path, Some(&body)).await?;
        same(&format!("POST {path}"), "mode", &json!(mode), &answer)?;
        same(&format!("POST {path}"), "delay", &json!(delay), &answer)
    }
}

fn connection(call: &str, value: Value) -> Result<Connection, ChaosError> {
    serde_json::from_value(value)
        .map_err(|error| ChaosError::Nonsense { call: call.to_owned(), why: error.to_string() })
}

/// A trigger on one of our proxies. It stays when this is dropped.
#[derive(Debug)]
pub struct TriggerHandle {
    client: Client,
    path: String,
    name: String,
}

impl TriggerHandle {
    /// The name on the server, which [`Connection::fired`] tells.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Lets go what it holds. It hits no more.
    ///
    /// # Errors
    /// What went wrong with the call.
    pub async fn release(&self) -> Result<(), ChaosError> {
        let path = format!("{}/release", self.path);
        let answer = self.client.api().json(Method::POST, &path, Some(&json!({}))).await?;
        same(&format!("POST {path}"), "name", &json!(self.name), &answer)
    }

    /// How often it has hit.
    ///
    /// # Errors
    /// What went wrong with the call.
    pub async fn fired(&self) -> Result<u64, ChaosError> {
        let answer = self.client.api().json(Method::GET, &self.path, None).await?;
        let nonsense = || ChaosError::Nonsense { call: format!("GET {}", self.path), why: "no `fired`".to_owned() };
        answer.get("fired").and_then(Value::as_u64).ok_or_else(nonsense)
    }

    /// Removes it; what it holds goes on.
    ///
    /// # Errors
    /// What went wrong with the call.
    pub async fn remove(self) -> Result<(), ChaosError> {
        self.client.api().call(Method::DELETE, &self.path, None).await.map(drop)
    }
}
