//! The world of one key, and the invariants it must keep.

use super::{Core, MAX_STEPS};
use crate::reference::core::*;
use std::collections::HashMap;
use std::time::Duration;

pub(super) const TERMS: Terms = Terms { lease: Duration::from_millis(30), retention: Duration::from_millis(200) };

/// The clocks of two nodes differ by this many milliseconds.
const SKEW: u64 = 7;

/// All steps of the clock backwards in one history, with the skew, stay below this, in milliseconds.
pub(super) const MAX_BACK: u64 = 5 * MAX_STEPS as u64 + SKEW;

/// One thing that happens.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// A request with one of a few payloads comes to a node. The payload says how many phases its execution has.
    Request { payload: u8, node: u8 },
    /// An execution at work takes its next step. `which` picks one of them.
    Go { which: u8 },
    /// An execution at work fails and gives the key back.
    Fail { which: u8 },
    /// An execution at work dies and cleans nothing up.
    Crash { which: u8 },
    /// The lease of any execution that ever was is renewed: renewals may be late.
    Renew { which: u8, node: u8 },
    /// The clock moves, sometimes backwards.
    Clock { by: i64 },
    /// A node removes the record if it has expired.
    Sweep { node: u8 },
}

/// How often things happened.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reached {
    pub(super) resumed: u32,
    pub(super) fenced: u32,
    pub(super) replays: u32,
    pub(super) renewed_in_time: u32,
    pub(super) given_back: u32,
    pub(super) expired: u32,
    pub(super) called_again: u32,
}

impl Reached {
    pub(super) fn add(&mut self, other: &Self) {
        self.resumed += other.resumed;
        self.fenced += other.fenced;
        self.replays += other.replays;
        self.renewed_in_time += other.renewed_in_time;
        self.given_back += other.given_back;
        self.expired += other.expired;
        self.called_again += other.called_again;
    }
}

/// An execution at work.
#[derive(Debug, Clone)]
struct Execution {
    owner: OwnerToken,
    payload: u8,
    node: u8,
    /// Phases that have committed, as far as it knows.
    phases: u8,
    /// What the first phase made: the outside key is derived from it.
    made: u128,
    /// The outside call that comes after the current phase has been made.
    called: bool,
}

/// What the record stands for, as the invariants see it.
#[derive(Debug, Clone)]
struct Intent {
    payload: u8,
    /// Phases that have committed. Each may happen once.
    phases: u8,
    made: u128,
    answer: Option<Answer>,
    owner: OwnerToken,
    /// Until this time nobody may take over; none when the owner gave the key back.
    held_until: Option<Time>,
    /// The guarantee ends here. Once a node's clock has passed it, it is over for good.
    promised_until: Time,
    over: bool,
}

pub(super) struct World {
    core: Core,
    now: Time,
    record: Option<Record>,
    intent: Option<Intent>,
    at_work: Vec<Execution>,
    owners: Vec<OwnerToken>,
    /// The outside system: what was asked for under each key the first time.
    outside: HashMap<(u128, u8), u8>,
    next: u128,
    pub(super) reached: Reached,
}

fn answer(owner: OwnerToken) -> Answer {
    Answer { status: 201, headers: Vec::new(), body: owner.0.to_string().into() }
}

impl World {
    pub(super) fn new(core: Core) -> Self {
        Self {
            core,
            now: Time(10_000),
            record: None,
            intent: None,
            at_work: Vec::new(),
            owners: Vec::new(),
            outside: HashMap::new(),
            next: 0,
            reached: Reached::default(),
        }
    }

    fn time(&self, node: u8) -> Time {
        Time(self.now.0 + if node == 0 { 0 } else { SKEW })
    }

    pub(super) fn step(&mut self, step: &Step) -> Result<(), String> {
        match *step {
            Step::Request { payload, node } => self.request(payload, node)?,
            Step::Go { which } => {
                if let Some(execution) = self.take(which) {
                    self.go(execution)?;
                }
            }
            Step::Fail { which } => {
                if let Some(execution) = self.take(which) {
                    self.fail(&execution);
                }
            }
            Step::Crash { which } => drop(self.take(which)),
            Step::Renew { which, node } => self.renew(which, node)?,
            Step::Clock { by } => self.now = Time(self.now.0.saturating_add_signed(by)),
            Step::Sweep { node } => {
                let now = self.time(node);
                self.pass(now);
                self.record = self.record.take().filter(|record| !expired(record, now));
            }
        }
        Ok(())
    }

    /// A node has read this time, so a guarantee that ends before it is over.
    fn pass(&mut self, now: Time) {
        if let Some(intent) = self.intent.as_mut().filter(|intent| now >= intent.promised_until) {
            intent.over = true;
        }
    }

    fn take(&mut self, which: u8) -> Option<Execution> {
        (!self.at_work.is_empty()).then(|| self.at_work.remove(usize::from(which) % self.at_work.len()))
    }

    /// The intent, while the guarantee for it holds.
    fn guaranteed(&self) -> Option<&Intent> {
        self.intent.as_ref().filter(|intent| !intent.over)
    }

    fn request(&mut self, payload: u8, node: u8) -> Result<(), String> {
        let now = self.time(node);
        self.pass(now);
        self.next += 1;
        let owner = OwnerToken(self.next);
        let request = Claim { fingerprint: Fingerprint([payload; 32]), owner, now };
        match (self.core.claim)(self.record.as_ref(), &request, &TERMS) {
            Verdict::Granted(record) => self.granted(record, payload, node, now),
            Verdict::Replay(replayed) => {
                self.reached.replays += 1;
                match &self.intent {
                    Some(intent) if intent.payload == payload && intent.answer.as_ref() == Some(&replayed) => Ok(()),
                    other => Err(format!("replayed {replayed:?} for payload {payload}, but there is {other:?}")),
                }
            }
            Verdict::InFlight(until) => match self.guaranteed() {
                _ if until <= now || until > now.after(TERMS.lease + Duration::from_millis(MAX_BACK)) => {
                    Err(format!("in flight until {until:?} at {now:?}: wedged"))
                }
                Some(Intent { held_until: None, .. }) => Err("in flight though it was given back".into()),
                _ => Ok(()),
            },
            Verdict::Mismatch => match &self.record {
                Some(record) if record.fingerprint != request.fingerprint => Ok(()),
                other => Err(format!("a mismatch for payload {payload} against {other:?}")),
            },
        }
    }

    fn granted(&mut self, record: Record, payload: u8, node: u8, now: Time) -> Result<(), String> {
        let owner = record.owner;
        let State::Claimed { lease_until, recovery } = &record.state else {
            return Err("granted something that is not claimed".into());
        };
        let (phases, made) = match recovery {
            None => (0, owner.0),
            Some(Recovery { point, saved }) => {
                self.reached.resumed += 1;
                (point.parse().map_err(|_| "a point")?, saved.parse().map_err(|_| "what was saved")?)
            }
        };
        if let Some(intent) = self.guaranteed() {
            if intent.answer.is_some() {
                return Err(format!("granted at {now:?} though a result is kept: {intent:?}"));
            }
            if intent.payload != payload {
                return Err(format!("payload {payload} was granted the key of {intent:?}"));
            }
            if intent.held_until.is_some_and(|end| now < end) {
                return Err(format!("taken over at {now:?} from a live owner: {intent:?}"));
            }
            if intent.phases != phases || (phases > 0 && intent.made != made) {
                return Err(format!("goes on after phase {phases} of {made}, but there is {intent:?}"));
            }
        } else if recovery.is_some() && self.intent.as_ref().is_none_or(|intent| intent.payload != payload) {
            return Err("went on with the phases of another intent".into());
        } else if self.intent.is_some() && recovery.is_none() {
            self.reached.expired += 1;
        }
        self.intent = Some(Intent {
            payload,
            phases,
            made,
            answer: None,
            owner,
            held_until: Some(*lease_until),
            promised_until: now.after(TERMS.retention).max(*lease_until),
            over: false,
        });
        self.record = Some(record);
        self.owners.push(owner);
        self.at_work.push(Execution { owner, payload, node, phases, made, called: false });
        Ok(())
    }

    /// The next step of an execution: a call, the end of a phase, or the end of the last one.
    fn go(&mut self, mut execution: Execution) -> Result<(), String> {
        let now = self.time(execution.node);
        let Execution { owner, payload, phases, made, .. } = execution;
        // After its first phase an execution calls the outside system, once before each later end of a phase.
        if phases > 0 && !execution.called {
            execution.called = true;
            let first = *self.outside.entry((made, phases)).or_insert(payload);
            self.reached.called_again += u32::from(first == payload && self.owners.last() != Some(&owner));
            self.at_work.push(execution);
            return match first == payload {
                true => Ok(()),
                false => Err(format!("asked the outside for {payload} under a key that was used for {first}")),
            };
        }
        self.pass(now);
        let current = self.record.as_ref();
        let ended = if phases < payload {
            let reached = Recovery { point: (phases + 1).to_string(), saved: made.to_string() };
            (self.core.advance)(current, owner, reached, now, &TERMS)
        } else {
            (self.core.complete)(current, owner, answer(owner), now, &TERMS)
        };
        let Ok(record) = ended else {
            self.reached.fenced += 1;
            return Ok(());
        };
        let Some(intent) = self.intent.as_mut() else { return Err("committed without a claim".into()) };
        if intent.owner != owner || intent.held_until.is_none() {
            return Err(format!("{owner:?} committed though the key is that of {intent:?}"));
        }
        if intent.answer.is_some() || intent.phases != phases {
            return Err(format!("{owner:?} committed phase {phases} after {intent:?}"));
        }
        intent.over = false;
        match &record.state {
            State::Claimed { lease_until, .. } => {
                intent.phases += 1;
                intent.held_until = Some(*lease_until);
                intent.promised_until = intent.promised_until.max(*lease_until);
                self.at_work.push(Execution { phases: phases + 1, called: false, ..execution });
            }
            State::Completed(answer) => {
                intent.answer = Some(answer.clone());
                intent.promised_until = now.after(TERMS.retention);
            }
        }
        self.record = Some(record);
        Ok(())
    }

    fn fail(&mut self, execution: &Execution) {
        if let Ok(left) = (self.core.release)(self.record.as_ref(), execution.owner) {
            self.reached.given_back += 1;
            self.intent = self.intent.take().filter(|intent| intent.phases > 0).map(|mut intent| {
                intent.held_until = None;
                intent
            });
            self.record = left;
        }
    }

    fn renew(&mut self, which: u8, node: u8) -> Result<(), String> {
        let now = self.time(node);
        let Some(owner) = self.owners.get(usize::from(which) % self.owners.len().max(1)).copied() else {
            return Ok(());
        };
        let Ok(record) = (self.core.renew)(self.record.as_ref(), owner, now, &TERMS) else { return Ok(()) };
        let State::Claimed { lease_until, .. } = record.state else { return Err("renewed what is completed".into()) };
        match self.intent.as_mut() {
            Some(intent) if intent.owner == owner && intent.held_until.is_some() && intent.answer.is_none() => {
                self.reached.renewed_in_time += u32::from(intent.held_until.is_some_and(|end| now < end));
                intent.held_until = intent.held_until.max(Some(now.after(TERMS.lease)));
                intent.promised_until = intent.promised_until.max(lease_until);
            }
            other => return Err(format!("{owner:?} renewed the lease of {other:?}")),
        }
        self.record = Some(record);
        Ok(())
    }

    /// Once nobody is at work, one lease later the key serves its intent again.
    pub(super) fn not_wedged(&mut self) -> Result<(), String> {
        self.at_work.clear();
        self.now = self.now.after(TERMS.lease + Duration::from_millis(MAX_BACK));
        let Some(record) = &self.record else { return Ok(()) };
        let request = Claim { fingerprint: record.fingerprint, owner: OwnerToken(u128::MAX), now: self.now };
        match (self.core.claim)(self.record.as_ref(), &request, &TERMS) {
            Verdict::Granted(_) | Verdict::Replay(_) => Ok(()),
            refused => Err(format!("wedged after the lease: {refused:?}")),
        }
    }
}
