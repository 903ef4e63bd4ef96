//! What many histories come to together.

use super::{
    across::{Crossing, crossings},
    partition::{Key, partition},
    record::{Bound, Rules},
    search::{Answer, explain},
    severity::{Level, Ruling},
    solve::{Limits, solve},
    words::{Accusation, accuse},
};
use crate::{
    history::{End, History},
    spec::id,
    target::Operation,
};

/// States looked at for each question of the inference; what takes more is left out of it.
const SMALL_BUDGET: u32 = 20_000;

/// Counts over histories that are judged one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Histories.
    pub histories: u64,
    /// Attempts.
    pub attempts: u64,
    /// Keys that were judged.
    pub keys: u64,
    /// Histories with attempts that the model has no say in.
    pub left_out: u64,
    /// Keys with nothing in them that could have contradicted a server.
    pub vacuous: u64,
    /// Keys that were too much to search.
    pub too_much: u64,
    /// Rejected keys by level: policy, refusal, safety.
    pub rejected: [u64; 3],
}

impl Tally {
    /// Judges one more history. Gives what it proves.
    pub fn judge(&mut self, history: &History, operation: &Operation) -> (Vec<Key>, Vec<Accusation>) {
        self.histories += 1;
        self.attempts += history.attempts.len() as u64;
        let keys = partition(history, operation);
        let judged: usize = keys.iter().map(|key| key.attempts.iter().flatten().count()).sum();
        let sent = history.attempts.iter().filter(|attempt| !matches!(attempt.end, End::NotSent(_))).count();
        self.left_out += u64::from(judged < sent);
        let crossings = if keys.len() > 1 { crossings(&keys) } else { Vec::new() };
        let mut accusations = Vec::new();
        for (place, key) in keys.iter().enumerate() {
            self.keys += 1;
            let (ruling, accusation) = accuse(key, history);
            let foreign = crossings.iter().find_map(|crossing| crossed(*crossing, place, &keys, history));
            // A result of another scope is harm, however well it would fit into the key's own history.
            let accusation = match (accusation, foreign) {
                (Some(own), Some(foreign)) if own.level > foreign.level => Some(own),
                (own, foreign) => foreign.or(own),
            };
            match (&accusation, ruling) {
                (Some(accusation), _) => self.rejected[accusation.level as usize] += 1,
                (None, Ruling::TooMuch) => self.too_much += 1,
                (None, Ruling::Accepted { vacuous }) => self.vacuous += u64::from(vacuous),
                (None, Ruling::Rejected { .. }) => {}
            }
            accusations.extend(accusation);
        }
        (keys, accusations)
    }

    /// How many keys were rejected at a level.
    pub fn at(&self, level: Level) -> u64 {
        self.rejected[level as usize]
    }
}

/// What a crossing proves of a key, if it concerns it. Results that may be small numbers which each tenant counts for
/// itself prove nothing.
fn crossed(crossing: Crossing, place: usize, keys: &[Key], history: &History) -> Option<Accusation> {
    let attempt = |place: usize| history.attempts.get(place);
    match crossing {
        Crossing::SharedResult { owner, other } if other.0 == place => {
            let (first, second) = (attempt(owner.1)?, attempt(other.1)?);
            let identity = second.response.as_ref().and_then(|response| response.identity.as_deref())?;
            let message = format!(
                "`{}` (tenant {}, key {}) was given {identity}, which is the result of `{}` (tenant {}, key {})",
                second.name, second.tenant, keys[other.0].name, first.name, first.tenant, keys[owner.0].name
            );
            crate::judge::seen::unique_looking(identity).then(|| Accusation {
                level: Level::Safety,
                rule: id::NO_FOREIGN_ANSWER,
                message,
                core: vec![owner.1, other.1],
                counted: false,
            })
        }
        Crossing::RefusedForAnother { refused, other } if refused.0 == place => {
            let attempt = attempt(refused.1)?;
            let message = format!(
                "`{}` was refused in a scope that had not used the key, which tenant {} had used: suspected to be the \
                 reason",
                attempt.name, keys[other].tenant
            );
            let rule = id::TENANTS_DO_NOT_SHARE_KEYS;
            Some(Accusation { level: Level::Refusal, rule, message, core: vec![refused.1], counted: false })
        }
        _ => None,
    }
}

/// What a server's policy must be for all histories to be right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inferred {
    /// The limits.
    pub limits: Limits,
    /// Some history needs that attempts are refused while another one is in flight.
    pub refuses: bool,
    /// Some history needs that a failure frees the key.
    pub frees: bool,
    /// Some history needs that a failure is stored.
    pub keeps: bool,
    /// Keys that were explained and taken into account.
    pub keys: u64,
}

impl Inferred {
    /// Adds what one key's history says, if it can be explained at all.
    pub fn add(&mut self, key: &Key) {
        // Several readings of payloads may explain it for different reasons: then it says nothing for certain.
        let [alternative] = key.alternatives.as_slice() else { return };
        let declared = &alternative.rules;
        let open = Rules { retention: Bound::Unknown, ..declared.any_policy() };
        let history = &alternative.history;
        let explains = |rules: &Rules| explain(history, rules, SMALL_BUDGET);
        if explains(&open) != Answer::Explained {
            return;
        }
        self.keys += 1;
        let needs = |rules: Rules| matches!(explains(&rules), Answer::Rejected(_));
        let kept = Rules { retention: declared.retention, ..open.clone() };
        let steady = Rules { cancels: false, ..kept.clone() };
        self.refuses |= needs(Rules { conflict: false, ..kept.clone() });
        self.frees |= needs(Rules { release: false, lease: Bound::Never, ..steady });
        self.keeps |= needs(Rules { store: false, ..kept });
        self.limits = self.limits.and(solve(history, &open, SMALL_BUDGET));
    }
}
