//! Random lives of one key, in virtual time, against the invariants.
//!
//! The world is one record, a list of commits and any number of attempts at work. Every step is atomic, as a store makes it.
//! Clocks are steps too: each request is told a time that may lie before that of an earlier one.

use super::*;
use proptest::prelude::*;
use std::time::Duration;

const TERMS: Terms = Terms { lease: Duration::from_millis(30), retention: Duration::from_millis(200) };

/// One thing that happens.
#[derive(Debug, Clone)]
enum Step {
    /// A request with one of a few payloads.
    Request { payload: u8 },
    /// An attempt at work ends well. `which` picks one of them.
    Finish { which: usize },
    /// An attempt at work fails and gives the key back.
    Fail { which: usize },
    /// An attempt at work dies and cleans nothing up.
    Crash { which: usize },
    /// The clock moves, sometimes backwards.
    Clock { by: i64 },
    /// Somebody removes the record if it has expired.
    Sweep,
}

/// The transition that a mutant may replace.
type Complete = fn(Option<&Record>, OwnerToken, Answer, Time, &Terms) -> Result<Record, LostLease>;
type Decide = fn(Option<&Record>, &Claim, &Terms) -> Verdict;

struct World {
    now: Time,
    record: Option<Record>,
    at_work: Vec<(OwnerToken, u8)>,
    /// The last commit: its payload, its answer, and when the guarantee for it ends.
    committed: Option<(u8, Answer, Time)>,
    /// The clock has passed that end once, so a later step backwards does not bring the guarantee back.
    guarantee_over: bool,
    next: u128,
    decide: Decide,
    complete: Complete,
}

fn answer(owner: OwnerToken) -> Answer {
    Answer { status: 201, headers: Vec::new(), body: owner.0.to_string().into() }
}

impl World {
    fn new(decide: Decide, complete: Complete) -> Self {
        let (record, at_work, committed) = (None, Vec::new(), None);
        Self { now: Time(10_000), record, at_work, committed, guarantee_over: false, next: 0, decide, complete }
    }

    /// The last commit, while the guarantee for it holds.
    fn guaranteed(&self) -> Option<&(u8, Answer, Time)> {
        self.committed.as_ref().filter(|_| !self.guarantee_over)
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match *step {
            Step::Request { payload } => self.request(payload)?,
            Step::Finish { which } => {
                if let Some((owner, payload)) = self.take(which) {
                    self.finish(owner, payload)?;
                }
            }
            Step::Fail { which } => {
                if let Some((owner, _)) = self.take(which)
                    && let Ok(left) = release(self.record.as_ref(), owner, self.now)
                {
                    self.record = left;
                }
            }
            Step::Crash { which } => drop(self.take(which)),
            Step::Clock { by } => {
                self.now = Time(self.now.0.saturating_add_signed(by));
                self.guarantee_over |= self.committed.as_ref().is_some_and(|(_, _, end)| self.now >= *end);
            }
            Step::Sweep => self.record = self.record.take().filter(|record| !expired(record, self.now)),
        }
        Ok(())
    }

    fn take(&mut self, which: usize) -> Option<(OwnerToken, u8)> {
        (!self.at_work.is_empty()).then(|| self.at_work.remove(which % self.at_work.len()))
    }

    fn request(&mut self, payload: u8) -> Result<(), String> {
        self.next += 1;
        let owner = OwnerToken(self.next);
        let request = Claim { fingerprint: Fingerprint([payload; 32]), owner, now: self.now };
        match (self.decide)(self.record.as_ref(), &request, &TERMS) {
            Verdict::Granted(record) => {
                if let Some((_, _, end)) = self.guaranteed() {
                    return Err(format!("granted at {:?} though a result is kept until {end:?}", self.now));
                }
                self.record = Some(record);
                self.at_work.push((owner, payload));
            }
            Verdict::Replay(replayed) => match &self.committed {
                Some((kept, original, _)) if *kept == payload && *original == replayed => {}
                other => {
                    return Err(format!("replayed {replayed:?} for payload {payload}, but the commit is {other:?}"));
                }
            },
            Verdict::InFlight(until) => {
                if until <= self.now || until > self.now.after(TERMS.lease + Duration::from_millis(MAX_BACK)) {
                    return Err(format!("in flight until {until:?} at {:?}: wedged", self.now));
                }
            }
            Verdict::Mismatch => match &self.record {
                Some(record) if record.fingerprint != request.fingerprint => {}
                other => return Err(format!("a mismatch for payload {payload} against {other:?}")),
            },
        }
        Ok(())
    }

    fn finish(&mut self, owner: OwnerToken, payload: u8) -> Result<(), String> {
        let current = self.record.as_ref().map(|record| record.owner);
        if let Ok(record) = (self.complete)(self.record.as_ref(), owner, answer(owner), self.now, &TERMS) {
            if current != Some(owner) {
                return Err(format!("{owner:?} committed though the key belongs to {current:?}"));
            }
            if let Some((_, first, _)) = self.guaranteed() {
                return Err(format!("a second commit by {owner:?} after {first:?}"));
            }
            self.committed = Some((payload, answer(owner), self.now.after(TERMS.retention)));
            self.guarantee_over = false;
            self.record = Some(record);
        }
        Ok(())
    }

    /// Once nobody is at work, one lease later the key serves its intent again.
    fn not_wedged(&mut self) -> Result<(), String> {
        self.at_work.clear();
        self.now = self.now.after(TERMS.lease + Duration::from_millis(MAX_BACK));
        let Some(record) = &self.record else { return Ok(()) };
        let request = Claim { fingerprint: record.fingerprint, owner: OwnerToken(u128::MAX), now: self.now };
        match (self.decide)(self.record.as_ref(), &request, &TERMS) {
            Verdict::Granted(_) | Verdict::Replay(_) => Ok(()),
            refused => Err(format!("wedged after the lease: {refused:?}")),
        }
    }
}

/// All steps of the clock backwards in one history together stay below this, in milliseconds.
const MAX_BACK: u64 = 5 * MAX_STEPS as u64;
const MAX_STEPS: usize = 24;

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0..2u8).prop_map(|payload| Step::Request { payload }),
        3 => any::<usize>().prop_map(|which| Step::Finish { which }),
        1 => any::<usize>().prop_map(|which| Step::Fail { which }),
        1 => any::<usize>().prop_map(|which| Step::Crash { which }),
        2 => (-5..60i64).prop_map(|by| Step::Clock { by }),
        1 => (190..210i64).prop_map(|by| Step::Clock { by }),
        1 => Just(Step::Sweep),
    ]
}

fn live(steps: &[Step], decide: Decide, complete: Complete) -> Result<(), String> {
    let mut world = World::new(decide, complete);
    for step in steps {
        world.step(step)?;
    }
    world.not_wedged()
}

/// The smallest history found in which a mutant breaks an invariant.
fn convicted(decide: Decide, complete: Complete) -> Option<String> {
    use proptest::test_runner::{Config, TestRunner};
    let mut runner = TestRunner::new(Config { cases: 5_000, failure_persistence: None, ..Config::default() });
    runner
        .run(&proptest::collection::vec(step(), 0..MAX_STEPS), |steps| {
            live(&steps, decide, complete).map_err(TestCaseError::fail)
        })
        .err()
        .map(|error| error.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_history_keeps_the_invariants(steps in proptest::collection::vec(step(), 0..MAX_STEPS)) {
        live(&steps, claim, complete).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn a_completion_without_fencing_is_found() {
    fn unfenced(
        _: Option<&Record>,
        owner: OwnerToken,
        answer: Answer,
        now: Time,
        terms: &Terms,
    ) -> Result<Record, LostLease> {
        let request = Claim { fingerprint: Fingerprint([0; 32]), owner, now };
        Ok(Record { state: State::Completed(answer), expires: now.after(terms.retention), ..first(&request, terms) })
    }
    assert!(convicted(claim, unfenced).is_some());
}

#[test]
fn a_claim_that_ignores_the_record_is_found() {
    fn careless(_: Option<&Record>, request: &Claim, terms: &Terms) -> Verdict {
        Verdict::Granted(first(request, terms))
    }
    assert!(convicted(careless, complete).is_some());
}

#[test]
fn a_lease_that_never_ends_is_found() {
    fn jealous(current: Option<&Record>, request: &Claim, terms: &Terms) -> Verdict {
        match current.map(|record| &record.state) {
            Some(State::Claimed { .. }) => Verdict::InFlight(Time(u64::MAX)),
            _ => claim(current, request, terms),
        }
    }
    assert!(convicted(jealous, complete).is_some());
}

#[test]
fn a_result_that_dies_early_is_found() {
    fn forgetful(current: Option<&Record>, request: &Claim, terms: &Terms) -> Verdict {
        claim(current, &Claim { now: request.now.after(terms.retention / 2), ..*request }, terms)
    }
    assert!(convicted(forgetful, complete).is_some());
}
