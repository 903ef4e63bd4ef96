//! Worked verdicts, row by row. Times in milliseconds; a row reads `A 201#1 [0,10]; B 409 [3,5]`.

use idemproof::judge::model::{
    BUDGET, Bound, FOREVER, KeyHistory, Level, Observation, Outcome, Rules, Ruling, judge_key, solve, weaken,
};

fn strict() -> Rules {
    Rules { late: 5, ..Rules::default() }
}

/// Reads a row. A payload other than the first is written `v1`; `*201#1` is a marked replay.
fn row(text: &str) -> KeyHistory {
    let observations = text.split("; ").map(observation).collect();
    KeyHistory { observations }
}

fn observation(text: &str) -> Observation {
    let (what, times) = text.split_once('[').unwrap();
    let (from, to) = times.trim_end_matches(']').split_once(',').unwrap();
    let words: Vec<_> = what.split_whitespace().skip(1).collect();
    let payload = words.iter().find_map(|word| word.strip_prefix('v')).map_or(0, |digit| digit.parse().unwrap());
    let (answer, id) = words.last().unwrap().split_once('#').unwrap_or((words.last().unwrap(), ""));
    let id = (!id.is_empty()).then(|| id.parse().unwrap());
    let outcome = match answer {
        "201" => Outcome::Success(id),
        "*201" => Outcome::Replayed(id),
        "500" => Outcome::Failure(id),
        "409" => Outcome::Conflict,
        "422" => Outcome::Mismatch,
        "lost" => Outcome::Lost,
        "cut" => Outcome::Cut,
        other => panic!("{other}"),
    };
    Observation { from: from.parse().unwrap(), to: to.parse().unwrap(), payload, outcome }
}

fn probed(text: &str, count: u32) -> KeyHistory {
    let mut history = row(text);
    let outcome = Outcome::Effects(count, count);
    history.observations.push(Observation { from: FOREVER - 1, to: FOREVER, payload: 0, outcome });
    history
}

#[derive(Debug, PartialEq)]
enum Verdict {
    Accept,
    Vacuous,
    Policy,
    Refusal,
    Safety,
}

use Verdict::{Accept, Policy, Refusal, Safety, Vacuous};

fn verdict(history: &KeyHistory, rules: &Rules) -> Verdict {
    match judge_key(history, rules, BUDGET) {
        Ruling::Accepted { vacuous: false } => Accept,
        Ruling::Accepted { vacuous: true } => Vacuous,
        Ruling::Rejected { level: Level::Policy, .. } => Policy,
        Ruling::Rejected { level: Level::Refusal, .. } => Refusal,
        Ruling::Rejected { level: Level::Safety, .. } => Safety,
        Ruling::TooMuch => panic!("too much for {history:?}"),
    }
}

#[track_caller]
fn is(text: &str, rules: &Rules, wanted: Verdict) {
    assert_eq!(verdict(&row(text), rules), wanted, "{text} under {rules:?}");
}

#[track_caller]
fn counted(text: &str, rules: &Rules, count: u32, wanted: Verdict) {
    assert_eq!(verdict(&probed(text, count), rules), wanted, "{text} with {count} effects under {rules:?}");
}

#[test]
fn every_row_of_the_worked_table() {
    let strict = strict();
    let wait = Rules { conflict: false, ..strict.clone() };
    let replay = Rules { release: false, store: true, ..strict.clone() };
    let stuck = Rules { stuck: Some(10), ..strict.clone() };
    let lease = Rules { lease: Bound::AtLeast(50), ..strict.clone() };
    let kept = Rules { retention: Bound::AtLeast(100), ..strict.clone() };
    let unknown = Rules { lease: Bound::Unknown, ..strict.clone() };
    let blind = Rules { fingerprint: false, ..strict.clone() };

    is("A 201#1 [0,10]; B 201#1 [20,25]", &strict, Accept);
    is("A 201#1 [0,10]; B 201#2 [2,12]", &strict, Safety);
    is("A 201#1 [0,10]; B 409 [3,5]", &strict, Accept);
    is("A 201#1 [0,10]; B 409 [3,5]", &wait, Policy);
    is("A 201#1 [0,10]; B 409 [20,22]", &strict, Refusal);
    is("A 201#1 [0,10]; B 409 [9,30]; C 201#1 [15,16]", &strict, Accept);
    is("A 201#1 [0,10]; B 409 [12,14]; C 201#1 [16,17]", &strict, Refusal);
    is("A lost [0,5]; B 409 [20,22]", &unknown, Accept);
    assert_eq!(solve(&row("A lost [0,5]; B 409 [20,22]"), &unknown, BUDGET).stuck_at_least, Some(10));
    is("A lost [0,5]; B 409 [60,62]", &stuck, Refusal);
    is("A lost [0,5]; B 409 [18,19]", &stuck, Accept);
    is("A lost [0,5]; B 409 [5,6]; C 409 [18,19]", &stuck, Refusal);
    is("A 500 [0,10]; B 201#1 [20,30]", &strict, Accept);
    is("A 500 [0,10]; B 201#1 [20,30]", &replay, Policy);
    counted("A 500 [0,10]; B 201#1 [20,30]", &strict, 2, Safety);
    is("A 500#9 [0,10]; B 500#9 [20,30]", &replay, Accept);
    counted("A 500 [0,10]; B 409 [2,4]; C 201#1 [12,20]; D 201#1 [21,22]", &strict, 1, Accept);
    is("A 201#1 [0,10]; B 500 [20,22]", &strict, Refusal);
    is("A 422 [0,5]", &strict, Refusal);
    is("A v0 201#1 [0,10]; B v1 422 [20,30]", &strict, Accept);
    is("A v0 201#1 [0,10]; B v1 201#1 [20,30]", &strict, Safety);
    is("A v0 201#1 [0,10]; B v1 201#1 [20,30]", &blind, Accept);
    is("A v0 201#1 [0,10]; B v1 201#2 [20,30]", &strict, Safety);
    is("A *201#1 [0,5]; B 201#1 [6,10]", &strict, Safety);
    is("Z lost [-9,-4]; A *201#1 [0,5]; B 201#1 [6,10]", &strict, Accept);
    is("A 201#1 [0,10]; B 201#2 [200,210]", &kept, Accept);
    is("A 201#1 [0,10]; B 201#2 [50,60]", &kept, Safety);
    is("A 201#1 [0,10]; B 201#2 [98,112]", &kept, Accept);
    counted("A lost [0,5]; B 201#1 [10,15]; C 201#1 [20,25]", &strict, 1, Accept);
    is("A lost [0,5]; B lost [10,15]", &strict, Vacuous);
    counted("A lost [0,5]; B lost [10,15]", &strict, 1, Accept);
    counted("A lost [0,5]; B lost [10,15]", &strict, 2, Safety);
    counted("A 201#1 [0,10]", &strict, 0, Safety);
    is("A 409 [0,5]; B 409 [1,6]", &strict, Refusal);
    is("A cut [0,3]; B 409 [1,2]", &strict, Accept);
    is("A cut [0,3]; B 409 [60,62]", &stuck, Refusal);
    is("A 201#1 [0,100]; B 201#2 [60,90]", &lease, Safety);
    is("A 500 [0,100]; B 201#2 [60,90]", &lease, Accept);
    counted("A lost [0,5]; B 409 [10,12]; C 201#1 [70,80]", &lease, 1, Accept);
}

#[test]
fn the_core_is_what_matters() {
    let history = row("A lost [0,5]; B 201#1 [10,16]; C 409 [11,12]; D 201#2 [47,52]; E 201#1 [60,61]");
    assert_eq!(weaken(&history, &strict().any_refusal(), BUDGET), [1, 3]);
    let history = row("A 201#1 [0,10]; B 409 [12,14]; C 201#1 [16,17]");
    assert_eq!(weaken(&history, &strict().any_policy(), BUDGET), [0, 1]);
    let accepted = row("A 201#1 [0,10]; B 201#1 [20,25]");
    assert!(weaken(&accepted, &strict(), BUDGET).is_empty());
    // A weakened owner has no limit that it did not have before.
    let stuck = Rules { stuck: Some(10), ..strict() };
    let history = row("A 201#1 [0,100]; B 409 [50,51]; C 409 [90,91]; D 201#2 [95,96]");
    assert_eq!(weaken(&history, &stuck.any_refusal(), BUDGET), [0, 3]);
}

#[test]
fn limits_are_solved_to_the_unit() {
    let unknown = Rules { retention: Bound::Unknown, ..strict() };
    let limits = solve(&row("A 201#1 [0,10]; B 201#2 [98,112]"), &unknown, BUDGET);
    assert_eq!(limits.retention_at_most, Some(112));
    let unknown = Rules { lease: Bound::Unknown, ..strict() };
    let limits = solve(&row("A 500 [0,100]; B 201#2 [60,90]; C 201#2 [61,99]"), &unknown, BUDGET);
    assert_eq!(limits.lease_at_most, None, "the failure may have come first");
    let replay = Rules { release: false, store: true, ..unknown };
    let limits = solve(&row("A 500 [0,100]; B 201#2 [60,90]"), &replay, BUDGET);
    assert_eq!(limits.lease_at_most, Some(90));
    assert_eq!(solve(&row("A 201#1 [0,10]; B 201#1 [20,25]"), &strict(), BUDGET), Default::default());
}

#[test]
fn a_budget_that_is_too_small_decides_nothing() {
    let history = row("A 201#1 [0,10]; B 201#2 [2,12]");
    assert_eq!(judge_key(&history, &strict(), 2), Ruling::TooMuch);
}
