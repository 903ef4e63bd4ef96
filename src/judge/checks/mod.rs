//! What holds for every history, whatever the case expects. Each check looks at pairs and counts; the search for a
//! model of each key's whole history adds what they do not see.

mod effects;
mod form;
mod identity;
mod key;
mod model;
mod order;
mod refusal;
mod replay;

pub(super) use model::explained;

use super::{Decision, Finding, seen::Seen, words};
use crate::{history::Attempt, spec::RuleId};

/// A rule, or a few close ones, decided from what was seen.
///
/// A check reports what this history decides, and what it comes close to deciding and does not; it is silent about
/// everything else.
pub trait Check: Sync {
    /// What the history decides.
    fn check(&self, seen: &Seen<'_>) -> Vec<Finding>;
}

/// All checks of pairs and counts.
pub static CHECKS: &[&dyn Check] = &[
    &effects::AtMostOneEffect,
    &effects::AcknowledgedEffect,
    &effects::RefusedOrTruncated,
    &identity::OneResult,
    &identity::ForeignAnswer,
    &identity::DifferentRequest,
    &replay::Fidelity,
    &replay::Marker,
    &order::ReplayReturns,
    &order::ServerErrors,
    &order::Wedged,
    &refusal::InFlightAnswer,
    &refusal::MismatchAnswer,
    &refusal::RefusedCredentials,
    &key::MissingKey,
    &key::Effect,
    &form::ProblemJson,
    &form::Refusals,
    &form::Date,
];

/// A finding about some attempts.
fn found(rule: RuleId, decision: Decision, message: String, attempts: &[&Attempt]) -> Finding {
    Finding {
        rule,
        decision,
        message,
        // The rule itself says what would have been right.
        expected: Vec::new(),
        observed: attempts.iter().map(|attempt| words::line(attempt)).collect(),
        attempts: attempts.iter().map(|attempt| attempt.name.clone()).collect(),
        place: None,
    }
}
