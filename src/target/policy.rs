//! What the draft leaves to the resource owner, as this API documents it.

use http::{HeaderName, HeaderValue, Method};
use serde_json_path::JsonPath;

use super::{
    Crash, EmptyKey, ErrorFormat, FingerprintHeaders, FingerprintPart, KeyFormat, KeyPlace, KeyQuotes, ReplayKind,
    RetentionFrom, ScopePart, StatusSet, StoreDown,
};
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
    /// The longest time that a duplicate waits.
    pub in_flight_wait: Documented<Span>,
    /// Whether an in-flight refusal has a Retry-After field.
    pub in_flight_retry_after: Documented<bool>,
    /// Which parts of a request are compared.
    pub fingerprint_parts: Documented<Vec<FingerprintPart>>,
    /// Whether volatile header fields are compared.
    pub fingerprint_headers: Documented<FingerprintHeaders>,
    /// What becomes of the key when the caller is refused (401, 403).
    pub auth_failure: Documented<Disposal>,
    /// What becomes of the key when a limit strikes (429).
    pub rate_limit: Documented<Disposal>,
    /// What becomes of the key when the business refuses after the work began, such as a declined card.
    pub business_failure: Documented<Disposal>,
    /// What becomes of a redirect.
    pub redirect: Documented<Disposal>,
    /// What becomes of the key when nobody knows how the work ended.
    pub unknown_outcome: Documented<Disposal>,
    /// The longest time that a completed key is kept; undocumented where the retention is a floor.
    pub retention_max: Documented<Span>,
    /// From when the retention is counted.
    pub retention_from: Documented<RetentionFrom>,
    /// Whether a running owner renews its lease.
    pub lease_renewed: Documented<bool>,
    /// What becomes of a key whose owner has died.
    pub crash: Documented<Crash>,
    /// What separates two keys of the same characters.
    pub scope: Documented<Vec<ScopePart>>,
    /// What is done while the store of keys cannot be reached.
    pub store_down: Documented<StoreDown>,
    /// How refusals are written.
    pub error_format: Documented<ErrorFormat>,
    /// What tells one refusal from another in a JSON body.
    pub error_code: Option<JsonPath>,
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
    /// Where the key travels.
    pub place: KeyPlace,
    /// What a key may look like.
    pub format: Documented<KeyFormat>,
    /// The fewest characters of a key.
    pub min_length: Documented<u32>,
    /// The most characters of a key.
    pub max_length: Documented<u32>,
    /// What is done with an empty key.
    pub empty: Documented<EmptyKey>,
    /// Whether quotes around a key count.
    pub quotes: Documented<KeyQuotes>,
    /// The methods that honour keys.
    pub methods: Documented<Vec<Method>>,
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
    /// What a replay shows.
    pub kind: Documented<ReplayKind>,
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
    /// The key is held: a retry is refused until the retention ends.
    Hold,
    /// A retry goes on where the work had stopped.
    Resume,
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
                place: KeyPlace::Header,
                format: Documented::Unknown,
                min_length: Documented::Unknown,
                max_length: Documented::Unknown,
                empty: Documented::Unknown,
                quotes: Documented::Unknown,
                methods: Documented::Unknown,
            },
            in_flight: Documented::Unknown,
            in_flight_status: StatusSet::of(&[409]),
            mismatch: Documented::Unknown,
            mismatch_status: StatusSet::of(&[422]),
            fingerprint: Documented::Unknown,
            replay: ReplayPolicy {
                status: ReplayStatus::Same,
                keeps: vec![http::header::LOCATION, http::header::CONTENT_TYPE],
                kind: Documented::Unknown,
                marker: None,
            },
            failure_before_effect: Documented::Unknown,
            failure_after_effect: Documented::Unknown,
            validation_failure: Documented::Unknown,
            retention: Documented::Unknown,
            expired_key: Documented::Unknown,
            lease: Documented::Unknown,
            in_flight_wait: Documented::Unknown,
            in_flight_retry_after: Documented::Unknown,
            fingerprint_parts: Documented::Unknown,
            fingerprint_headers: Documented::Unknown,
            auth_failure: Documented::Unknown,
            rate_limit: Documented::Unknown,
            business_failure: Documented::Unknown,
            redirect: Documented::Unknown,
            unknown_outcome: Documented::Unknown,
            retention_max: Documented::Unknown,
            retention_from: Documented::Unknown,
            lease_renewed: Documented::Unknown,
            crash: Documented::Unknown,
            scope: Documented::Unknown,
            store_down: Documented::Unknown,
            error_format: Documented::Unknown,
            error_code: None,
        }
    }
}
