//! Rules that the count of effects decides.

use std::collections::BTreeSet;

use super::{Check, found};
use crate::{
    history::{Attempt, End, NOBODY, ProbeResult},
    judge::{
        Decision, Finding,
        effects::{self, View},
        seen::{Seen, answer, fails, outside, start, truncated},
    },
    spec::id,
    target::Mismatch,
};

/// At most one effect per tenant and key within a life of the key.
pub(super) struct AtMostOneEffect;

impl Check for AtMostOneEffect {
    fn check(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let intents: BTreeSet<_> = seen.sent().filter(|a| a.key.is_some()).map(|a| a.intent.as_str()).collect();
        // What an API lets nobody do may be seen among the effects of everybody.
        let open = |intent: &&str| {
            seen.successes().all(|success| success.attempt.intent != **intent || success.attempt.tenant != NOBODY)
        };
        intents.into_iter().filter(open).flat_map(|intent| intent_findings(seen, intent)).collect()
    }
}

fn intent_findings(seen: &Seen<'_>, intent: &str) -> Vec<Finding> {
    let Ok(counts) = effects::counts(seen, intent) else { return Vec::new() };
    let tenants: Vec<_> = effects::tenants(seen, intent).into_iter().collect();
    let of = |tenant: &str| -> Vec<&Attempt> {
        seen.sent().filter(|attempt| attempt.intent == intent && attempt.tenant == tenant).collect()
    };
    match effects::view(&counts) {
        View::Own => {
            let each = tenants.iter().zip(&counts);
            each.filter_map(|(tenant, count)| decide(seen, &of(tenant), count.effects, count.effects)).collect()
        }
        // Tenants see each other's effects, so only the sum over all of them says something.
        View::Shared(total) => {
            let all: Vec<_> = tenants.iter().flat_map(|tenant| of(tenant)).collect();
            decide(seen, &all, *total.start(), *total.end()).into_iter().collect()
        }
    }
}

/// Compares a count with the most that is right for these attempts of one intent.
fn decide(seen: &Seen<'_>, attempts: &[&Attempt], least: u64, most: u64) -> Option<Finding> {
    let from = attempts.iter().map(|attempt| start(attempt)).min()?;
    let to = attempts.iter().map(|attempt| attempt.timing.ended).max()?;
    let tenants = attempts.iter().map(|attempt| &attempt.tenant).collect::<BTreeSet<_>>().len() as u64;
    let allowed = seen.lives(from, to)?.saturating_mul(tenants);
    let others = other_executions(seen, attempts);
    let intent = &attempts[0].intent;
    if least <= allowed.saturating_add(others) {
        let tested = attempts.len() >= 2 && most <= allowed.saturating_add(others);
        let message = format!("{} attempts with key `{intent}` left {least} effects", attempts.len());
        return tested.then(|| found(id::AT_MOST_ONE_EFFECT, Decision::Held, message, &[]));
    }
    let extra = least - allowed - others;
    let failed = attempts.iter().filter(|attempt| failed_after(attempt)).count() as u64;
    let (rule, decision, what) = if failed >= extra {
        // Documenting that a failure frees the key does not make the second effect right: an invariant is broken.
        let documented = seen.frees_after_effect();
        let what = if documented { " (the API documents that such a failure frees the key)" } else { "" };
        let what = format!("after a failure the effect was repeated{what}");
        (id::FAILURE_AFTER_EFFECT_NOT_REPEATED, Decision::Broken, what)
    } else {
        (id::AT_MOST_ONE_EFFECT, Decision::Broken, "the work was done again".to_owned())
    };
    let message = format!("key `{intent}` has taken effect {least} times, where {allowed} is right: {what}");
    let mut finding = found(rule, decision, message, attempts);
    finding.observed.push(format!("effects of {intent}: {least}"));
    Some(finding)
}

/// Executions of another payload, which count for `different-request-not-served`.
fn other_executions(seen: &Seen<'_>, attempts: &[&Attempt]) -> u64 {
    let holder = attempts.iter().find(|a| seen.success(a).is_some()).unwrap_or(&attempts[0]);
    let documented = seen.policy.mismatch.is(&Mismatch::Execute);
    let others = attempts.iter().filter(|a| seen.different_request(a, holder));
    let executed = others.filter(|a| {
        let served = seen.success(a).is_some_and(|success| {
            let holder = seen.success(holder).and_then(|holder| holder.identity);
            success.identity.is_none() || success.identity != holder
        });
        served || (documented && seen.may_have_executed_unseen(a))
    });
    executed.count() as u64
}

/// Whether a failure of the server, which may have come after the effect, ended this attempt.
fn failed_after(attempt: &Attempt) -> bool {
    match &attempt.end {
        End::Answered => answer(attempt).is_some_and(|response| response.status >= 500) && !fails(attempt, "before"),
        _ => attempt.fault.is_none() && fails(attempt, "after"),
    }
}

/// A success has taken effect.
pub(super) struct AcknowledgedEffect;

impl Check for AcknowledgedEffect {
    fn check(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for success in seen.successes() {
            let attempt = success.attempt;
            let Ok(counts) = effects::counts(seen, &attempt.intent) else { continue };
            let Some(own) = seen.count(&attempt.intent, &attempt.tenant) else { continue };
            let sum = counts.iter().map(|count| count.effects).fold(0, u64::saturating_add);
            let listed = |identity: &str| counts.iter().any(|count| count.ids.iter().any(|id| id == identity));
            // The probe's ids are the answers' ids only if at least one of them is seen in both.
            let comparable = seen.successes().any(|other| other.identity.is_some_and(listed));
            let missing = sum == 0 || (own.effects == 0 && comparable && !success.identity.is_some_and(listed));
            if !missing {
                findings.push(found(
                    id::ACKNOWLEDGED_EFFECT_EXISTS,
                    Decision::Held,
                    format!("`{}` was answered with success and its effect exists", attempt.name),
                    &[],
                ));
                continue;
            }
            // 202 promises a result for later, and the probe may have been too early.
            let decision = if success.response.status == 202 { Decision::Undecided } else { Decision::Broken };
            let message =
                format!("`{}` was answered {} and its effect does not exist", attempt.name, success.response.status);
            findings.push(found(id::ACKNOWLEDGED_EFFECT_EXISTS, decision, message, &[attempt]));
        }
        findings
    }
}

/// Requests that were refused for their missing key, or that never arrived whole, have no effect.
pub(super) struct RefusedOrTruncated;

impl Check for RefusedOrTruncated {
    fn check(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for attempt in seen.sent() {
            let alone = seen.sent().filter(|other| other.intent == attempt.intent && other.tenant == attempt.tenant);
            let alone = alone.count() == 1;
            let last = seen.count(&attempt.intent, &attempt.tenant).map(|count| count.effects).filter(|_| alone);
            let refused = answer(attempt).is_some_and(|r| (400..500).contains(&r.status) && !outside(r.status));
            if attempt.key_field.is_none() && refused {
                let rule = id::MISSING_KEY_NO_EFFECT;
                findings.extend(last.map(|count| no_effect(rule, attempt, count, "was refused")));
            }
            if truncated(attempt) {
                let rule = id::TRUNCATED_REQUEST_NOT_EXECUTED;
                let count = last.or_else(|| right_after(seen, attempt));
                findings
                    .extend(count.map(|count| no_effect(rule, attempt, count, "was cut in the middle of its body")));
            }
        }
        findings
    }
}

fn no_effect(rule: crate::spec::RuleId, attempt: &Attempt, count: u64, what: &str) -> Finding {
    let decision = if count == 0 { Decision::Held } else { Decision::Broken };
    let message = format!("`{}` {what} and has taken effect {count} times", attempt.name);
    found(rule, decision, message, if count == 0 { &[] } else { std::slice::from_ref(&attempt) })
}

/// The count right after an attempt, if no other attempt of its intent was begun before that count was over.
fn right_after(seen: &Seen<'_>, attempt: &Attempt) -> Option<u64> {
    let count = effects::after(seen.history, attempt)?;
    let purpose = format!("after {}", attempt.name);
    let probe = seen
        .history
        .probes
        .iter()
        .find(|probe| probe.purpose == purpose && matches!(probe.result, ProbeResult::Counted(_)))?;
    let others = seen.sent().filter(|other| other.intent == attempt.intent && !std::ptr::eq(*other, attempt));
    others.into_iter().all(|other| start(other) > probe.ended).then_some(count)
}
