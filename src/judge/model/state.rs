//! One way in which things may stand.

use super::{
    bits::Bits,
    record::{KeyHistory, Observation, Outcome, Rules, Time},
    zone::Zone,
};

/// What the server may hold for the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    /// Nothing; perhaps the payload of an attempt that failed.
    Free(Option<u32>),
    /// An attempt is being executed.
    InFlight(Owner),
    /// The answer to this payload is stored.
    Completed(Stored, u32),
}

/// Who is being executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    /// An attempt with this payload that nobody heard of again. Which one does not matter.
    Lost(u32),
    /// The same, where it is left out of account what was heard.
    Unknown(u32),
    /// An attempt with this payload that its handler will refuse.
    Rejected(u32),
    /// The same, of a request that was cut: it comes to nothing.
    Cut(u32),
    /// An attempt whose answer is known, by its index.
    Known(u32),
}

/// A stored answer. `None`: not known yet; the first replay says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Stored {
    Success(Option<u32>),
    Failure(Option<u32>),
    /// A refusal of the handler, which may be answered to anybody at any time.
    Refusal,
}

/// A state that the server may be in, with what it took to get there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) zone: Zone,
    /// The places of attempts whose answer is explained.
    pub(super) explained: Bits,
    /// The places of attempts that have been owners.
    pub(super) owned: Bits,
    /// The places of results that exist.
    pub(super) results: Bits,
    /// Effects that certainly exist.
    pub(super) effects: u32,
    /// Effects that may exist besides.
    pub(super) maybe: u32,
}

impl State {
    pub(super) fn first(at: Time) -> Self {
        Self {
            phase: Phase::Free(None),
            zone: Zone::at(at, at),
            explained: Bits::default(),
            owned: Bits::default(),
            results: Bits::default(),
            effects: 0,
            maybe: 0,
        }
    }

    /// Whether everything that can come of the other state, in the same phase, can come of this one.
    pub(super) fn covers(&self, other: &Self) -> bool {
        other.explained.within(&self.explained)
            && self.owned.within(&other.owned)
            && self.results.within(&other.results)
            && self.effects <= other.effects
            && self.effects + self.maybe >= other.effects + other.maybe
            && self.zone.contains(&other.zone)
    }

    /// Moves to another phase.
    pub(super) fn to(&self, phase: Phase, zone: Zone) -> Self {
        Self { phase, zone, ..self.clone() }
    }
}

/// A history prepared for the search: places instead of sets of any size.
pub(super) struct Table<'a> {
    pub(super) all: &'a [Observation],
    pub(super) rules: &'a Rules,
    /// The place of each observation.
    pub(super) place: Vec<u16>,
    /// The place of each result of a success, by its number.
    pub(super) result: std::collections::HashMap<u32, u16>,
    /// Whether effects were counted at all.
    pub(super) counted: bool,
}

impl<'a> Table<'a> {
    /// `None` if more happens at once than there are places for.
    pub(super) fn new(history: &'a KeyHistory, order: &[usize], rules: &'a Rules) -> Option<Self> {
        let all = &history.observations;
        let span = |index: &usize| (all[*index].from, rules.closes(&all[*index]));
        let given = super::bits::places(&order.iter().map(span).collect::<Vec<_>>())?;
        let mut place = vec![0; all.len()];
        order.iter().zip(given).for_each(|(index, at)| place[*index] = at);
        let mut spans: std::collections::BTreeMap<u32, (Time, Time)> = std::collections::BTreeMap::new();
        for observation in all {
            if let Outcome::Success(Some(id)) | Outcome::Replayed(Some(id)) = observation.outcome {
                let span = spans.entry(id).or_insert((observation.from, observation.to));
                *span = (span.0.min(observation.from), span.1.max(observation.to));
            }
        }
        let mut named: Vec<_> = spans.into_iter().collect();
        named.sort_by_key(|(_, span)| *span);
        let given = super::bits::places(&named.iter().map(|(_, span)| *span).collect::<Vec<_>>())?;
        let result = named.iter().zip(given).map(|((id, _), place)| (*id, place)).collect();
        let counted = all.iter().any(|o| matches!(o.outcome, Outcome::Effects(..)));
        Some(Self { all, rules, place, result, counted })
    }

    /// The payload of the owner.
    pub(super) fn payload(&self, owner: Owner) -> u32 {
        match owner {
            Owner::Lost(payload) | Owner::Unknown(payload) | Owner::Rejected(payload) | Owner::Cut(payload) => payload,
            Owner::Known(index) => self.all[index as usize].payload,
        }
    }

    /// Whether this answer must be explained before its interval is over.
    pub(super) fn asks(&self, index: usize) -> bool {
        !matches!(self.all[index].outcome, Outcome::Lost | Outcome::Unknown | Outcome::Cut)
    }
}
