//! What the draft leaves to the resource owner, as this API documents it.

use http::{HeaderName, HeaderValue};

use super::StatusSet;
use crate::text::Span;

/// A value that the API's documentation states, or does not.
///
/// A rule that needs an undocumented value is inconclusive, never failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Documented<T> {
    /// The documentation says so.
    As(T),
    /// The documentation does not say.
    Unknown,
}

impl<T> Documented<T> {
    /// The documented value, if there is one.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::As(value) => Some(value),
            Self::Unknown => None,
        }
    }

    /// Whether this value is documented.
    pub fn is(&self, value: &T) -> bool
    where
        T: PartialEq,
    {
        self.known() == Some(value)
    }
}

/// Everything that an operation documents about its keys. The defaults are the draft's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Where the key travels, and what is done without one.
    pub key: KeyPolicy,
    /// What a duplicate gets while the first attempt runs.
    pub in_flight: Documented<InFlight>,
    /// The statuses of an in-flight refusal.
    pub in_flight_status: StatusSet,
    /// What a different payload under a used key gets.
    pub mismatch: Documented<Mismatch>,
    /// The statuses of a mismatch refusal.
    pub mismatch_status: StatusSet,
    /// How two payloads are compared.
    pub fingerprint: Documented<Fingerprint>,
    /// What a replay looks like.
    pub replay: ReplayPolicy,
    /// What becomes of the key when the handler fails (5xx) before the effect.
    pub failure_before_effect: Documented<Disposal>,
    /// What becomes of the key when the handler fails (5xx) after the effect.
    pub failure_after_effect: Documented<Disposal>,
    /// What becomes of the key when the request fails validation (4xx).
    pub validation_failure: Documented<Disposal>,
    /// How long a completed key is kept, at least.
    pub retention: Documented<Span>,
    /// What a key gets after the retention.
    pub expired_key: Documented<ExpiredKey>,
    /// How long a running owner holds the key before another may take it over.
    pub lease: Documented<Span>,
}

/// Where the key travels, and what is done without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPolicy {
    /// The request header field that carries the key.
    pub header: HeaderName,
    /// How a key is written.
    pub syntax: KeySyntax,
    /// Whether a request without a key is refused.
    pub required: Documented<bool>,
    /// The statuses of that refusal.
    pub missing_status: StatusSet,
    /// What is done with a key that is not well formed.
    pub malformed: Documented<MalformedKey>,
    /// The statuses of the refusal of a malformed key.
    pub malformed_status: StatusSet,
}

/// How a key is written in the header field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySyntax {
    /// A Structured Field String: in double quotes (draft section 2.1).
    SfString,
    /// The bare characters.
    Bare,
}

/// What is done with a malformed key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MalformedKey {
    /// The request is refused (RFC 9651 section 4.2 allows it).
    Refuse,
    /// The field is ignored, as if there were no key (RFC 8941 section 4.2).
    Ignore,
    /// The characters are taken as the key as they are.
    Accept,
}

/// What a duplicate gets while the first attempt runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InFlight {
    /// It is refused as a conflict (draft section 2.7).
    Refuse,
    /// It waits and gets the first attempt's answer.
    Wait,
}

/// What a different payload under a used key gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch {
    /// It is refused (draft section 2.7).
    Refuse,
    /// The payload is not compared: the first answer is replayed.
    Replay,
    /// It runs as an operation of its own.
    Execute,
}

/// How two payloads are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fingerprint {
    /// As JSON values: member order and spacing do not matter.
    Json,
    /// Byte by byte.
    Bytes,
}

/// What a replay looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayPolicy {
    /// The status of a replay.
    pub status: ReplayStatus,
    /// The header fields that a replay keeps.
    pub keeps: Vec<HeaderName>,
    /// The header field that marks a replay, if one is documented.
    pub marker: Option<(HeaderName, HeaderValue)>,
}

/// The status of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayStatus {
    /// That of the original.
    Same,
    /// Documented to be another one.
    Other(StatusSet),
}

/// What becomes of a key after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposal {
    /// The key is free again: a retry runs the operation.
    Release,
    /// The failure is stored: a retry gets it again.
    Store,
}

/// What a key gets after its retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpiredKey {
    /// It is new again: the operation runs.
    Fresh,
    /// It is refused.
    Refuse,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            key: KeyPolicy {
                header: HeaderName::from_static("idempotency-key"),
                syntax: KeySyntax::SfString,
                required: Documented::Unknown,
                missing_status: StatusSet::of(&[400]),
                malformed: Documented::Unknown,
                malformed_status: StatusSet::of(&[400]),
            },
            in_flight: Documented::Unknown,
            in_flight_status: StatusSet::of(&[409]),
            mismatch: Documented::Unknown,
            mismatch_status: StatusSet::of(&[422]),
            fingerprint: Documented::Unknown,
            replay: ReplayPolicy {
                status: ReplayStatus::Same,
                keeps: vec![http::header::LOCATION, http::header::CONTENT_TYPE],
                marker: None,
            },
            failure_before_effect: Documented::Unknown,
            failure_after_effect: Documented::Unknown,
            validation_failure: Documented::Unknown,
            retention: Documented::Unknown,
            expired_key: Documented::Unknown,
            lease: Documented::Unknown,
        }
    }
}
