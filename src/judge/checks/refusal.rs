//! Rules about how a duplicate or a different request is refused.

use super::{Check, found};
use crate::{
    history::Attempt,
    judge::{
        Decision, Finding, overlap,
        seen::{Seen, answer, before, outside},
    },
    spec::id,
    suite::Word,
    target::{InFlight, Mismatch},
};

/// What a duplicate gets while the first attempt runs.
pub(super) struct InFlightAnswer;

impl Check for InFlightAnswer {
    fn check(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (a, b) in seen.pairs() {
            if a.payload_sha256 != b.payload_sha256 || !overlap::overlapped(a, b) {
                continue;
            }
            for (winner, loser) in [(a, b), (b, a)] {
                findings.extend(loses(seen, winner, loser));
            }
        }
        findings
    }
}

/// What the answer to an attempt that overlapped with a success of its key shows.
fn loses(seen: &Seen<'_>, winner: &Attempt, loser: &Attempt) -> Vec<Finding> {
    let (Some(success), Some(response)) = (seen.success(winner), answer(loser)) else { return Vec::new() };
    if let Some(second) = seen.success(loser) {
        return match success.identity.zip(second.identity) {
            Some((one, other)) if one == other => {
                let message = format!("`{}` overlapped with `{}` and was given its result", loser.name, winner.name);
                vec![found(id::CONCURRENT_DUPLICATE_REFUSED_OR_WAITS, Decision::Held, message, &[])]
            }
            Some(_) if seen.within_retention(winner, loser) => {
                let message = format!("`{}` overlapped with `{}` and was executed as well", loser.name, winner.name);
                vec![found(id::CONCURRENT_DUPLICATE_REFUSED_OR_WAITS, Decision::Broken, message, &[winner, loser])]
            }
            _ => Vec::new(),
        };
    }
    if seen.outlived_lease(loser) {
        return Vec::new();
    }
    let status = response.status;
    let known = seen.words(loser).may_be(Word::InFlight);
    // Another refusal of a payload that the API accepts, from beginning to end within the winner's flight.
    let other =
        (400..500).contains(&status) && !outside(status) && overlap::inside(winner, loser) && alone(seen, loser);
    if !known && !other {
        return Vec::new();
    }
    let message = format!("`{}` was answered {status} while `{}` was running", loser.name, winner.name);
    let draft = match status {
        409 => Decision::Held,
        _ if known => Decision::Deviation,
        _ => Decision::Broken,
    };
    let contract = match seen.policy.in_flight.known() {
        Some(InFlight::Wait) => Some(Decision::Broken),
        Some(InFlight::Refuse) if known => Some(Decision::Held),
        Some(InFlight::Refuse) => Some(Decision::Broken),
        None => None,
    };
    let mut findings = vec![found(id::IN_FLIGHT_IS_409, draft, message.clone(), &shown(draft, winner, loser))];
    if known {
        findings.push(found(id::CONCURRENT_DUPLICATE_REFUSED_OR_WAITS, Decision::Held, message.clone(), &[]));
    }
    if let Some(contract) = contract {
        findings.push(found(id::IN_FLIGHT_AS_DOCUMENTED, contract, message, &shown(contract, winner, loser)));
    }
    findings
}

fn shown<'a>(decision: Decision, winner: &'a Attempt, loser: &'a Attempt) -> Vec<&'a Attempt> {
    if decision == Decision::Held { Vec::new() } else { vec![winner, loser] }
}

/// Whether no hook and no fault on any attempt of the key may be the reason of an odd answer.
fn alone(seen: &Seen<'_>, attempt: &Attempt) -> bool {
    seen.accepted(attempt) && seen.rivals(attempt).all(|other| other.fault.is_none() && other.hooks == attempt.hooks)
}

/// What a different payload gets under a used key.
pub(super) struct MismatchAnswer;

impl Check for MismatchAnswer {
    fn check(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (a, b) in seen.pairs() {
            let used = seen.success(a).is_some() && before(a, b) && seen.within_retention(a, b);
            if used && seen.different_request(a, b) {
                findings.extend(reused(seen, a, b));
            }
        }
        findings
    }
}

fn reused(seen: &Seen<'_>, first: &Attempt, second: &Attempt) -> Vec<Finding> {
    let Some(response) = answer(second).filter(|response| !outside(response.status)) else { return Vec::new() };
    let status = response.status;
    let pair = [first, second];
    let contract = |decision: Decision, message: String| {
        let shown = if decision == Decision::Held { &pair[..0] } else { &pair[..] };
        found(id::MISMATCH_AS_DOCUMENTED, decision, message, shown)
    };
    let documented = seen.policy.mismatch.known();
    if let Some(success) = seen.success(second) {
        let same = seen.success(first).and_then(|first| first.identity).zip(success.identity).map(|(a, b)| a == b);
        let agrees = match documented {
            Some(Mismatch::Replay) => same,
            Some(Mismatch::Execute) => same.map(|same| !same),
            Some(Mismatch::Refuse) => Some(false),
            None => None,
        };
        let message = format!("`{}` with another payload was answered {status}", second.name);
        let decided = agrees.map(|agrees| if agrees { Decision::Held } else { Decision::Broken });
        return decided.map(|decision| contract(decision, message)).into_iter().collect();
    }
    // Other refusals of other payloads may be about the payload itself. `changed` is one that the API accepts.
    let about_key = seen.is(second, Word::Mismatch)
        || seen.policy.mismatch_status.contains(status)
        || second.role == "changed"
        || seen.accepted(second);
    if !(400..500).contains(&status) || !about_key {
        return Vec::new();
    }
    let message = format!("`{}` with another payload was answered {status}", second.name);
    let known = seen.policy.mismatch_status.contains(status);
    let draft = match status {
        422 => Decision::Held,
        _ if known => Decision::Deviation,
        _ => Decision::Broken,
    };
    let shown = if draft == Decision::Held { &pair[..0] } else { &pair[..] };
    let mut findings = vec![found(id::MISMATCH_IS_422, draft, message.clone(), shown)];
    findings.extend(documented.map(|documented| match documented {
        Mismatch::Refuse if known => contract(Decision::Held, message),
        _ => contract(Decision::Broken, message),
    }));
    findings
}

/// A request that was refused for its credentials leaves the key to others.
///
/// A later refusal proves that it did not only if it is the first one over again, and the caller that it was told to is
/// one that the API knows.
pub(super) struct RefusedCredentials;

impl Check for RefusedCredentials {
    fn check(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let rule = id::REFUSAL_BEFORE_HANDLER_LEAVES_KEY;
        let refused = |attempt: &&Attempt| {
            attempt.key.is_some() && answer(attempt).is_some_and(|answer| [401, 403].contains(&answer.status))
        };
        let mut findings = Vec::new();
        for first in seen.sent().filter(refused) {
            let others = seen.sent().filter(|a| a.key == first.key && a.tenant != first.tenant && before(first, a));
            for later in others {
                let (Some(was), Some(is)) = (answer(first), answer(later)) else { continue };
                let known = seen.successes().any(|success| success.attempt.tenant == later.tenant);
                let same = was.status == is.status && was.body.sha256 == is.body.sha256;
                if seen.success(later).is_some() {
                    let message =
                        format!("`{}` was served under the key that `{}` was refused with", later.name, first.name);
                    findings.push(found(rule, Decision::Held, message, &[]));
                } else if same && known {
                    let message = format!(
                        "`{}` was given the refusal of `{}`, although the API knows tenant {}",
                        later.name, first.name, later.tenant
                    );
                    findings.push(found(rule, Decision::Broken, message, &[first, later]));
                }
            }
        }
        findings
    }
}
