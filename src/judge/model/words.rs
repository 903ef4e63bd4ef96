//! A rejection in plain words, as one rule that is broken.

use super::{
    core::weaken,
    partition::{Alternative, Key},
    record::{Bound, Observation, Outcome, Rules, Time},
    search::BUDGET,
    severity::{Level, Ruling, judge_key},
    solve::solve,
};
use crate::{
    history::History,
    judge::words,
    spec::{RuleId, id},
};

/// Histories with more attempts of one key than this are told without their core: it takes one search for each.
const LONGEST_CORE: usize = 100;

/// What a key's history proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accusation {
    /// How bad it is.
    pub level: Level,
    /// The rule that it breaks.
    pub rule: RuleId,
    /// One line.
    pub message: String,
    /// The attempts that by themselves contradict every server that is right: their places in the recorded history.
    pub core: Vec<usize>,
    /// Whether the count of effects is needed for it.
    pub counted: bool,
}

/// What a key's history comes to under the most lenient reading of its policy, and the accusation if it is rejected.
pub fn accuse(key: &Key, history: &History) -> (Ruling, Option<Accusation>) {
    let mut best: Option<(Ruling, &Alternative)> = None;
    for alternative in &key.alternatives {
        let ruling = judge_key(&alternative.history, &alternative.rules, BUDGET);
        let lenient = |known: &Ruling| rank(&ruling) < rank(known);
        if best.as_ref().is_none_or(|(known, _)| lenient(known)) {
            best = Some((ruling, alternative));
        }
    }
    let Some((ruling, alternative)) = best else { return (Ruling::Accepted { vacuous: true }, None) };
    let Ruling::Rejected { level, at } = ruling else { return (ruling, None) };
    let rules = alternative.rules.at_level(level);
    let observations = &alternative.history.observations;
    let limit = if observations.len() <= LONGEST_CORE { limit(alternative, &rules) } else { None };
    let core = if observations.len() <= LONGEST_CORE { weaken(&alternative.history, &rules, BUDGET) } else { vec![at] };
    let shown: Vec<&Observation> = core.iter().map(|index| &observations[*index]).collect();
    let attempts: Vec<usize> = core.iter().filter_map(|index| key.attempts[*index]).collect();
    let (rule, why) = name(level, &shown);
    let told: Vec<String> = attempts.iter().map(|place| told(history, *place)).collect();
    let counted = shown.iter().find_map(|o| match o.outcome {
        Outcome::Effects(count, _) => Some(count),
        _ => None,
    });
    let told = match (told.is_empty(), counted) {
        (true, None) => String::new(),
        (true, Some(count)) => format!(": {count} effects, whatever was answered"),
        (false, None) => format!(": {}", told.join(", ")),
        (false, Some(count)) => format!(": {}, and {count} effects", told.join(", ")),
    };
    let limit = limit.unwrap_or_default();
    let message = format!("key `{}`: {why}{told}{limit}", key.name);
    (ruling, Some(Accusation { level, rule, message, core: attempts, counted: counted.is_some() }))
}

/// The documented time that stands against an explanation, and what it would have to be. Said only where the time that
/// was seen is of the same order: everything can be explained by a key that is forgotten at once.
fn limit(alternative: &Alternative, rules: &Rules) -> Option<String> {
    let seconds = |micros: Time| format!("{:.3} s", micros as f64 / 1e6);
    if let Bound::AtLeast(promised) = rules.retention {
        let open = Rules { retention: Bound::Unknown, ..rules.clone() };
        if let Some(most) = solve(&alternative.history, &open, BUDGET).retention_at_most.filter(|m| *m > promised / 2) {
            return Some(format!("; right only if a completed key may be forgotten after {}", seconds(most)));
        }
    }
    if let Bound::AtLeast(promised) = rules.lease {
        let open = Rules { lease: Bound::Unknown, ..rules.clone() };
        if let Some(most) = solve(&alternative.history, &open, BUDGET).lease_at_most.filter(|m| *m > promised / 2) {
            return Some(format!("; right only if a running owner may lose its key after {}", seconds(most)));
        }
    }
    None
}

fn rank(ruling: &Ruling) -> u8 {
    match ruling {
        Ruling::Accepted { .. } => 0,
        Ruling::TooMuch => 1,
        Ruling::Rejected { level: Level::Policy, .. } => 2,
        Ruling::Rejected { level: Level::Refusal, .. } => 3,
        Ruling::Rejected { level: Level::Safety, .. } => 4,
    }
}

fn told(history: &History, place: usize) -> String {
    let Some(attempt) = history.attempts.get(place) else { return String::new() };
    let ms = |at: u64| at as f64 / 1000.0;
    let (from, to) = (attempt.timing.first_out.unwrap_or(attempt.timing.opened), attempt.timing.ended);
    format!("`{}` {} [{:.1} to {:.1} ms]", attempt.name, words::ending(attempt), ms(from), ms(to))
}

/// The rule that a core breaks, and why no server that is right does so.
fn name(level: Level, core: &[&Observation]) -> (RuleId, &'static str) {
    let count = core.iter().find_map(|o| match o.outcome {
        Outcome::Effects(count, _) => Some(count),
        _ => None,
    });
    let has = |of: fn(&Outcome) -> bool| core.iter().any(|o| of(&o.outcome));
    let successes: Vec<_> = core.iter().filter(|o| success(&o.outcome).is_some()).collect();
    let differ = successes.iter().any(|o| o.payload != successes[0].payload);
    match (level, count) {
        (Level::Safety, Some(0)) => {
            (id::ACKNOWLEDGED_EFFECT_EXISTS, "no server that is right answers with success and has no effect")
        }
        (Level::Safety, Some(_)) if has(|o| matches!(o, Outcome::Failure(_))) => {
            (id::FAILURE_AFTER_EFFECT_NOT_REPEATED, "no server that is right repeats an effect after a failure")
        }
        (Level::Safety, Some(_)) => (id::AT_MOST_ONE_EFFECT, "no server that is right has so many effects"),
        (Level::Safety, None) if differ => {
            (id::DIFFERENT_REQUEST_NOT_SERVED, "no server that is right serves two payloads")
        }
        (Level::Safety, None) => (id::ONE_RESULT_PER_KEY, "no order of executions explains these results"),
        (Level::Refusal, _) if has(|o| matches!(o, Outcome::Mismatch)) => {
            (id::MISMATCH_IS_422, "refused for another payload, and none can have been held at that time")
        }
        (Level::Refusal, _) if has(|o| matches!(o, Outcome::Failure(_))) => {
            (id::REPLAY_RETURNS_RESULT, "failed, and nothing that it was to do was left to do")
        }
        (Level::Refusal, _) if !has(|o| matches!(o, Outcome::Conflict)) => {
            (id::REPLAY_RETURNS_RESULT, "refused without a reason that a server can have had")
        }
        (Level::Refusal, _) if completed_before(core) => {
            (id::REPLAY_RETURNS_RESULT, "refused as in flight, and nothing can have been in flight at that time")
        }
        (Level::Refusal, _) => (
            id::CONCURRENT_DUPLICATE_REFUSED_OR_WAITS,
            "refused as in flight, and nothing can have been in flight at that time",
        ),
        (Level::Policy, _) if has(|o| matches!(o, Outcome::Conflict)) => {
            (id::IN_FLIGHT_AS_DOCUMENTED, "refused as in flight, where the API documents otherwise")
        }
        (Level::Policy, _) => {
            (id::FAILURE_BEFORE_EFFECT_AS_DOCUMENTED, "what failed was not kept or freed as documented")
        }
    }
}

fn success(outcome: &Outcome) -> Option<()> {
    matches!(outcome, Outcome::Success(_) | Outcome::Replayed(_)).then_some(())
}

fn completed_before(core: &[&Observation]) -> bool {
    let done: Option<Time> = core.iter().filter(|o| success(&o.outcome).is_some()).map(|o| o.to).min();
    let refused = core.iter().filter(|o| o.outcome == Outcome::Conflict).map(|o| o.from).max();
    done.zip(refused).is_some_and(|(done, refused)| done < refused)
}
