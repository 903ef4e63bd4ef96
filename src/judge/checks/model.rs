//! What the search for a model finds and no pair of attempts shows.

use super::found;
use crate::{
    history::Attempt,
    judge::{
        Decision, Finding,
        model::{self, Accusation, Crossing, Level, Ruling},
        seen::Seen,
    },
    spec::id,
};

/// Whether every key's history can be explained by a server that is right. `others` are the findings of the checks:
/// what they have said of a key is not said again.
///
/// What only leaves the documented policy is for the rules of the contract to say, which know more of the case.
pub(in crate::judge) fn explained(seen: &Seen<'_>, others: &[Finding]) -> Vec<Finding> {
    let keys = model::partition(seen.history, &seen.schedule.operation);
    let crossings = model::crossings(&keys);
    let mut findings = Vec::new();
    for (place, key) in keys.iter().enumerate() {
        let (ruling, accusation) = model::accuse(key, seen.history);
        let all: Vec<&Attempt> =
            key.attempts.iter().flatten().filter_map(|place| seen.history.attempts.get(*place)).collect();
        if ruling == Ruling::TooMuch {
            let message = format!("key `{}`: more orders of execution are possible than could be looked at", key.name);
            findings.push(found(id::ONE_RESULT_PER_KEY, Decision::Undecided, message, &[]));
        }
        let Some(accusation) = accusation.filter(|accusation| accusation.level > Level::Policy) else { continue };
        let said = |finding: &Finding| {
            matches!(finding.decision, Decision::Broken | Decision::Deviation)
                && all.iter().any(|attempt| finding.attempts.contains(&attempt.name))
        };
        if others.iter().any(said) {
            continue;
        }
        let suspected = crossings
            .iter()
            .any(|crossing| matches!(crossing, Crossing::RefusedForAnother { refused, .. } if refused.0 == place));
        findings.push(finding(seen, accusation, suspected));
    }
    findings
}

fn finding(seen: &Seen<'_>, accusation: Accusation, suspected: bool) -> Finding {
    let core: Vec<&Attempt> = accusation.core.iter().filter_map(|place| seen.history.attempts.get(*place)).collect();
    if suspected && accusation.level == Level::Refusal {
        let message = format!("{}; another tenant had used the key", accusation.message);
        return found(id::TENANTS_DO_NOT_SHARE_KEYS, Decision::Undecided, message, &core);
    }
    found(accusation.rule, Decision::Broken, accusation.message, &core)
}
