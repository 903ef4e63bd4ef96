//! Rules about what comes after a success or a failure.

use super::{Check, found};
use crate::{
    history::{Attempt, End},
    judge::{
        Decision, Finding, classify, overlap,
        seen::{Seen, answer, before, fails, micros, outside, start},
    },
    spec::id,
    suite::Word,
    target::ReplayStatus,
};

/// A retry after a success is answered with its result.
pub(super) struct ReplayReturns;

impl Check for ReplayReturns {
    fn check(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (a, b) in seen.pairs() {
            let same = a.payload_sha256 == b.payload_sha256 && before(a, b) && seen.within_retention(a, b);
            let (Some(first), Some(response)) = (seen.success(a), answer(b)) else { continue };
            if !same {
                continue;
            }
            if seen.success(b).is_some_and(|second| first.identity.is_some() && second.identity == first.identity) {
                let message = format!("`{}` was answered with the result of `{}`", b.name, a.name);
                findings.push(found(id::REPLAY_RETURNS_RESULT, Decision::Held, message, &[]));
            } else if (300..500).contains(&response.status) && !outside(response.status) {
                if classify::hook_may_explain(seen, b) || seen.words(b).may_be(Word::InFlight) {
                    continue;
                }
                let other =
                    matches!(&seen.policy.replay.status, ReplayStatus::Other(set) if set.contains(response.status));
                let decision = if other { Decision::Deviation } else { Decision::Broken };
                let message = format!("`{}` was answered {} after `{}` had succeeded", b.name, response.status, a.name);
                findings.push(found(id::REPLAY_RETURNS_RESULT, decision, message, &[a, b]));
            }
        }
        findings
    }
}

/// A duplicate that loses the race, or comes late, is not answered with a server error.
pub(super) struct ServerErrors;

impl Check for ServerErrors {
    fn check(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for attempt in seen.sent().filter(|a| a.key.is_some() && a.hooks.is_empty() && a.fault.is_none()) {
            let Some(response) = answer(attempt) else { continue };
            let rivals: Vec<_> = seen.rivals(attempt).collect();
            // A failure that the API may have stored, or that was asked for, explains another one.
            let disturbed =
                |other: &&Attempt| fails(other, "") || other.fault.is_some() || !matches!(other.end, End::Answered);
            // The owner that a takeover has fenced off may well be told so by a server error.
            let outlived = seen.outlived_lease(attempt);
            let winner = rivals.iter().find(|other| {
                other.payload_sha256 == attempt.payload_sha256
                    && seen.success(other).is_some()
                    && start(other) <= start(attempt)
                    && !outlived
                    && (before(other, attempt) || overlap::overlapped(other, attempt))
                    && seen.within_retention(other, attempt)
            });
            let Some(winner) = winner.filter(|_| !rivals.iter().any(disturbed)) else { continue };
            if response.status < 500 {
                let message =
                    format!("`{}` lost against `{}` and was answered {}", attempt.name, winner.name, response.status);
                findings.push(found(id::NO_5XX_FOR_LOSERS, Decision::Held, message, &[]));
                continue;
            }
            let decision = if outside(response.status) { Decision::Undecided } else { Decision::Broken };
            let message = format!(
                "`{}` was answered {} while `{}` with its key succeeded",
                attempt.name, response.status, winner.name
            );
            findings.push(found(id::NO_5XX_FOR_LOSERS, decision, message, &[winner, attempt]));
        }
        findings
    }
}

/// A key does not stay in progress after its owner has failed: past the documented lease nobody is refused for it.
pub(super) struct Wedged;

impl Check for Wedged {
    fn check(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let Some(lease) = seen.policy.lease.known().map(|lease| micros(*lease)) else { return Vec::new() };
        let mut findings = Vec::new();
        for attempt in seen.sent().filter(|a| a.key.is_some()) {
            let rivals: Vec<_> = seen.rivals(attempt).collect();
            // Only owners that are certainly dead: they answered with a failure, or were made to die.
            let dead = |other: &&&Attempt| {
                before(other, attempt)
                    && (answer(other).is_some_and(|r| r.status == 500)
                        || (fails(other, "die") && !matches!(other.end, End::Answered)))
            };
            let over = |other: &&&Attempt| {
                before(other, attempt) && answer(other).is_some_and(|response| response.status < 500)
            };
            let owners: Vec<_> = rivals.iter().filter(dead).collect();
            let settled = rivals.iter().all(|other| dead(&other) || over(&other));
            let Some(last) = owners.iter().max_by_key(|owner| owner.timing.ended).filter(|_| settled) else { continue };
            let passed = seen.shortest(last.timing.ended, start(attempt));
            // A refused retry must not be taken for a running owner, nor a moment after the lease for too long.
            let past = passed > lease.saturating_add(lease / 10).saturating_add(1_000_000);
            let Some(response) = answer(attempt).filter(|_| past) else { continue };
            if seen.policy.in_flight_status.contains(response.status) && seen.words(attempt).may_be(Word::InFlight) {
                let message = format!(
                    "`{}` was answered {} although `{}` had failed longer ago than the lease",
                    attempt.name, response.status, last.name
                );
                findings.push(found(id::KEY_NEVER_WEDGED, Decision::Broken, message, &[last, attempt]));
            } else if seen.success(attempt).is_some() {
                let message = format!("`{}` succeeded after `{}` had failed", attempt.name, last.name);
                findings.push(found(id::KEY_NEVER_WEDGED, Decision::Held, message, &[]));
            }
        }
        findings
    }
}
