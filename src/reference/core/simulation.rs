//! Random lives of one key, in virtual time, against the invariants.
//!
//! The world is one record, the effects that were committed, an outside system that takes keys, and any number of
//! executions at work. Every step is atomic, as a store makes it, and the order of steps is random. The clock may step
//! back, and two nodes read it with a skew, so a request is told a time that may lie before that of an earlier one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod mutants;
mod world;

use super::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use world::{Step, World};

/// The transitions, any of which a mutant may replace.
#[derive(Clone, Copy)]
struct Core {
    claim: fn(Option<&Record>, &Claim, &Terms) -> Verdict,
    renew: fn(Option<&Record>, OwnerToken, Time, &Terms) -> Result<Record, LostLease>,
    advance: EndOfPhase<Recovery>,
    complete: EndOfPhase<Answer>,
    release: fn(Option<&Record>, OwnerToken) -> Result<Option<Record>, LostLease>,
}

/// The end of a phase, at a recovery point or with an answer.
type EndOfPhase<T> = fn(Option<&Record>, OwnerToken, T, Time, &Terms) -> Result<Record, LostLease>;

const RIGHT: Core = Core { claim, renew, advance, complete, release };

const MAX_STEPS: usize = 24;

/// The steps that random numbers stand for: a number makes a step quickly, and shrinks well.
fn steps(numbers: &[u32]) -> Vec<Step> {
    numbers.iter().map(|number| step(*number)).collect()
}

fn step(number: u32) -> Step {
    let [kind, which, payload, node] = number.to_be_bytes();
    let (payload, node) = (payload % 3, node % 2);
    match kind % 20 {
        0..=4 => Step::Request { payload, node },
        5..=10 => Step::Go { which },
        11 => Step::Fail { which },
        12 => Step::Crash { which },
        13..=14 => Step::Renew { which, node },
        15..=16 => Step::Clock { by: i64::from(which) % 65 - 5 },
        17..=18 => Step::Clock { by: 190 + i64::from(which) % 20 },
        _ => Step::Sweep { node },
    }
}

fn numbers() -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(any::<u32>(), 0..MAX_STEPS)
}

fn live(steps: &[Step], core: Core) -> Result<(), String> {
    let mut world = World::new(core);
    for step in steps {
        world.step(step)?;
    }
    world.not_wedged()
}

/// Looks for a history in which an invariant is broken; the smallest one found comes with the invariant.
fn search(cases: u32, core: Core) -> Result<(), String> {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let found = runner.run(&numbers(), |numbers| live(&steps(&numbers), core).map_err(TestCaseError::fail));
    match found {
        Ok(()) => Ok(()),
        Err(TestError::Fail(why, numbers)) => Err(format!("{} after {:?}", why.message(), steps(&numbers))),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn every_history_keeps_the_invariants() {
    // IDEMPROOF_HISTORIES sets how many; --nocapture shows how many that is in a minute.
    let cases = std::env::var("IDEMPROOF_HISTORIES").ok().map_or(100_000, |cases| cases.parse().expect("a number"));
    let begun = std::time::Instant::now();
    if let Err(why) = search(cases, RIGHT) {
        panic!("{why}");
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!("{cases} histories in {seconds:.1} s, {:.0} per minute", f64::from(cases) / seconds * 60.0);
}

/// How often things that matter happen, in histories that do not depend on luck.
#[test]
fn the_histories_reach_what_matters() {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut reached = world::Reached::default();
    for _ in 0..5_000 {
        let numbers = numbers().new_tree(&mut runner).expect("numbers").current();
        let mut world = World::new(RIGHT);
        for step in &steps(&numbers) {
            world.step(step).expect("the core is right");
        }
        reached.add(&world.reached);
    }
    let world::Reached { resumed, fenced, replays, renewed_in_time, given_back, expired, called_again } = reached;
    for count in [resumed, fenced, replays, renewed_in_time, given_back, expired, called_again] {
        assert!(count > 50, "{reached:?}");
    }
}
