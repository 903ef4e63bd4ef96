//! What a server that is right may do next, and which answers it gives in a state.

use super::{
    record::{Bound, Outcome, Time},
    state::{Owner, Phase, State, Stored, Table},
    zone::Zone,
};

/// The part of the timeline in which nothing begins and nothing ends.
#[derive(Clone, Copy)]
pub(super) struct Slice<'a> {
    pub(super) from: Time,
    pub(super) to: Time,
    /// What is under way in it.
    pub(super) open: &'a [usize],
}

impl Table<'_> {
    /// Lets time pass within a phase; `None` if the phase cannot last into the slice.
    pub(super) fn wait(&self, phase: Phase, zone: Zone, slice: Slice<'_>) -> Option<Zone> {
        let zone = zone.later(slice.from, slice.to)?;
        let limit = match phase {
            Phase::InFlight(Owner::Lost(_) | Owner::Cut(_)) => self.rules.stuck,
            Phase::Completed(..) => self.rules.retention_most,
            _ => None,
        };
        limit.map_or(Some(zone), |most| zone.fresh(most))
    }

    /// Explains every answer that the state permits. An answer changes no state, so the earliest explanation is as
    /// good as any.
    pub(super) fn settle(&self, state: &mut State, slice: Slice<'_>) {
        for index in slice.open {
            let place = self.place[*index];
            if !state.explained.has(place) && self.permits(state, *index) {
                state.explained.add(place);
            }
        }
    }

    fn permits(&self, state: &State, index: usize) -> bool {
        let asked = &self.all[index];
        let rules = self.rules;
        let running = match state.phase {
            Phase::InFlight(owner) => Some(owner),
            _ => None,
        };
        let others = running.is_some_and(|owner| owner != Owner::Known(index as u32));
        match asked.outcome {
            Outcome::Success(id) | Outcome::Replayed(id) => match state.phase {
                Phase::Completed(Stored::Success(stored), payload) => {
                    rules.same(payload, asked.payload) && (id.is_none() || id == stored)
                }
                _ => false,
            },
            Outcome::Failure(_) if rules.refuses_freely => true,
            Outcome::Failure(id) => {
                // An owner that has lost its key says so with a failure.
                let fenced = state.owned.has(self.place[index]) && running != Some(Owner::Known(index as u32));
                let stored = match state.phase {
                    Phase::Completed(Stored::Failure(stored), payload) => {
                        rules.same(payload, asked.payload) && (id.is_none() || id == stored)
                    }
                    _ => false,
                };
                fenced || stored
            }
            Outcome::Conflict => rules.refuses_freely || (rules.conflict && others),
            Outcome::Mismatch => {
                let held = match state.phase {
                    Phase::InFlight(owner) => others.then(|| self.payload(owner)),
                    Phase::Completed(_, payload) => Some(payload),
                    Phase::Free(held) => held,
                };
                rules.refuses_freely || held.is_some_and(|payload| !rules.same(payload, asked.payload))
            }
            Outcome::Refused | Outcome::Rejected => true,
            Outcome::Lost | Outcome::Unknown | Outcome::Cut => false,
            Outcome::Effects(least, most) => {
                let running = running.is_some_and(|owner| match owner {
                    Owner::Lost(_) | Owner::Unknown(_) => true,
                    Owner::Cut(_) | Owner::Rejected(_) => false,
                    Owner::Known(index) => {
                        matches!(self.all[index as usize].outcome, Outcome::Success(_) | Outcome::Failure(_))
                    }
                });
                let possible = state.effects + state.maybe + u32::from(running);
                state.effects <= most && least <= possible
            }
        }
    }

    /// Every state that one step leads to.
    pub(super) fn steps(&self, state: &State, slice: Slice<'_>, found: &mut Vec<State>) {
        match state.phase {
            Phase::Free(_) => self.acquire(state, slice, found),
            Phase::InFlight(owner) => {
                self.finish(state, owner, slice, found);
                self.lose(state, owner, slice, found);
            }
            Phase::Completed(stored, payload) => {
                self.name(state, stored, payload, slice, found);
                if let Some(zone) = self.rules.retention.least().and_then(|least| state.zone.aged(least)) {
                    self.enter(state.to(Phase::Free(None), zone.forgotten()), slice, found);
                }
            }
        }
    }

    fn enter(&self, mut state: State, slice: Slice<'_>, found: &mut Vec<State>) {
        if let Some(zone) = self.wait(state.phase, state.zone, slice) {
            state.zone = zone;
            found.push(state);
        }
    }

    /// An attempt becomes the owner: one branch for each class of attempts that can do the same for the rest.
    fn acquire(&self, state: &State, slice: Slice<'_>, found: &mut Vec<State>) {
        let mut chosen: Vec<(Class, usize)> = Vec::new();
        for index in slice.open {
            for class in self.classes(state, *index) {
                let ends = |index: usize| self.rules.closes(&self.all[index]);
                match chosen.iter_mut().find(|(known, _)| *known == class) {
                    None => chosen.push((class, *index)),
                    Some((_, best)) => {
                        let better =
                            if class.wants_latest() { ends(*index) > ends(*best) } else { ends(*index) < ends(*best) };
                        if better {
                            *best = *index;
                        }
                    }
                }
            }
        }
        // One attempt may stand for several classes.
        chosen.sort_by_key(|(class, index)| (*index, class.is_anonymous()));
        chosen.dedup_by_key(|(class, index)| (*index, class.is_anonymous()));
        for (class, index) in chosen {
            let owner = match class {
                Class::Lost(payload) => Owner::Lost(payload),
                Class::Unknown(payload) => Owner::Unknown(payload),
                Class::Rejected(payload) => Owner::Rejected(payload),
                Class::Cut(payload) => Owner::Cut(payload),
                _ => Owner::Known(index as u32),
            };
            let zone = if self.rules.timed() { state.zone.begun() } else { state.zone };
            let mut next = state.to(Phase::InFlight(owner), zone);
            next.owned.add(self.place[index]);
            if matches!(owner, Owner::Known(_)) {
                next.explained.remove(self.place[index]);
            }
            self.enter(next, slice, found);
        }
    }

    fn classes(&self, state: &State, index: usize) -> impl Iterator<Item = Class> + use<> {
        let asked = &self.all[index];
        let place = self.place[index];
        let payload = asked.payload;
        let rules = self.rules;
        let fresh = !state.owned.has(place);
        // Where keys expire, an answer that names no result of its own may be explained by a stored one and yet be an
        // execution of a later life, which explains other refusals and counts.
        let again =
            rules.retention != Bound::Never && matches!(asked.outcome, Outcome::Success(None) | Outcome::Failure(_));
        let outlives = rules.lease.least().is_some_and(|lease| asked.to - asked.from >= lease);
        let waiting = fresh && (again || outlives || !state.explained.has(place));
        let mut classes = [None; 3];
        match asked.outcome {
            Outcome::Lost if fresh => classes[0] = Some(Class::Lost(payload)),
            Outcome::Unknown if fresh => classes[0] = Some(Class::Unknown(payload)),
            Outcome::Rejected if fresh => classes[0] = Some(Class::Rejected(payload)),
            Outcome::Cut if fresh => classes[0] = Some(Class::Cut(payload)),
            Outcome::Failure(_) if rules.refuses_freely && fresh => classes[0] = Some(Class::Lost(payload)),
            Outcome::Success(id) if waiting => {
                let new = id.is_none_or(|id| !self.result.get(&id).is_some_and(|place| state.results.has(*place)));
                classes[0] = new.then_some(Class::Success(id, payload));
            }
            Outcome::Failure(id) if waiting => {
                classes[0] = rules.release.then_some(Class::Released(payload));
                classes[1] = rules.store.then_some(Class::Stored(id, payload));
            }
            _ => {}
        }
        let answers = !matches!(
            asked.outcome,
            Outcome::Lost
                | Outcome::Unknown
                | Outcome::Cut
                | Outcome::Refused
                | Outcome::Rejected
                | Outcome::Effects(..)
        );
        // Where refusals are free, nobody needs to have been an owner for one.
        let refusal = matches!(asked.outcome, Outcome::Conflict | Outcome::Mismatch);
        if answers && waiting && outlives && !(refusal && rules.refuses_freely) {
            classes[2] = Some(Class::Fenced(index));
        }
        classes.into_iter().flatten()
    }

    fn finish(&self, state: &State, owner: Owner, slice: Slice<'_>, found: &mut Vec<State>) {
        let begun = if self.rules.timed() { state.zone.begun() } else { state.zone };
        let done = |stored: Stored, payload: u32| state.to(Phase::Completed(stored, payload), begun);
        let success = |mut next: State| {
            if self.counted {
                next.effects += 1;
            }
            next
        };
        // The effect of a failure that is stored may exist: nothing lets it happen twice.
        let failure = |mut next: State| {
            if self.counted {
                next.maybe += 1;
            }
            next
        };
        match owner {
            Owner::Cut(_) => {}
            // Whether a refusal of the handler is stored is another matter than whether a failure is.
            Owner::Rejected(payload) => self.enter(done(Stored::Refusal, payload), slice, found),
            Owner::Lost(payload) | Owner::Unknown(payload) => {
                self.enter(success(done(Stored::Success(None), payload)), slice, found);
                if self.rules.store {
                    self.enter(failure(done(Stored::Failure(None), payload)), slice, found);
                }
            }
            Owner::Known(index) => {
                let at = index as usize;
                if !slice.open.contains(&at) {
                    return;
                }
                let payload = self.all[at].payload;
                let place = self.place[at];
                match self.all[at].outcome {
                    Outcome::Success(id) => {
                        let mut next = success(done(Stored::Success(id), payload));
                        if let Some(result) = id.and_then(|id| self.result.get(&id)) {
                            if next.results.has(*result) {
                                return;
                            }
                            next.results.add(*result);
                        }
                        next.explained.add(place);
                        self.enter(next, slice, found);
                    }
                    Outcome::Failure(id) => {
                        if self.rules.store {
                            let mut next = failure(done(Stored::Failure(id), payload));
                            next.explained.add(place);
                            self.enter(next, slice, found);
                        }
                        if self.rules.release {
                            let mut next = state.to(self.freed(payload), state.zone.forgotten());
                            next.explained.add(place);
                            self.enter(next, slice, found);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// The owner loses its key: its lease is over, its failure was not heard, or the server gave it up.
    fn lose(&self, state: &State, owner: Owner, slice: Slice<'_>, found: &mut Vec<State>) {
        let rules = self.rules;
        let freely = match owner {
            Owner::Cut(_) | Owner::Rejected(_) => true,
            Owner::Lost(_) | Owner::Unknown(_) => rules.release || rules.cancels || rules.stuck.is_some(),
            Owner::Known(_) => false,
        };
        let zone = if freely { Some(state.zone) } else { rules.lease.least().and_then(|lease| state.zone.aged(lease)) };
        if let Some(zone) = zone {
            let next = state.to(self.freed(self.payload(owner)), zone.forgotten());
            self.enter(next, slice, found);
        }
    }

    fn freed(&self, payload: u32) -> Phase {
        Phase::Free(self.rules.held_after_release.then_some(payload))
    }

    /// The stored answer of an owner that was not heard of takes the name that somebody waits for.
    fn name(&self, state: &State, stored: Stored, payload: u32, slice: Slice<'_>, found: &mut Vec<State>) {
        let mut named: Vec<Stored> = Vec::new();
        for index in slice.open.iter().filter(|index| !state.explained.has(self.place[**index])) {
            let asked = &self.all[*index];
            if !self.rules.same(payload, asked.payload) {
                continue;
            }
            let stored = match (stored, asked.outcome) {
                (Stored::Success(None), Outcome::Success(id @ Some(_)) | Outcome::Replayed(id @ Some(_))) => {
                    Stored::Success(id)
                }
                (Stored::Failure(None), Outcome::Failure(id @ Some(_))) => Stored::Failure(id),
                _ => continue,
            };
            if !named.contains(&stored) {
                named.push(stored);
            }
        }
        for stored in named {
            let mut next = state.to(Phase::Completed(stored, payload), state.zone);
            if let Stored::Success(Some(id)) = stored
                && let Some(result) = self.result.get(&id)
            {
                if next.results.has(*result) {
                    continue;
                }
                next.results.add(*result);
            }
            self.enter(next, slice, found);
        }
    }
}

/// Attempts of one class are interchangeable as owners but for the end of their intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Lost(u32),
    Unknown(u32),
    Rejected(u32),
    Cut(u32),
    Success(Option<u32>, u32),
    Released(u32),
    Stored(Option<u32>, u32),
    /// Will lose the key to another one, and be answered as if it had never had it. Each is a class of its own: both
    /// the time that it needs and the time that it leaves matter.
    Fenced(usize),
}

impl Class {
    /// Whether the one that returns last leaves most open: the others are then answered from what it stored. Else the
    /// one that closes first: it is the one that cannot wait.
    fn wants_latest(self) -> bool {
        !self.is_anonymous() && !matches!(self, Self::Released(_))
    }

    /// Whether it does not matter any more who it was.
    fn is_anonymous(self) -> bool {
        matches!(self, Self::Lost(_) | Self::Unknown(_) | Self::Rejected(_) | Self::Cut(_))
    }
}
