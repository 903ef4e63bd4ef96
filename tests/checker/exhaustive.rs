//! The definition, word by word and without any reduction: every order of steps is tried, each answer has a step of
//! its own, and the instants of a whole order are solved as difference constraints.

use std::collections::HashSet;

use idemproof::judge::model::{Bound, KeyHistory, Outcome, Rules, Time};

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    Free(Option<u32>),
    InFlight(usize),
    /// `true`: a success. The attempt whose payload it answers, and its result once that is known.
    Completed(bool, usize, Option<u32>),
}

/// `later - earlier >= least`, between steps.
#[derive(Clone, Copy)]
struct Gap {
    earlier: usize,
    later: usize,
    least: Time,
}

/// Phase, answered, owned, results, effects, possible effects, earliest instant.
type Tried = (Phase, u32, u32, Vec<u32>, u32, u32, Time);

struct Search<'a> {
    history: &'a KeyHistory,
    rules: &'a Rules,
    /// The window of each step.
    steps: Vec<(Time, Time)>,
    gaps: Vec<Gap>,
    tried: HashSet<Tried>,
    timed: bool,
}

#[derive(Clone)]
struct Here {
    phase: Phase,
    /// The step that began the phase.
    since: usize,
    answered: u32,
    owned: u32,
    results: Vec<u32>,
    effects: u32,
    maybe: u32,
    earliest: Vec<Time>,
}

pub(crate) fn explains(history: &KeyHistory, rules: &Rules) -> bool {
    let timed = rules.stuck.is_some()
        || rules.retention_most.is_some()
        || matches!(rules.lease, Bound::AtLeast(span) if span > 0)
        || matches!(rules.retention, Bound::AtLeast(span) if span > 0);
    let mut search = Search { history, rules, steps: Vec::new(), gaps: Vec::new(), tried: HashSet::new(), timed };
    search.go(&Here {
        phase: Phase::Free(None),
        since: 0,
        answered: 0,
        owned: 0,
        results: Vec::new(),
        effects: 0,
        maybe: 0,
        earliest: Vec::new(),
    })
}

fn least(bound: Bound) -> Option<Time> {
    match bound {
        Bound::Never => None,
        Bound::AtLeast(span) => Some(span),
        Bound::Unknown => Some(0),
    }
}

const ANY: (Time, Time) = (-1_000_000, 1_000_000);

impl Search<'_> {
    fn go(&mut self, here: &Here) -> bool {
        let all = &self.history.observations;
        let asks = |index: usize| !matches!(all[index].outcome, Outcome::Lost | Outcome::Cut);
        if (0..all.len()).all(|index| !asks(index) || here.answered & (1 << index) != 0) {
            return self.solvable();
        }
        if !self.timed {
            let at = here.earliest.last().copied().unwrap_or(ANY.0);
            let mut results = here.results.clone();
            results.sort_unstable();
            if !self.tried.insert((here.phase, here.answered, here.owned, results, here.effects, here.maybe, at)) {
                return false;
            }
        }
        (0..all.len()).any(|index| asks(index) && here.answered & (1 << index) == 0 && self.answer(here, index))
            || self.moves(here)
    }

    /// Adds a step and goes on. `ages`: the phase must be so old; `within`: and not older.
    fn step(&mut self, here: &Here, window: (Time, Time), ages: Option<Time>, next: Here) -> bool {
        let at = self.steps.len();
        let mut earliest = here.earliest.last().copied().unwrap_or(ANY.0).max(window.0);
        let before = self.gaps.len();
        if at > 0 {
            self.gaps.push(Gap { earlier: at - 1, later: at, least: 0 });
        }
        if let Some(least) = ages {
            self.gaps.push(Gap { earlier: here.since, later: at, least });
            earliest = earliest.max(here.earliest[here.since] + least);
        }
        // Whatever happens in a phase that may not get old happens while it is young enough.
        if let Some(most) = self.limit(here.phase) {
            self.gaps.push(Gap { earlier: at, later: here.since, least: -most });
        }
        let mut found = false;
        if earliest <= window.1 {
            self.steps.push(window);
            let mut next = next;
            next.earliest = here.earliest.clone();
            next.earliest.push(earliest);
            if std::mem::discriminant(&next.phase) != std::mem::discriminant(&here.phase) {
                next.since = at;
            }
            found = self.go(&next);
            self.steps.pop();
        }
        self.gaps.truncate(before);
        found
    }

    fn limit(&self, phase: Phase) -> Option<Time> {
        match phase {
            Phase::InFlight(owner) => match self.history.observations[owner].outcome {
                Outcome::Lost | Outcome::Cut => self.rules.stuck,
                Outcome::Failure(_) if self.rules.refuses_freely => self.rules.stuck,
                _ => None,
            },
            Phase::Completed(..) => self.rules.retention_most,
            Phase::Free(_) => None,
        }
    }

    /// Whether the instants of all steps can be chosen: no negative cycle.
    fn solvable(&self) -> bool {
        let mut at: Vec<Time> = self.steps.iter().map(|window| window.0).collect();
        for _ in 0..=at.len() {
            let mut changed = false;
            for gap in &self.gaps {
                if at[gap.later] < at[gap.earlier] + gap.least {
                    at[gap.later] = at[gap.earlier] + gap.least;
                    changed = true;
                }
            }
            if at.iter().zip(&self.steps).any(|(at, window)| *at > window.1) {
                return false;
            }
            if !changed {
                return true;
            }
        }
        false
    }

    fn answer(&mut self, here: &Here, index: usize) -> bool {
        let all = &self.history.observations;
        let (asked, rules) = (&all[index], self.rules);
        let same = |owner: usize| !rules.fingerprint || all[owner].payload == asked.payload;
        let mut next = here.clone();
        next.answered |= 1 << index;
        let permitted = match (asked.outcome, here.phase) {
            (Outcome::Success(id) | Outcome::Replayed(id), Phase::Completed(true, owner, stored)) => {
                let named = match (id, stored) {
                    (Some(id), None) if !here.results.contains(&id) => {
                        next.phase = Phase::Completed(true, owner, Some(id));
                        next.results.push(id);
                        true
                    }
                    (None, _) => true,
                    (id, stored) => id == stored,
                };
                same(owner) && named
            }
            (Outcome::Failure(_), _) if rules.refuses_freely => true,
            (Outcome::Failure(_), phase) if here.owned & (1 << index) != 0 && phase != Phase::InFlight(index) => true,
            (Outcome::Failure(id), Phase::Completed(false, owner, stored))
                if all[owner].outcome != Outcome::Rejected =>
            {
                let named = match (id, stored) {
                    (Some(_), None) => {
                        next.phase = Phase::Completed(false, owner, id);
                        true
                    }
                    (None, _) => true,
                    (id, stored) => id == stored,
                };
                same(owner) && named
            }
            (Outcome::Conflict | Outcome::Mismatch | Outcome::Refused, _) if rules.refuses_freely => true,
            (Outcome::Refused | Outcome::Rejected, _) => true,
            (Outcome::Conflict, Phase::InFlight(owner)) => rules.conflict && owner != index,
            (Outcome::Mismatch, Phase::InFlight(owner)) => owner != index && !same(owner),
            (Outcome::Mismatch, Phase::Completed(_, owner, _)) => !same(owner),
            (Outcome::Mismatch, Phase::Free(Some(payload))) => rules.fingerprint && payload != asked.payload,
            (Outcome::Effects(least, most), phase) => {
                let running = match phase {
                    Phase::InFlight(owner) => u32::from(matches!(
                        all[owner].outcome,
                        Outcome::Lost | Outcome::Success(_) | Outcome::Failure(_)
                    )),
                    _ => 0,
                };
                here.effects <= most && least <= here.effects + here.maybe + running
            }
            _ => false,
        };
        permitted && self.step(here, (asked.from, asked.to), None, next)
    }

    fn moves(&mut self, here: &Here) -> bool {
        match here.phase {
            Phase::Free(_) => (0..self.history.observations.len()).any(|index| self.acquire(here, index)),
            Phase::InFlight(owner) => self.leave(here, owner),
            Phase::Completed(..) => least(self.rules.retention).is_some_and(|age| {
                let next = Here { phase: Phase::Free(None), ..here.clone() };
                self.step(here, ANY, Some(age), next)
            }),
        }
    }

    fn acquire(&mut self, here: &Here, index: usize) -> bool {
        let asked = &self.history.observations[index];
        let rules = self.rules;
        let bit = 1 << index;
        let (fresh, waiting) = (here.owned & bit == 0, here.answered & bit == 0);
        let may = match asked.outcome {
            Outcome::Lost | Outcome::Cut | Outcome::Rejected => fresh,
            Outcome::Failure(_) if rules.refuses_freely => fresh,
            Outcome::Refused | Outcome::Effects(..) => false,
            Outcome::Conflict | Outcome::Mismatch if rules.refuses_freely => false,
            // Whether anything comes of it is seen when it finishes or loses its key.
            _ => fresh && waiting,
        };
        let late = if asked.outcome == Outcome::Lost { rules.late } else { 0 };
        let next = Here { phase: Phase::InFlight(index), owned: here.owned | bit, ..here.clone() };
        may && self.step(here, (asked.from, asked.to + late), None, next)
    }

    fn leave(&mut self, here: &Here, owner: usize) -> bool {
        let asked = &self.history.observations[owner];
        let rules = self.rules;
        let until = (ANY.0, asked.to);
        let bit = 1 << owner;
        let freed = Phase::Free(rules.held_after_release.then_some(asked.payload));
        let completed = |success: bool, id: Option<u32>, answers: bool| {
            let mut next = here.clone();
            next.phase = Phase::Completed(success, owner, id);
            if success {
                next.effects += 1;
                next.results.extend(id);
            } else {
                next.maybe += 1;
            }
            if answers {
                next.answered |= bit;
            }
            next
        };
        let lost =
            asked.outcome == Outcome::Lost || (matches!(asked.outcome, Outcome::Failure(_)) && rules.refuses_freely);
        let lost_key = Here { phase: freed, ..here.clone() };
        if let Some(lease) = least(rules.lease)
            && self.step(here, ANY, Some(lease), lost_key.clone())
        {
            return true;
        }
        if lost {
            return ((rules.release || rules.cancels || rules.stuck.is_some()) && self.step(here, ANY, None, lost_key))
                || self.step(here, ANY, None, completed(true, None, false))
                || (rules.store && self.step(here, ANY, None, completed(false, None, false)));
        }
        match asked.outcome {
            Outcome::Cut => self.step(here, ANY, None, lost_key),
            Outcome::Rejected => {
                let kept = Here { phase: Phase::Completed(false, owner, None), ..here.clone() };
                self.step(here, ANY, None, lost_key) || self.step(here, ANY, None, kept)
            }
            Outcome::Success(id) if id.is_none_or(|id| !here.results.contains(&id)) => {
                self.step(here, until, None, completed(true, id, true))
            }
            Outcome::Failure(id) => {
                let mut released = lost_key;
                released.answered |= bit;
                (rules.store && self.step(here, until, None, completed(false, id, true)))
                    || (rules.release && self.step(here, until, None, released))
            }
            _ => false,
        }
    }
}
