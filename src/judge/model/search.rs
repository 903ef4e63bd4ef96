//! The sweep: which states may the server be in, after each beginning and each end of an interval?

use std::collections::{HashMap, VecDeque};

use super::{
    record::{FOREVER, KeyHistory, Rules, Time},
    state::{Phase, State, Table},
    steps::Slice,
};

/// How much work is done for one key before the search gives up: one unit for a state, and for 16 comparisons.
pub const BUDGET: u32 = 400_000;

/// What the search comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Some order explains everything.
    Explained,
    /// None does.
    Rejected(Rejection),
    /// There was too much to look at.
    TooMuch,
}

/// Where the last explanation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejection {
    /// The observation that nothing explains, with all that came before it: its place in the history.
    pub at: usize,
}

/// Whether some order of executions explains a history under these rules.
pub fn explain(history: &KeyHistory, rules: &Rules, budget: u32) -> Answer {
    let history = history.with_twins(rules);
    let all = &history.observations;
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|index| (all[*index].from, rules.closes(&all[*index])));
    let Some(table) = Table::new(&history, &order, rules) else { return Answer::TooMuch };
    let mut ends = order.clone();
    ends.sort_by_key(|index| rules.closes(&all[*index]));
    let Some(first) = order.first().map(|index| all[*index].from) else { return Answer::Explained };

    let mut sweep = Sweep { table: &table, states: vec![State::first(first)], left: budget, by_phase: HashMap::new() };
    let results = last_uses(&history, rules);
    let (mut next, mut over, mut done) = (0, 0, 0);
    let mut open: Vec<usize> = Vec::new();
    while over < ends.len() {
        let end_of = |index: usize| rules.closes(&all[index]);
        let ending = end_of(ends[over]);
        let beginning = order.get(next).map(|index| all[*index].from).filter(|from| *from <= ending);
        let now = beginning.unwrap_or(ending);
        let begins = beginning.is_some();
        while next < order.len() && all[order[next]].from == now {
            open.push(order[next]);
            next += 1;
        }
        if begins && ending == now && !sweep.spread(Slice { from: now, to: now, open: &open }) {
            return Answer::TooMuch;
        }
        while over < ends.len() && end_of(ends[over]) == now {
            let index = ends[over];
            over += 1;
            open.retain(|other| *other != index);
            if !sweep.retire(index) {
                return Answer::Rejected(Rejection { at: index });
            }
        }
        while done < results.len() && results[done].0 <= now {
            let place = table.result.get(&results[done].1);
            place.into_iter().for_each(|place| sweep.states.iter_mut().for_each(|s| s.results.remove(*place)));
            done += 1;
        }
        // Where only something ended, and no guard asks for time, nothing new can happen.
        if begins || rules.timed() {
            let coming = order.get(next).map_or(FOREVER, |index| all[*index].from);
            let to = ends.get(over).map_or(FOREVER, |index| end_of(*index)).min(coming);
            if !sweep.spread(Slice { from: now, to, open: &open }) {
                return Answer::TooMuch;
            }
            if sweep.states.is_empty() {
                // Only time can do this: no phase can last so long. The next end is the one that finds nobody.
                return Answer::Rejected(Rejection { at: ends.get(over).copied().unwrap_or(0) });
            }
        }
    }
    Answer::Explained
}

/// When each result is asked for the last time.
fn last_uses(history: &KeyHistory, rules: &Rules) -> Vec<(Time, u32)> {
    use super::record::Outcome::{Replayed, Success};
    let mut last: HashMap<u32, Time> = HashMap::new();
    for observation in &history.observations {
        if let Success(Some(id)) | Replayed(Some(id)) = observation.outcome {
            let until = last.entry(id).or_insert(observation.to);
            *until = (*until).max(rules.closes(observation));
        }
    }
    let mut uses: Vec<_> = last.into_iter().map(|(id, until)| (until, id)).collect();
    uses.sort_unstable();
    uses
}

struct Sweep<'a> {
    table: &'a Table<'a>,
    states: Vec<State>,
    /// How much more work may be done.
    left: u32,
    by_phase: HashMap<Phase, Vec<usize>>,
}

impl Sweep<'_> {
    /// Follows every step that is possible within a slice. Whether the budget lasted.
    fn spread(&mut self, slice: Slice<'_>) -> bool {
        self.by_phase.clear();
        let mut kept: Vec<Option<State>> = Vec::new();
        let mut waiting: VecDeque<usize> = VecDeque::new();
        let mut found: Vec<State> = Vec::new();
        for mut state in self.states.drain(..) {
            if let Some(zone) = self.table.wait(state.phase, state.zone, slice) {
                state.zone = zone;
                found.push(state);
            }
        }
        loop {
            for mut state in found.drain(..) {
                self.table.settle(&mut state, slice);
                let same = self.by_phase.entry(state.phase).or_default();
                // Comparing is work as well: the budget bounds the time, not only the memory.
                let work = 1 + u32::try_from(same.len() / 16).unwrap_or(u32::MAX);
                let Some(left) = self.left.checked_sub(work) else { return false };
                self.left = left;
                if same.iter().any(|at| kept[*at].as_ref().is_some_and(|known| known.covers(&state))) {
                    continue;
                }
                same.retain(|at| {
                    let covered = kept[*at].as_ref().is_some_and(|known| state.covers(known));
                    if covered {
                        kept[*at] = None;
                    }
                    !covered
                });
                same.push(kept.len());
                waiting.push_back(kept.len());
                kept.push(Some(state));
            }
            let Some(at) = waiting.pop_front() else { break };
            if let Some(state) = &kept[at] {
                self.table.steps(state, slice, &mut found);
            }
        }
        self.states.extend(kept.into_iter().flatten());
        true
    }

    /// An interval ends: only states that explain its answer remain. Whether any does.
    fn retire(&mut self, index: usize) -> bool {
        let place = self.table.place[index];
        if self.table.asks(index) {
            self.states.retain(|state| state.explained.has(place));
        }
        for state in &mut self.states {
            state.explained.remove(place);
            state.owned.remove(place);
        }
        !self.states.is_empty()
    }
}
