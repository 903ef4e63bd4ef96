//! Why a history is rejected: the observations that are needed for it.

use super::{
    record::{FOREVER, KeyHistory, Observation, Outcome, Rules},
    search::{Answer, explain},
};

/// The observations that by themselves contradict every server that follows these rules, in order.
///
/// Each observation in turn is weakened to `sent, answer unknown`, a count is forgotten. That can only add
/// explanations, so where the rest is still rejected, it was not needed. The least persuasive go first: counts, then
/// failures and what was lost, then refusals, then successes.
pub fn weaken(history: &KeyHistory, rules: &Rules, budget: u32) -> Vec<usize> {
    let rejected = |history: &KeyHistory| matches!(explain(history, rules, budget), Answer::Rejected(_));
    let Answer::Rejected(rejection) = explain(history, rules, budget) else { return Vec::new() };
    let mut weak = history.clone();
    let mut order: Vec<usize> = (0..weak.observations.len()).collect();
    // What begins after the contradiction cannot be needed: the sweep never came to it.
    if let Some(last) = history.observations.get(rejection.at).map(|at| rules.closes(at)) {
        let later = |index: &usize| history.observations[*index].from > last;
        let mut trial = weak.clone();
        order.iter().filter(|index| later(index)).for_each(|index| weakened(&mut trial.observations[*index]));
        if rejected(&trial) {
            weak = trial;
            order.retain(|index| !later(index));
        }
    }
    order.sort_by_key(|index| (persuasion(&history.observations[*index]), *index));
    let mut core = Vec::new();
    for index in order {
        let kept = weak.observations[index].clone();
        weakened(&mut weak.observations[index]);
        if !rejected(&weak) {
            weak.observations[index] = kept;
            core.push(index);
        }
    }
    core.sort_by_key(|index| (history.observations[*index].from, *index));
    core
}

fn weakened(observation: &mut Observation) {
    match observation.outcome {
        // A count that may be anything says nothing.
        Outcome::Effects(..) => observation.outcome = Outcome::Effects(0, u32::MAX),
        // It still may only have reserved its key: the request was cut, whatever else is forgotten.
        Outcome::Cut => observation.to = FOREVER,
        _ => {
            observation.outcome = Outcome::Unknown;
            observation.to = FOREVER;
        }
    }
}

fn persuasion(observation: &Observation) -> u8 {
    match observation.outcome {
        Outcome::Effects(..) => 0,
        Outcome::Failure(_) => 1,
        Outcome::Lost | Outcome::Unknown | Outcome::Cut | Outcome::Refused | Outcome::Rejected => 2,
        Outcome::Conflict | Outcome::Mismatch => 3,
        Outcome::Replayed(_) | Outcome::Success(_) => 4,
    }
}
