//! What no key's own history can show: results and refusals that come from another scope or key.

use std::collections::HashMap;

use super::{
    partition::Key,
    record::{Observation, Outcome},
};

/// Something that crossed from one key to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crossing {
    /// One result was answered under two keys or to two tenants.
    SharedResult {
        /// Where it was answered first: a key's place, and an attempt's place in the recorded history.
        owner: (usize, usize),
        /// Where it was answered as well.
        other: (usize, usize),
    },
    /// A refusal by the key under a scope that nothing else was sent in, while another scope used the same key.
    /// Suspected only.
    RefusedForAnother {
        /// The refused one.
        refused: (usize, usize),
        /// The key of the other scope: its place.
        other: usize,
    },
}

/// Both passes over all keys of one history: linear in the number of attempts.
pub fn crossings(keys: &[Key]) -> Vec<Crossing> {
    let mut found = Vec::new();
    let mut owners: HashMap<u32, (usize, usize)> = HashMap::new();
    let mut by_field: HashMap<&str, Vec<usize>> = HashMap::new();
    for (place, key) in keys.iter().enumerate() {
        by_field.entry(&key.field).or_default().push(place);
    }
    let mut answers: Vec<(i64, usize, usize, u32)> = Vec::new();
    for (place, key) in keys.iter().enumerate() {
        for (observation, attempt) in key.answers() {
            if let Outcome::Success(Some(id)) | Outcome::Replayed(Some(id)) = observation.outcome {
                answers.push((observation.from, place, attempt, id));
            }
        }
        if let Some((refused, attempt)) = alone(key) {
            let used = |other: &usize| keys[*other].answers().any(|(o, _)| o.from <= refused.to);
            let others = by_field.get(key.field.as_str()).into_iter().flatten();
            if let Some(other) = others.copied().find(|other| *other != place && used(other)) {
                found.push(Crossing::RefusedForAnother { refused: (place, attempt), other });
            }
        }
    }
    answers.sort_unstable();
    for (_, place, attempt, id) in answers {
        let owner = *owners.entry(id).or_insert((place, attempt));
        if owner.0 != place {
            found.push(Crossing::SharedResult { owner, other: (place, attempt) });
        }
    }
    found
}

/// The first attempt of a key, if it was refused as in flight or for its payload before any other one was sent.
fn alone(key: &Key) -> Option<(&Observation, usize)> {
    let (first, attempt) = key.answers().min_by_key(|(observation, _)| observation.from)?;
    let refused = matches!(first.outcome, Outcome::Conflict | Outcome::Mismatch);
    let earlier = key.answers().filter(|(other, _)| other.from <= first.to).count();
    (refused && earlier == 1).then_some((first, attempt))
}
