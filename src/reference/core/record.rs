//! The record of one key, and the values it is made of.

use bytes::Bytes;
use std::time::Duration;

/// A point in time as a server tells it: milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The time `duration` after this one, in whole milliseconds; it stops at the end of time instead of wrapping.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// Who owns an execution. Every claim and every takeover brings a new one, so a token never names two executions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnerToken(pub u128);

impl OwnerToken {
    /// The token of a claim that was given back: nobody owns it, so nobody can renew, advance or complete it.
    pub const NOBODY: Self = Self(0);

    /// A token that nobody else has.
    #[must_use]
    pub fn fresh() -> Self {
        Self(uuid::Uuid::new_v4().as_u128())
    }
}

/// What a request asks for, as a SHA-256 digest. Two requests with one fingerprint mean the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// The digest in hexadecimal digits.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The answer of an execution, as it is stored and replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status code.
    pub status: u16,
    /// The fields that belong to the result, in order: names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte.
    pub body: Bytes,
}

/// How far an execution of several phases has come: the last phase that committed, and all that the later ones need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// The name of the recovery point.
    pub point: String,
    /// What was stored with it. Every input of the next call to an outside system is in here, because a call that is
    /// made again must say the same as the first one.
    pub saved: String,
}

/// What the server promises about a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// How long a claim keeps others out.
    pub lease: Duration,
    /// How long a result is kept, counted from its completion.
    pub retention: Duration,
}

/// What is known about a key in a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What the request that claimed the key asks for.
    pub fingerprint: Fingerprint,
    /// The execution that the record belongs to.
    pub owner: OwnerToken,
    /// Claimed or completed.
    pub state: State,
    /// From this time on the record counts as absent, whether or not it has been removed.
    pub expires: Time,
}

/// How far the execution of a record has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// An owner is at work, or died at work.
    Claimed {
        /// From this time on the key may be taken over.
        lease_until: Time,
        /// Where whoever takes over goes on. There is none before the first phase has committed.
        recovery: Option<Recovery>,
    },
    /// The execution has committed, and this is its answer.
    Completed(Answer),
}
