//! A target file as it is written. Words are read later, so that all that are wrong are told at once.

use serde::Deserialize;
use serde_json::Value;

use crate::text::{Entries, OneOrMore, Spanned};

/// A text with its place.
pub(super) type Text = Spanned<String>;

/// One status or several, with their place.
pub(super) type Statuses = Spanned<OneOrMore>;

/// One word or several, with their place.
pub(super) type Words = Spanned<OneOrMore>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TargetFile {
    pub(super) target: Text,
    pub(super) profile: Option<Text>,
    pub(super) base_url: Option<Text>,
    pub(super) nodes: Option<Spanned<Vec<Text>>>,
    #[serde(default)]
    pub(super) tenants: Entries<TenantFile>,
    pub(super) operations: Option<Spanned<Entries<Spanned<OperationFile>>>>,
    #[serde(default)]
    pub(super) policy: PolicyFile,
    #[serde(default)]
    pub(super) hooks: HooksFile,
    #[serde(default)]
    pub(super) limits: LimitsFile,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TenantFile {
    #[serde(default)]
    pub(super) headers: Entries<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OperationFile {
    pub(super) request: Text,
    pub(super) json: Option<Spanned<Value>>,
    #[serde(default)]
    pub(super) headers: Entries<Text>,
    #[serde(default)]
    pub(super) variants: Entries<Spanned<Value>>,
    pub(super) success: Option<Statuses>,
    pub(super) identity: Option<Text>,
    pub(super) effects: Option<EffectsFile>,
    #[serde(default)]
    pub(super) policy: PolicyFile,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EffectsFile {
    pub(super) get: Text,
    pub(super) count: Text,
    pub(super) id: Option<Text>,
    pub(super) quiet: Option<Text>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyFile {
    #[serde(default)]
    pub(super) key: KeyFile,
    pub(super) in_flight: Option<Text>,
    pub(super) in_flight_status: Option<Statuses>,
    pub(super) mismatch: Option<Text>,
    pub(super) mismatch_status: Option<Statuses>,
    pub(super) fingerprint: Option<Text>,
    #[serde(default)]
    pub(super) replay: ReplayFile,
    pub(super) failure_before_effect: Option<Text>,
    pub(super) failure_after_effect: Option<Text>,
    pub(super) validation_failure: Option<Text>,
    pub(super) retention: Option<Text>,
    pub(super) expired_key: Option<Text>,
    pub(super) lease: Option<Text>,
    pub(super) in_flight_wait: Option<Text>,
    pub(super) in_flight_retry_after: Option<Text>,
    pub(super) fingerprint_parts: Option<Words>,
    pub(super) fingerprint_headers: Option<Text>,
    pub(super) auth_failure: Option<Text>,
    pub(super) rate_limit: Option<Text>,
    pub(super) business_failure: Option<Text>,
    pub(super) redirect: Option<Text>,
    pub(super) unknown_outcome: Option<Text>,
    pub(super) retention_max: Option<Text>,
    pub(super) retention_from: Option<Text>,
    pub(super) lease_renewed: Option<Text>,
    pub(super) crash: Option<Text>,
    pub(super) scope: Option<Words>,
    pub(super) store_down: Option<Text>,
    pub(super) error_format: Option<Text>,
    pub(super) error_code: Option<Text>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyFile {
    pub(super) header: Option<Text>,
    pub(super) syntax: Option<Text>,
    pub(super) required: Option<Text>,
    pub(super) missing_status: Option<Statuses>,
    pub(super) malformed: Option<Text>,
    pub(super) malformed_status: Option<Statuses>,
    pub(super) place: Option<Text>,
    pub(super) format: Option<Text>,
    pub(super) min_length: Option<Text>,
    pub(super) max_length: Option<Text>,
    pub(super) empty: Option<Text>,
    pub(super) quotes: Option<Text>,
    pub(super) methods: Option<Words>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplayFile {
    pub(super) status: Option<Statuses>,
    pub(super) keeps: Option<Vec<Text>>,
    pub(super) marker: Option<Text>,
    pub(super) kind: Option<Text>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HooksFile {
    pub(super) slow: Option<Spanned<HookFile>>,
    pub(super) fail: Option<Spanned<HookFile>>,
    pub(super) die: Option<Spanned<HookFile>>,
    pub(super) advance_clock: Option<Spanned<HookFile>>,
}

/// Header fields on the request it concerns, or a request of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HookFile {
    pub(super) header: Option<Spanned<Entries<Text>>>,
    pub(super) request: Option<Text>,
    pub(super) json: Option<Spanned<Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitsFile {
    pub(super) rate: Option<Text>,
    pub(super) requests: Option<Text>,
    pub(super) timeout: Option<Text>,
    pub(super) concurrency: Option<Text>,
}
