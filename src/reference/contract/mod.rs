//! What the server promises about its keys: every choice that the draft leaves to the owner of a resource.
//!
//! [`Contract`] is plain data. It is set by switches, which have a name and a value as text (`mismatch=409`), so that the
//! command line, a provider's profile and the target file of a run all say it in the same words:
//!
//! | part | job |
//! |---|---|
//! | `values` | the values that a switch may have |
//! | `switches` | the table of switches: name, values, help |
//! | `profiles` | the documented contracts of providers, with their sources and dates |
//! | `rules` | what a contract makes of requests, endings and answers |
//! | `target` | the policy section of a target file that says what a contract says |

mod profiles;
mod rules;
mod switches;
mod target;
mod values;

pub use profiles::{PROFILES, Profile, UnknownProfile};
pub(in crate::reference) use rules::Kept;
pub use switches::{BadSwitch, SWITCHES, Setting, Switch};
pub use target::{policy_yaml, untestable};
pub use values::{
    Canon, Charset, Crash, Different, Disposal, Empty, Expired, Failures, Format, Inputs, KeyFormat, Location,
    Malformed, MarkerField, Methods, Open, Other, Place, ReplayKind, RetentionBase, ScopeParts, Status, StatusOr,
    Syntax, Waits,
};

use std::time::Duration;

/// What a server documents about its keys. The default is the draft's recommendation, and otherwise the strict choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    /// Where the key travels, and what it may look like.
    pub key: KeyContract,
    /// The methods whose requests may carry a key.
    pub methods: Methods,
    /// What a request with another method gets that carries a key.
    pub methods_other: Other,
    /// What of a request is compared.
    pub inputs: Inputs,
    /// How bodies are compared.
    pub canon: Canon,
    /// Members of the body that are left out of the comparison, such as `/metadata`.
    pub ignored: Vec<String>,
    /// What a different request under a used key gets.
    pub mismatch: StatusOr<Different>,
    /// What a duplicate gets while the first request is being worked on.
    pub in_flight: StatusOr<Waits>,
    /// How long a duplicate waits at most, where it waits.
    pub in_flight_wait: Duration,
    /// Whether a refused duplicate is told when to come back.
    pub retry_after: bool,
    /// Whether a different request is told of the conflict, and not of the mismatch, while the first one runs.
    pub in_flight_first: bool,
    /// What becomes of the key after a refusal for the credentials.
    pub unauthorized: Disposal,
    /// What becomes of the key after a failed validation.
    pub validation: Disposal,
    /// What becomes of the key after a final refusal of the business, such as a declined card.
    pub declined: Disposal,
    /// What becomes of the key when the handler fails before any effect.
    pub failure_before: Failures,
    /// What becomes of the key when the handler fails after its effect.
    pub failure_after: Failures,
    /// What becomes of the key when the server stops before the outcome is known.
    pub unknown: Failures,
    /// What a repeat gets.
    pub replay: ReplayKind,
    /// The status of a replay, if it is not that of the original.
    pub replay_status: Status,
    /// The field that marks a replay.
    pub marker: MarkerField,
    /// Fields that a replay does not have, in lower case.
    pub dropped: Vec<String>,
    /// What tells keys of one name apart.
    pub scope: ScopeParts,
    /// How long a result is kept.
    pub retention: Duration,
    /// What that time counts from.
    pub retention_base: RetentionBase,
    /// What a key gets after that time.
    pub expired: StatusOr<Expired>,
    /// How long a claim keeps others out.
    pub lease: Duration,
    /// What becomes of the key of a dead owner.
    pub crash: Crash,
    /// What a request gets while the store of the keys cannot be used.
    pub store_down: StatusOr<Open>,
    /// How errors are written.
    pub errors: Format,
    /// Whether the work goes on when the client hangs up.
    pub finishes: bool,
    /// Whether streamed answers are stored. Where they are not, a repeat runs again.
    pub stores_streams: bool,
}

/// Where the key travels, and what it may look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyContract {
    /// Where the key is.
    pub location: Location,
    /// How it is written there.
    pub syntax: Syntax,
    /// Whether a quoted key and the same characters without quotes are one key, where both are taken.
    pub quotes_equal: bool,
    /// The shortest key, in characters.
    pub min: usize,
    /// The longest key, in characters.
    pub max: usize,
    /// The characters that a key may have.
    pub charset: Charset,
    /// The format that a key must have.
    pub format: KeyFormat,
    /// Whether an empty key is one.
    pub empty: Empty,
    /// What is done with a key that breaks one of these rules.
    pub malformed: Malformed,
    /// The status of that refusal.
    pub malformed_status: Status,
    /// Whether a request must have a key.
    pub required: bool,
    /// The status of the refusal of a request without one.
    pub missing_status: Status,
}

impl Default for Contract {
    fn default() -> Self {
        Self {
            key: KeyContract::default(),
            methods: Methods(vec!["POST".into(), "PATCH".into()]),
            methods_other: Other::Ignore,
            inputs: Inputs::MethodPathQueryBody,
            canon: Canon::Json,
            ignored: Vec::new(),
            mismatch: StatusOr::Status(422),
            in_flight: StatusOr::Status(409),
            in_flight_wait: Duration::from_secs(10),
            retry_after: true,
            in_flight_first: false,
            unauthorized: Disposal::Release,
            validation: Disposal::Release,
            declined: Disposal::Store,
            failure_before: Failures::Operation,
            failure_after: Failures::Operation,
            unknown: Failures::Release,
            replay: ReplayKind::Verbatim,
            replay_status: Status::Same,
            marker: MarkerField(Some(("idempotent-replayed".into(), "true".into()))),
            dropped: Vec::new(),
            scope: ScopeParts { tenant: true, method: true, route: true },
            retention: Duration::from_secs(24 * 60 * 60),
            retention_base: RetentionBase::Completed,
            expired: StatusOr::Word(Expired::New),
            lease: Duration::from_secs(30),
            crash: Crash::Takeover,
            store_down: StatusOr::Status(503),
            errors: Format::Problem,
            finishes: true,
            stores_streams: true,
        }
    }
}

impl Default for KeyContract {
    fn default() -> Self {
        Self {
            location: Location { place: Place::Header, name: "idempotency-key".into() },
            syntax: Syntax::SfString,
            quotes_equal: true,
            min: 1,
            max: 255,
            charset: Charset::Ascii,
            format: KeyFormat::Any,
            empty: Empty::Reject,
            malformed: Malformed::Reject,
            malformed_status: Status::Is(400),
            required: true,
            missing_status: Status::Is(400),
        }
    }
}

impl Contract {
    /// The contract with more settings, in their order.
    #[must_use]
    pub fn with(mut self, settings: &[Setting]) -> Self {
        for setting in settings {
            setting.apply(&mut self);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn settings_are_applied_in_their_order() {
        let settings: Vec<Setting> =
            ["mismatch=409", "mismatch=400", "inflight=wait"].iter().map(|text| text.parse().unwrap()).collect();
        let contract = Contract::default().with(&settings);
        assert_eq!(contract.mismatch, StatusOr::Status(400));
        assert_eq!(contract.in_flight, StatusOr::Word(Waits::Wait));
        assert_eq!(
            Contract { mismatch: StatusOr::Status(422), in_flight: StatusOr::Status(409), ..contract },
            Contract::default()
        );
    }
}
