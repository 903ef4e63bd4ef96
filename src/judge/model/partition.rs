//! Recorded histories taken apart into the model's histories, one for each tenant and key.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::record::{Bound, FOREVER, KeyHistory, Observation, Outcome, Rules, Time};
use crate::{
    history::{Attempt, Control, End, History, ProbeResult},
    judge::{
        effects,
        seen::{self, answer, fails, outside, start, truncated},
    },
    suite::Window,
    target::{Disposal, Documented, ExpiredKey, Fingerprint, InFlight, Mismatch, Operation, Policy, ReplayStatus},
};

/// How long after the loss of its connection a request may still arrive, in microseconds: longer than every delay
/// that a case injects.
const LATE: Time = 30_000_000;

/// With an undocumented retention, a key is taken to live at least this long, in microseconds.
const SHORTEST_RETENTION: Time = 60_000_000;

/// All that one tenant sent with one key.
#[derive(Debug, Clone)]
pub struct Key {
    /// The tenant.
    pub tenant: String,
    /// The key's name in the case.
    pub name: String,
    /// The field value that was sent, without quotes.
    pub field: String,
    /// For each observation, the place of its attempt in the recorded history; `None` for a count of effects.
    pub attempts: Vec<Option<usize>>,
    /// One for each reading of what is not documented. Any one that explains the history is enough.
    pub alternatives: Vec<Alternative>,
}

/// One reading of the policy, and the history as seen by it.
#[derive(Debug, Clone)]
pub struct Alternative {
    /// How the server behaves.
    pub rules: Rules,
    /// What was observed.
    pub history: KeyHistory,
}

impl Key {
    /// The attempts with what is known of them, whatever reading of payloads.
    pub(super) fn answers(&self) -> impl Iterator<Item = (&Observation, usize)> {
        let history = self.alternatives.first().map(|alternative| &alternative.history);
        let all = history.into_iter().flat_map(|history| &history.observations);
        all.zip(&self.attempts).filter_map(|(observation, attempt)| Some((observation, (*attempt)?)))
    }
}

/// Takes a recorded history apart. Left out is what the model has no say in: attempts without a key of the case, keys
/// that were also sent in a form that the server need not read as one, and keys with several payloads where it is not
/// documented that a second one is refused or not compared.
pub fn partition(history: &History, operation: &Operation) -> Vec<Key> {
    let policy = &operation.policy;
    let mut groups: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    let mut raw: Vec<&str> = Vec::new();
    for (place, attempt) in history.attempts.iter().enumerate() {
        match (&attempt.end, attempt.key.as_deref(), attempt.key_field.as_deref()) {
            (End::NotSent(_), ..) => {}
            (_, Some(key), _) => groups.entry((&attempt.tenant, key)).or_default().push(place),
            (_, None, Some(field)) => raw.push(bare(field)),
            (_, None, None) => {}
        }
    }
    let clock = Clock(&history.controls);
    let shared = seen::shared(history);
    let mut names = Names::default();
    let keys = groups.into_iter().filter_map(|((tenant, name), places)| {
        let all: Vec<&Attempt> = places.iter().map(|place| &history.attempts[*place]).collect();
        let field = all.iter().find_map(|attempt| attempt.key_field.as_deref()).map_or(name, bare);
        let one_operation = all.iter().all(|attempt| attempt.operation == all[0].operation);
        if raw.contains(&field) || !one_operation {
            return None;
        }
        let readings = readings(policy, &all)?;
        let view = View { history, operation, clock: &clock, all: &all, shared: &shared };
        let outcomes: Vec<_> = all.iter().map(|attempt| view.outcome(attempt, &mut names)).collect();
        let mut attempts: Vec<_> = places.into_iter().map(Some).collect();
        let spans: Vec<_> = all.iter().map(|attempt| clock.interval(start(attempt), attempt.timing.ended)).collect();
        let mut count = count(history, tenant, name, &clock);
        // 202 promises an effect for later, and the count may have been too early for it.
        let promised = |attempt: &&Attempt| answer(attempt).is_some_and(|response| response.status == 202);
        if let Some(Observation { outcome: Outcome::Effects(_, most), .. }) = &mut count
            && all.iter().any(promised)
        {
            *most = u32::MAX;
        }
        if count.is_some() {
            attempts.push(None);
        }
        let alternatives = readings.into_iter().map(|reading| {
            let mut payloads: Vec<&str> = Vec::new();
            let mut observations = Vec::with_capacity(attempts.len());
            for ((attempt, outcome), (from, to)) in all.iter().zip(&outcomes).zip(&spans) {
                let hash = reading.hash(attempt);
                let payload = payloads.iter().position(|known| *known == hash).unwrap_or_else(|| {
                    payloads.push(hash);
                    payloads.len() - 1
                });
                let payload = u32::try_from(payload).unwrap_or(u32::MAX);
                observations.push(Observation { from: *from, to: *to, payload, outcome: *outcome });
            }
            observations.extend(count.clone());
            Alternative { rules: rules(policy, &reading), history: KeyHistory { observations } }
        });
        let alternatives = alternatives.collect();
        Some(Key { tenant: tenant.to_owned(), name: name.to_owned(), field: field.to_owned(), attempts, alternatives })
    });
    keys.collect()
}

fn bare(field: &str) -> &str {
    field.trim().trim_matches('"')
}

/// How payloads are compared.
enum Reading {
    Json,
    Bytes,
    Not,
}

impl Reading {
    fn hash<'a>(&self, attempt: &'a Attempt) -> &'a str {
        match self {
            Self::Json => &attempt.value_sha256,
            Self::Bytes => &attempt.payload_sha256,
            Self::Not => "",
        }
    }
}

fn readings(policy: &Policy, all: &[&Attempt]) -> Option<Vec<Reading>> {
    let one = |of: fn(&Attempt) -> &str| all.iter().all(|attempt| of(attempt) == of(all[0]));
    if one(|attempt| &attempt.payload_sha256) {
        return Some(vec![Reading::Json]);
    }
    let compared = match policy.fingerprint {
        Documented::As(Fingerprint::Json) => vec![Reading::Json],
        Documented::As(Fingerprint::Bytes) => vec![Reading::Bytes],
        Documented::Unknown => vec![Reading::Json, Reading::Bytes],
    };
    match policy.mismatch {
        Documented::As(Mismatch::Refuse) => Some(compared),
        Documented::As(Mismatch::Replay) => Some(vec![Reading::Not]),
        // Each payload would be an operation of its own.
        Documented::As(Mismatch::Execute) | Documented::Unknown => None,
    }
}

fn rules(policy: &Policy, reading: &Reading) -> Rules {
    let band = |span: crate::text::Span| {
        let span = Time::try_from(seen::micros(span)).unwrap_or(FOREVER).min(FOREVER);
        Bound::AtLeast(span - (span / 10).min(1_000_000))
    };
    let (before, after) = (policy.failure_before_effect, policy.failure_after_effect);
    let only = |disposal: Disposal| before.is(&disposal) && after.is(&disposal);
    Rules {
        conflict: !policy.in_flight.is(&InFlight::Wait),
        release: !only(Disposal::Store),
        store: !only(Disposal::Release),
        fingerprint: !matches!(reading, Reading::Not),
        held_after_release: true,
        lease: policy.lease.known().map_or(Bound::Unknown, |span| band(*span)),
        stuck: None,
        retention: policy.retention.known().map_or(Bound::AtLeast(SHORTEST_RETENTION), |span| band(*span)),
        retention_most: None,
        late: LATE,
        cancels: true,
        gateway_repeats: false,
        refuses_freely: false,
    }
}

/// Numbers for results, the same for the same name in every key of a history.
#[derive(Default)]
struct Names(HashMap<String, u32>);

impl Names {
    fn number(&mut self, name: &str) -> u32 {
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        *self.0.entry(name.to_owned()).or_insert(next)
    }
}

struct View<'a> {
    history: &'a History,
    operation: &'a Operation,
    clock: &'a Clock<'a>,
    all: &'a [&'a Attempt],
    /// Identities that tell no two executions apart.
    shared: &'a BTreeSet<&'a str>,
}

impl View<'_> {
    fn outcome(&self, attempt: &Attempt, names: &mut Names) -> Outcome {
        let policy = &self.operation.policy;
        let Some(response) = answer(attempt) else {
            return if truncated(attempt) { Outcome::Cut } else { Outcome::Lost };
        };
        let status = response.status;
        let in_flight = policy.in_flight_status.contains(status);
        let mismatch = policy.mismatch_status.contains(status);
        if let Some(success) = seen::success(self.operation, attempt) {
            let identity = success.identity.filter(|identity| !self.shared.contains(identity));
            return Outcome::Success(identity.map(|identity| names.number(identity)));
        }
        // A gateway's answer says nothing of what the server did, nor does one that a hook made.
        if matches!(status, 502..=504) || (status >= 500 && fails(attempt, "")) {
            return Outcome::Lost;
        }
        if outside(status) {
            return Outcome::Refused;
        }
        let replayed = matches!(&policy.replay.status, ReplayStatus::Other(set) if set.contains(status));
        // A refusal says something about keys only if it can mean nothing else.
        let plain = !replayed && self.accepted(attempt) && !self.expired();
        match (in_flight, mismatch) {
            (true, false) if plain => Outcome::Conflict,
            (false, true) if plain && self.all.iter().all(|other| other.hooks == attempt.hooks) => Outcome::Mismatch,
            _ if status >= 500 && !in_flight && !mismatch => Outcome::Failure(None),
            _ => Outcome::Rejected,
        }
    }

    /// Whether some attempt shows that the API accepts this payload.
    fn accepted(&self, attempt: &Attempt) -> bool {
        let same = self.history.attempts.iter().filter(|other| other.value_sha256 == attempt.value_sha256);
        attempt.role == "changed" || same.into_iter().any(|other| seen::success(self.operation, other).is_some())
    }

    /// Whether a key that has expired may be the reason of a refusal.
    fn expired(&self) -> bool {
        let past = |control: &Control| control.moved.past == Some(Window::Retention);
        let fresh = self.operation.policy.expired_key.is(&ExpiredKey::Fresh);
        !fresh && self.clock.0.iter().any(past)
    }
}

/// The final count of a key's effects, if it can be attributed to this tenant.
fn count(history: &History, tenant: &str, name: &str, clock: &Clock<'_>) -> Option<Observation> {
    let probe = history.final_count(name, tenant)?;
    let ProbeResult::Counted(count) = &probe.result else { return None };
    let mut tenants: Vec<&str> = Vec::new();
    let sent = history.attempts.iter().filter(|attempt| !matches!(attempt.end, End::NotSent(_)));
    for attempt in sent.filter(|attempt| attempt.intent == name) {
        // Effects of another key, or of none, may be counted with them.
        if attempt.key.as_deref() != Some(name) {
            return None;
        }
        if !tenants.contains(&attempt.tenant.as_str()) {
            tenants.push(&attempt.tenant);
        }
    }
    let counted = tenants.iter().map(|tenant| match &history.final_count(name, tenant)?.result {
        ProbeResult::Counted(count) => Some(count),
        ProbeResult::Failed(_) => None,
    });
    if tenants.len() > 1 && effects::view(&counted.collect::<Option<Vec<_>>>()?) != effects::View::Own {
        return None;
    }
    let (from, to) = clock.interval(probe.began, probe.ended);
    let effects = u32::try_from(count.effects).unwrap_or(u32::MAX);
    Some(Observation { from, to, payload: 0, outcome: Outcome::Effects(effects, effects) })
}

/// The target's clock: what its hook moved it by is time that has passed. What is not certain widens intervals.
struct Clock<'a>(&'a [Control]);

impl Clock<'_> {
    fn interval(&self, from: u64, to: u64) -> (Time, Time) {
        let by_hook = || self.0.iter().filter(|control| control.moved.by_hook);
        let sum = |at: u64, moves: &mut dyn Iterator<Item = &Control>| {
            let moved = moves.fold(at, |sum, control| sum.saturating_add(seen::micros(control.moved.span)));
            Time::try_from(moved).unwrap_or(FOREVER).min(FOREVER - 1)
        };
        let from = sum(from, &mut by_hook().filter(|c| c.failed.is_none() && c.ended <= from));
        (from, sum(to, &mut by_hook().filter(|c| c.began <= to)).max(from))
    }
}
