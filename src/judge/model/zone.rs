//! The instants that a state may have: constraints on now, on the state's beginning, and on the difference of both.

use super::record::{FOREVER, Time};

/// The least and the most of something; empty if they are the wrong way round.
type Range = (Time, Time);

const ANY: Range = (-FOREVER, FOREVER);

/// All pairs of a beginning and a present that are possible. Three nodes of difference constraints (the clock's zero,
/// the beginning, now), always closed: each bound is as tight as the other ones make it. So a zone is empty exactly
/// if no instants satisfy every guard, and one zone contains another exactly if each of its bounds does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Zone {
    now: Range,
    /// When the owner acquired the key, or the answer was stored. `None` where no guard asks.
    since: Option<(Range, Range)>,
}

fn both(a: Range, b: Range) -> Range {
    (a.0.max(b.0), a.1.min(b.1))
}

impl Zone {
    /// Any instant of a span, with no beginning that matters.
    pub(super) fn at(from: Time, to: Time) -> Self {
        Self { now: (from, to), since: None }
    }

    /// The same instants as the beginning of a new state.
    pub(super) fn begun(self) -> Self {
        Self { now: self.now, since: Some((self.now, (0, 0))) }
    }

    /// The same instants; the beginning does not matter any more.
    pub(super) fn forgotten(self) -> Self {
        Self { now: self.now, since: None }
    }

    /// Time passes, but to no instant outside of this span.
    pub(super) fn later(self, from: Time, to: Time) -> Option<Self> {
        let since = self.since.map(|(since, age)| (since, (age.0, 2 * FOREVER)));
        Self { now: (self.now.0.max(from), to), since }.closed()
    }

    /// Only with at least this age.
    pub(super) fn aged(self, least: Time) -> Option<Self> {
        let since = self.since.map(|(since, age)| (since, (age.0.max(least), age.1)));
        Self { now: self.now, since }.closed()
    }

    /// Only with at most this age.
    pub(super) fn fresh(self, most: Time) -> Option<Self> {
        let since = self.since.map(|(since, age)| (since, (age.0, age.1.min(most))));
        Self { now: self.now, since }.closed()
    }

    /// Whether everything that the other one allows is allowed by this one.
    pub(super) fn contains(&self, other: &Self) -> bool {
        let around = |outer: Range, inner: Range| outer.0 <= inner.0 && inner.1 <= outer.1;
        around(self.now, other.now)
            && match (self.since, other.since) {
                (None, _) => true,
                (Some(mine), Some(theirs)) => around(mine.0, theirs.0) && around(mine.1, theirs.1),
                (Some(_), None) => false,
            }
    }

    /// Tightens every bound by the two others. With three nodes, a shortest path has two edges at most, so once is
    /// enough. `None` if there is a negative cycle.
    fn closed(self) -> Option<Self> {
        let full = |range: Range| range.0 <= range.1;
        let Some((since, age)) = self.since else { return full(self.now).then_some(self) };
        let now = both(self.now, (since.0 + age.0, since.1 + age.1));
        let tighter = both(since, (self.now.0 - age.1, self.now.1 - age.0));
        let age = both(age, (self.now.0 - since.1, self.now.1 - since.0));
        let all = full(now) && full(tighter) && full(age) && full(both(tighter, ANY));
        all.then_some(Self { now, since: Some((tighter, age)) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_later_refusal_pins_an_earlier_beginning() {
        // Acquired between 0 and 10, still held at 5..6, and held at 18 or later: older than 10 in any case.
        let held = Zone::at(0, 10).begun().later(5, 6).unwrap();
        let late = held.later(18, 19).unwrap();
        assert!(late.fresh(10).is_none());
        assert!(late.fresh(12).is_some());
        assert!(Zone::at(0, 10).begun().later(18, 19).unwrap().fresh(10).is_some());
    }

    #[test]
    fn both_ends_at_once_are_told_apart() {
        // Earliest and latest beginning alone would allow both ages; no single beginning does.
        let zone = Zone::at(0, 10).begun().later(10, 12).unwrap();
        assert!(zone.aged(12).unwrap().later(12, 12).unwrap().fresh(11).is_none());
        assert!(zone.aged(13).is_none());
    }

    #[test]
    fn containment_is_of_instants() {
        let wide = Zone::at(0, 10).begun().later(0, 20).unwrap();
        let narrow = Zone::at(2, 3).begun().later(0, 20).unwrap();
        assert!(wide.contains(&narrow) && !narrow.contains(&wide));
        assert!(Zone::at(0, 20).contains(&Zone::at(1, 2)));
    }
}
