//! Rules about whose result an answer names.

use super::{Check, found};
use crate::{
    judge::{
        Decision, Finding,
        seen::{Seen, Success, before, outside, unique_looking},
    },
    spec::id,
    suite::Word,
    target::{Fingerprint, Mismatch},
};

/// Every success under a key names one and the same result.
pub(super) struct OneResult;

impl Check for OneResult {
    fn check(&self, seen: &Seen<'_>) -> Vec<Finding> {
        // Where other bytes are documented to run as an operation of their own, their result is another one.
        let apart = seen.policy.fingerprint.is(&Fingerprint::Bytes) && seen.policy.mismatch.is(&Mismatch::Execute);
        let mut findings = Vec::new();
        for (first, second) in seen.success_pairs() {
            let (a, b) = (first.attempt, second.attempt);
            if seen.different_request(a, b) || (apart && a.payload_sha256 != b.payload_sha256) {
                continue;
            }
            let (Some(one), Some(other)) = (first.identity, second.identity) else { continue };
            findings.push(if one == other {
                let message = format!("`{}` and `{}` were given the same result", a.name, b.name);
                found(id::ONE_RESULT_PER_KEY, Decision::Held, message, &[])
            } else {
                let message = format!("`{}` was given {one} and `{}` was given {other} under one key", a.name, b.name);
                found(id::ONE_RESULT_PER_KEY, Decision::Broken, message, &[a, b])
            });
        }
        findings
    }
}

/// No answer names the result of another tenant or key.
pub(super) struct ForeignAnswer;

impl Check for ForeignAnswer {
    fn check(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let successes: Vec<_> = seen.successes().filter(|success| success.identity.is_some()).collect();
        let mut findings = Vec::new();
        for (index, second) in successes.iter().enumerate() {
            for first in &successes[..index] {
                let cross_tenant = first.attempt.tenant != second.attempt.tenant;
                let keyed = first.attempt.key.is_some() && second.attempt.key.is_some();
                let cross_key = keyed && first.attempt.key != second.attempt.key;
                if !cross_tenant && !cross_key {
                    continue;
                }
                let (owner, other) =
                    if before(second.attempt, first.attempt) { (second, first) } else { (first, second) };
                let decision = if first.identity == second.identity {
                    foreign(seen, owner, other, cross_tenant)
                } else {
                    Decision::Held
                };
                let message = match decision {
                    Decision::Held => {
                        format!("`{}` and `{}` were given results of their own", owner.attempt.name, other.attempt.name)
                    }
                    _ => format!(
                        "`{}` (tenant {}, key {}) was given {}, which is the result of `{}` (tenant {}, key {})",
                        other.attempt.name,
                        other.attempt.tenant,
                        other.attempt.intent,
                        other.identity.unwrap_or_default(),
                        owner.attempt.name,
                        owner.attempt.tenant,
                        owner.attempt.intent
                    ),
                };
                let shown = [owner.attempt, other.attempt];
                let shown = if decision == Decision::Held { &shown[..0] } else { &shown[..] };
                findings.push(found(id::NO_FOREIGN_ANSWER, decision, message, shown));
            }
        }
        findings
    }
}

/// What equal identities of two tenants or keys come to. They prove something only if they cannot be two effects
/// that happen to be numbered alike, or an identity path that selects something that is not one.
fn foreign(seen: &Seen<'_>, owner: &Success<'_>, other: &Success<'_>, cross_tenant: bool) -> Decision {
    let identity = other.identity.unwrap_or_default();
    let count = |success: &Success<'_>| seen.count(&success.attempt.intent, &success.attempt.tenant);
    let (theirs, mine) = (count(owner), count(other));
    if mine.is_some_and(|count| count.effects == 0) {
        return Decision::Broken;
    }
    if !unique_looking(identity) {
        return Decision::Undecided;
    }
    // Two keys of one tenant are counted apart: if each has an effect, only the ids can tell whose was answered.
    let has = |count: &crate::history::Count| count.ids.iter().any(|id| id == identity);
    match mine {
        Some(mine) if !cross_tenant => {
            let proved = theirs.is_some_and(has) && !mine.ids.is_empty() && !has(mine);
            if proved { Decision::Broken } else { Decision::Undecided }
        }
        _ => Decision::Broken,
    }
}

/// A different request under a used key is not served.
pub(super) struct DifferentRequest;

impl Check for DifferentRequest {
    fn check(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (a, b) in seen.pairs() {
            if !seen.different_request(a, b) || !seen.within_retention(a, b) {
                continue;
            }
            let (first, second) = (seen.success(a), seen.success(b));
            if let (Some(first), Some(second)) = (first, second) {
                findings.push(served(seen, &first, &second));
            } else if first.is_some() && before(a, b) && seen.is(b, Word::Mismatch) {
                let message = format!("`{}` was refused, for another payload had used the key", b.name);
                findings.push(found(id::DIFFERENT_REQUEST_NOT_SERVED, Decision::Held, message, &[]));
            } else if first.is_some() && before(a, b) {
                let refused = crate::judge::seen::answer(b).is_some_and(|r| r.status < 500 && !outside(r.status));
                if refused {
                    let message = format!("`{}` was refused under a key that another payload had used", b.name);
                    findings.push(found(id::DIFFERENT_REQUEST_NOT_SERVED, Decision::Held, message, &[]));
                }
            }
        }
        findings
    }
}

fn served(seen: &Seen<'_>, first: &Success<'_>, second: &Success<'_>) -> Finding {
    let (a, b) = (first.attempt, second.attempt);
    let same = first.identity.zip(second.identity).map(|(one, other)| one == other);
    let documented = match seen.policy.mismatch.known() {
        Some(Mismatch::Replay) => same != Some(false),
        Some(Mismatch::Execute) => same != Some(true),
        Some(Mismatch::Refuse) | None => false,
    };
    let how = match same {
        Some(true) => format!("was answered with the result of `{}`", a.name),
        Some(false) => "was executed".to_owned(),
        None => "was answered with success".to_owned(),
    };
    let decision = if documented { Decision::Deviation } else { Decision::Broken };
    let message = format!(
        "`{}` {how}, though its payload differs from that of `{}` under the same key{}",
        b.name,
        a.name,
        if documented { ", as the API documents" } else { "" }
    );
    found(id::DIFFERENT_REQUEST_NOT_SERVED, decision, message, &[a, b])
}
