//! What can go wrong with a Toxiproxy.

use std::time::Duration;

use super::Version;
use crate::chaos::BadToxic;

/// A call to a Toxiproxy did not do what was asked. `call` is the verb and path.
#[derive(Debug, thiserror::Error)]
pub enum ChaosError {
    /// The text is not the address of an API.
    #[error("`{given}` is not the address of a Toxiproxy API: {why}; write http://host:port or host:port")]
    BadUrl {
        /// What was given.
        given: String,
        /// What is wrong with it.
        why: String,
    },
    /// The run id cannot be part of a proxy name.
    #[error("`{given}` cannot be a run id: use 1 to 64 letters, digits, `-`, `_` or `.`")]
    BadRunId {
        /// What was given.
        given: String,
    },
    /// The HTTP client could not be set up.
    #[error("cannot set up the HTTP client for the Toxiproxy API: {why}")]
    Setup {
        /// What the library says.
        why: String,
    },
    /// No connection, or it broke.
    #[error("cannot reach Toxiproxy at {url} ({call}): {why}; is it running there?")]
    Unreachable {
        /// The API.
        url: String,
        /// Verb and path.
        call: String,
        /// The innermost cause.
        why: String,
    },
    /// No complete answer in time. The server is probably wedged and needs a restart.
    #[error("Toxiproxy did not answer {call} within {limit:?}: it is probably stuck; restart it")]
    TimedOut {
        /// Verb and path.
        call: String,
        /// Our limit.
        limit: Duration,
    },
    /// An error answer.
    #[error("Toxiproxy refused {call} with status {status}: {text}")]
    Refused {
        /// Verb and path.
        call: String,
        /// HTTP status.
        status: u16,
        /// The server's own words, shortened.
        text: String,
    },
    /// An answer that no Toxiproxy gives.
    #[error("the answer to {call} is not one of a Toxiproxy: {why}; is the URL that of its API?")]
    Nonsense {
        /// Verb and path.
        call: String,
        /// What is wrong with it.
        why: String,
    },
    /// A Toxiproxy without the toxics needed.
    #[error("Toxiproxy {found} is too old: 2.2.0 or later is needed")]
    TooOld {
        /// What it says it is.
        found: Version,
    },
    /// The server did something else than what was asked.
    #[error(
        "Toxiproxy answered {call} with {field} = {got}, but {asked} was asked for; the fault is not what it should be"
    )]
    Differs {
        /// Verb and path.
        call: String,
        /// The member of the answer.
        field: String,
        /// What was sent.
        asked: String,
        /// What came back.
        got: String,
    },
    /// An update may change attributes, not the type.
    #[error("a {old} toxic cannot be updated to {new}; remove it and add another")]
    TypeChange {
        /// The type it has.
        old: &'static str,
        /// The type asked for.
        new: &'static str,
    },
    /// The host at which proxies are reached is not usable.
    #[error("cannot resolve `{host}`, where the proxies should be reached: {why}")]
    DialHost {
        /// The host.
        host: String,
        /// What is wrong with it.
        why: String,
    },
    /// The self-test could not open its own echo server.
    #[error("the self-test cannot listen on {host}: {source}")]
    Bind {
        /// Our own address.
        host: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// Attributes that crash a Toxiproxy.
    #[error(transparent)]
    BadToxic(#[from] BadToxic),
}

impl ChaosError {
    /// Whether the server has stopped working as a whole: no verdict can rest on it any more.
    pub fn is_wedged(&self) -> bool {
        matches!(self, Self::TimedOut { .. } | Self::Refused { status: 503, .. })
    }
}
