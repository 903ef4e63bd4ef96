//! What a history shows, prepared for the checks: who came before whom, what each answer may be.

use std::{collections::BTreeSet, ops::RangeInclusive};

use super::{
    classify::{self, Words},
    effects,
};
use crate::{
    history::{Attempt, Count, End, History, Micros, ProbeResult, Witness},
    judge::Reason,
    schedule::Schedule,
    suite::{NetworkFault, Window, Word},
    target::{Disposal, Documented, Fingerprint, Policy, RetentionFrom},
};

/// Statuses that are decided before a key is looked at, or by something in front of the API. They say nothing about
/// idempotency: credentials, limits, wrong paths, gateways.
const OUTSIDE: [u16; 12] = [401, 403, 404, 405, 406, 407, 408, 413, 415, 429, 431, 503];

/// With an undocumented retention, a key is taken to live at least this long, and nothing is concluded about longer
/// gaps. The shortest retention that any surveyed API documents is longer.
const SHORTEST_RETENTION: Micros = 60_000_000;

/// Servers count whole seconds; gaps this close to a window's end decide nothing.
const CLOCK_BAND: Micros = 1_000_000;

static NOTHING: Words = Words::NOTHING;

/// A schedule and its history, with the words that each attempt may come to.
#[derive(Debug)]
pub struct Seen<'a> {
    /// What was to be done.
    pub schedule: &'a Schedule,
    /// What happened.
    pub history: &'a History,
    /// What the operation documents.
    pub policy: &'a Policy,
    words: Vec<Words>,
    /// Identities that several effects share, so that they tell nothing apart.
    shared: BTreeSet<&'a str>,
}

impl<'a> Seen<'a> {
    /// Looks at a history.
    pub fn new(schedule: &'a Schedule, history: &'a History) -> Self {
        let mut seen =
            Self { schedule, history, policy: &schedule.operation.policy, words: Vec::new(), shared: shared(history) };
        seen.words = history.attempts.iter().map(|attempt| classify::words(&seen, attempt)).collect();
        seen
    }

    /// The attempts that sent something, in the order in which they were begun.
    pub fn sent(&self) -> impl Iterator<Item = &'a Attempt> + Clone + use<'a> {
        self.history.attempts.iter().filter(|attempt| !matches!(attempt.end, End::NotSent(_)))
    }

    /// What an attempt may come to.
    pub fn words(&self, attempt: &Attempt) -> &Words {
        let index = self.history.attempts.iter().position(|other| std::ptr::eq(other, attempt));
        index.and_then(|index| self.words.get(index)).unwrap_or(&NOTHING)
    }

    /// Whether the attempt certainly comes to this word.
    pub fn is(&self, attempt: &Attempt, word: Word) -> bool {
        self.words(attempt).is_just(word)
    }

    /// Pairs of attempts with the same tenant and key of the case, the one that was begun first before the other.
    pub fn pairs(&self) -> Vec<(&'a Attempt, &'a Attempt)> {
        let mut keyed: Vec<_> = self.sent().filter(|attempt| attempt.key.is_some()).collect();
        keyed.sort_by_key(|attempt| start(attempt));
        let mut pairs = Vec::new();
        for (index, second) in keyed.iter().enumerate() {
            let same = |first: &&&'a Attempt| first.key == second.key && first.tenant == second.tenant;
            pairs.extend(keyed[..index].iter().filter(same).map(|first| (*first, *second)));
        }
        pairs
    }

    /// The other attempts that the server may take for attempts with the same key, sent before this one ended.
    pub fn rivals<'s>(&'s self, attempt: &'s Attempt) -> impl Iterator<Item = &'a Attempt> + 's {
        self.sent().filter(move |other| {
            !std::ptr::eq(*other, attempt) && same_key(other, attempt) && start(other) <= attempt.timing.ended
        })
    }

    /// The status and identity of a success. A 2xx is one even if the target file forgot it: the status of a replay
    /// is compared, not presumed.
    pub fn success<'s>(&self, attempt: &'s Attempt) -> Option<Success<'s>> {
        let found = success(&self.schedule.operation, attempt)?;
        Some(Success { identity: found.identity.filter(|identity| !self.shared.contains(identity)), ..found })
    }

    /// All successes, in the order in which they were begun.
    pub fn successes(&self) -> impl Iterator<Item = Success<'a>> + '_ {
        self.sent().filter_map(|attempt| self.success(attempt))
    }

    /// Pairs of successes with the same tenant and key, certainly within one life of the key.
    pub fn success_pairs(&self) -> impl Iterator<Item = (Success<'a>, Success<'a>)> + '_ {
        let pairs = self.pairs().into_iter();
        pairs
            .filter(|(a, b)| self.within_retention(a, b))
            .filter_map(|(a, b)| Some((self.success(a)?, self.success(b)?)))
    }

    /// Pairs of an original and a success that is certainly its replay: the same payload, and the same identity. Where an
    /// operation names nothing, the documented marker tells one from the other.
    pub fn replays(&self) -> Vec<(Success<'a>, Success<'a>)> {
        let mut pairs: Vec<(Success<'a>, Success<'a>)> = Vec::new();
        for (original, replay) in self.success_pairs() {
            let same = original.identity.is_some() && original.identity == replay.identity;
            let nameless = original.identity.is_none() && replay.identity.is_none();
            let marked = self.is(original.attempt, Word::Executed) && self.is(replay.attempt, Word::Replay);
            let same = same || (nameless && marked && before(original.attempt, replay.attempt));
            let known = pairs.iter().any(|(_, other)| std::ptr::eq(other.attempt, replay.attempt));
            if same && original.attempt.value_sha256 == replay.attempt.value_sha256 && !known {
                pairs.push((original, replay));
            }
        }
        pairs
    }

    /// Whether both attempts certainly fall into one life of the key, so that the second may not be an execution.
    pub fn within_retention(&self, first: &Attempt, second: &Attempt) -> bool {
        let (from, to) = (self.life_began(first), second.timing.ended);
        if self.expiries(from, to) > 0 {
            return false;
        }
        let limit = match self.policy.retention {
            Documented::As(span) => micros(span).saturating_sub(CLOCK_BAND.min(micros(span) / 10)),
            Documented::Unknown => SHORTEST_RETENTION,
        };
        self.longest(from, to) < limit
    }

    /// The earliest instant at which the life of the key that the attempt fell into may have begun: a retention that is
    /// not begun anew by replays runs from the first use.
    fn life_began(&self, attempt: &Attempt) -> Micros {
        if self.policy.retention_from.is(&RetentionFrom::LastUse) {
            return start(attempt);
        }
        let same = |other: &&Attempt| other.key == attempt.key && other.tenant == attempt.tenant;
        let earlier = self.sent().filter(same).map(start).filter(|from| *from <= start(attempt));
        earlier.filter(|from| self.expiries(*from, start(attempt)) == 0).min().unwrap_or_else(|| start(attempt))
    }

    /// The most executions that are right for one tenant and key, or `None` if the time that passed decides nothing.
    pub fn lives(&self, from: Micros, to: Micros) -> Option<u64> {
        let expiries = self.expiries(from, to);
        let passed = self.longest(from, to);
        match self.policy.retention {
            Documented::As(span) if micros(span) > 0 => {
                let band = CLOCK_BAND.min(micros(span) / 10);
                Some(1 + expiries.max((passed + band) / micros(span)))
            }
            Documented::Unknown if passed < SHORTEST_RETENTION || expiries > 0 => Some(1 + expiries),
            _ => None,
        }
    }

    /// How often time was moved past the retention between two instants, counting every move that may have been.
    fn expiries(&self, from: Micros, to: Micros) -> u64 {
        let moves = self.history.controls.iter();
        let past = moves.filter(|c| c.moved.past == Some(Window::Retention) && c.began < to && c.ended > from);
        past.count() as u64
    }

    /// The most time that may have passed for the target.
    fn longest(&self, from: Micros, to: Micros) -> Micros {
        let moves = self.history.controls.iter().filter(|c| c.moved.by_hook && c.began < to && c.ended > from);
        moves.fold(to.saturating_sub(from), |sum, c| sum.saturating_add(micros(c.moved.span)))
    }

    /// The least time that has passed for the target.
    pub fn shortest(&self, from: Micros, to: Micros) -> Micros {
        let moves = self.history.controls.iter();
        let sure = moves.filter(|c| c.moved.by_hook && c.failed.is_none() && c.began >= from && c.ended <= to);
        sure.fold(to.saturating_sub(from), |sum, c| sum.saturating_add(micros(c.moved.span)))
    }

    /// Whether the attempt took so long that its lease, as documented, had ended before its answer: another attempt
    /// may have taken the key over, and an owner that is fenced off may be refused.
    pub fn outlived_lease(&self, attempt: &Attempt) -> bool {
        let lease = self.policy.lease.known();
        lease.is_some_and(|lease| self.shortest(start(attempt), attempt.timing.ended) >= micros(*lease))
    }

    /// Whether the attempt may have run the operation without anybody seeing its success.
    pub fn may_have_executed_unseen(&self, attempt: &Attempt) -> bool {
        match &attempt.end {
            End::NotSent(_) => false,
            End::Answered => match answer(attempt).map(|response| response.status) {
                Some(status) if status >= 500 => {
                    !fails(attempt, "before") && effects::after(self.history, attempt) != Some(0)
                }
                _ => false,
            },
            End::Lost(_) | End::TimedOut | End::Unreadable(_) => !fails(attempt, "before") && !truncated(attempt),
        }
    }

    /// Whether the attempt may have been running on the server at some instant of the other one's interval.
    pub fn may_run_during(&self, attempt: &Attempt, other: &Attempt) -> bool {
        let over = match &attempt.end {
            // A failed handler's claim may outlive its answer by a moment; how long is for the lease to say.
            End::Answered => answer(attempt).is_none_or(|response| response.status < 500),
            End::NotSent(_) => true,
            End::Lost(_) | End::TimedOut | End::Unreadable(_) => false,
        };
        start(attempt) <= other.timing.ended && (!over || attempt.timing.ended >= start(other))
    }

    /// How many effects an intent has had at the end, over all tenants that sent it.
    ///
    /// # Errors
    /// With the reason why that is not known.
    pub fn total(&self, intent: &str) -> Result<RangeInclusive<u64>, Reason> {
        effects::total(self, intent)
    }

    /// The effects of an intent at the end, as one tenant sees them.
    pub fn count(&self, intent: &str, tenant: &str) -> Option<&'a Count> {
        match &self.history.final_count(intent, tenant)?.result {
            ProbeResult::Counted(count) => Some(count),
            ProbeResult::Failed(_) => None,
        }
    }

    /// Whether two payloads are certainly different requests, however payloads are compared.
    pub fn different_request(&self, a: &Attempt, b: &Attempt) -> bool {
        a.value_sha256 != b.value_sha256
    }

    /// Whether the API may rightly take two payloads for different requests.
    pub fn may_differ(&self, a: &Attempt, b: &Attempt) -> bool {
        match self.policy.fingerprint {
            Documented::As(Fingerprint::Json) => a.value_sha256 != b.value_sha256,
            Documented::As(Fingerprint::Bytes) | Documented::Unknown => a.payload_sha256 != b.payload_sha256,
        }
    }

    /// Whether some attempt shows that the API accepts this payload.
    pub fn accepted(&self, attempt: &Attempt) -> bool {
        self.successes().any(|success| success.attempt.value_sha256 == attempt.value_sha256)
    }

    /// Whether the API documents that a failure after the effect frees the key.
    pub fn frees_after_effect(&self) -> bool {
        self.policy.failure_after_effect.is(&Disposal::Release)
    }
}

/// An attempt that was answered with success.
#[derive(Debug, Clone, Copy)]
pub struct Success<'a> {
    /// The attempt.
    pub attempt: &'a Attempt,
    /// The answer.
    pub response: &'a crate::history::Response,
    /// What it names, if it names anything.
    pub identity: Option<&'a str>,
}

/// The status and identity of a success, as the operation knows it.
pub(super) fn success<'s>(operation: &crate::target::Operation, attempt: &'s Attempt) -> Option<Success<'s>> {
    let response = answer(attempt)?;
    let declared = operation.success.contains(response.status);
    let in_flight = !declared && operation.policy.in_flight_status.contains(response.status);
    let good = declared || ((200..300).contains(&response.status) && !in_flight);
    good.then(|| Success {
        attempt,
        response,
        identity: response.identity.as_deref().filter(|identity| tells_apart(attempt, identity)),
    })
}

/// The whole answer, if one came.
pub(super) fn answer(attempt: &Attempt) -> Option<&crate::history::Response> {
    attempt.response.as_ref().filter(|_| attempt.end == End::Answered)
}

/// The beginning of the interval.
pub(super) fn start(attempt: &Attempt) -> Micros {
    attempt.timing.first_out.unwrap_or(attempt.timing.opened)
}

/// Whether the first attempt had ended before the second one began. Intervals are closed: a tie is an overlap.
pub(super) fn before(first: &Attempt, second: &Attempt) -> bool {
    first.timing.ended < start(second)
}

/// Whether two attempts carry what a server may take for one key of one tenant.
pub(super) fn same_key(a: &Attempt, b: &Attempt) -> bool {
    fn bare(field: &str) -> &str {
        field.trim().trim_matches('"')
    }
    let fields = a.key_field.as_deref().zip(b.key_field.as_deref());
    a.tenant == b.tenant && ((a.key.is_some() && a.key == b.key) || fields.is_some_and(|(a, b)| bare(a) == bare(b)))
}

/// Whether the status is decided outside of anything that concerns keys.
pub(super) fn outside(status: u16) -> bool {
    OUTSIDE.contains(&status) || status == 502 || status == 504
}

/// Whether the handler was made to fail or die at this point (`before`, `after`), or at any if it is empty.
pub(super) fn fails(attempt: &Attempt, point: &str) -> bool {
    attempt.hooks.iter().any(|hook| !hook.starts_with("slow") && hook.contains(point))
}

/// Whether the request certainly did not arrive whole.
pub(super) fn truncated(attempt: &Attempt) -> bool {
    let fault = attempt.fault.as_ref();
    fault.is_some_and(|f| f.fault == NetworkFault::CutRequestBody && matches!(f.witness, Witness::Witnessed(_)))
}

/// Whether an identity can tell two executions apart at all: what the caller itself sent comes back from any of them.
fn tells_apart(attempt: &Attempt, identity: &str) -> bool {
    let field = attempt.key_field.as_deref().unwrap_or_default().trim_matches('"');
    let echoed = |sent: &str| !sent.is_empty() && identity.contains(sent);
    identity != "null" && !echoed(&attempt.reference) && !echoed(field)
}

/// The identities that were answered for several effects, as the probe shows: each has an id of its own, and none of
/// them is the identity. Such a path selects a word, a date or an owner and no result.
pub(super) fn shared(history: &History) -> BTreeSet<&str> {
    let counted = |attempt: &Attempt| match history.final_count(&attempt.intent, &attempt.tenant).map(|p| &p.result) {
        Some(ProbeResult::Counted(count)) => Some(&count.ids),
        _ => None,
    };
    let listed: BTreeSet<&str> = history.attempts.iter().filter_map(counted).flatten().map(String::as_str).collect();
    let answered = history.attempts.iter().filter_map(|a| Some((answer(a)?.identity.as_deref()?, a)));
    let answered: Vec<_> = answered.filter(|(identity, _)| !listed.contains(identity)).collect();
    let several = |identity: &str| {
        let of = || answered.iter().filter(|(other, _)| *other == identity).map(|(_, attempt)| *attempt);
        let effects: BTreeSet<&str> = of().filter_map(counted).flatten().map(String::as_str).collect();
        let each = of().all(|attempt| counted(attempt).is_some_and(|ids| !ids.is_empty()));
        of().count() > 1 && each && effects.len() > 1
    };
    answered.iter().map(|(identity, _)| *identity).filter(|identity| several(identity)).collect()
}

/// Whether an identity looks unique in the world, and not like a small number that each tenant may count for itself,
/// or like a word that every answer has.
pub(super) fn unique_looking(identity: &str) -> bool {
    let (mut digits, mut letters) = (0, 0);
    for c in identity.chars() {
        digits += usize::from(c.is_ascii_digit());
        letters += usize::from(c.is_ascii_alphabetic());
    }
    (digits > 0 && letters > 0 && digits + letters >= 8) || digits >= 12
}

/// A span in microseconds.
pub(super) fn micros(span: crate::text::Span) -> Micros {
    span.millis().saturating_mul(1000)
}
