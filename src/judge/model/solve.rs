//! What a history says about limits that nobody documents.

use super::{
    record::{Bound, KeyHistory, Rules, Time},
    search::{Answer, explain},
};

/// The limits under which a history can be explained. `None`: it says nothing about this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Legal only if the mark of a lost owner may get this old.
    pub stuck_at_least: Option<Time>,
    /// Legal only if an owner may lose its key after this time.
    pub lease_at_most: Option<Time>,
    /// Legal only if a completed key may be forgotten after this time.
    pub retention_at_most: Option<Time>,
}

impl Limits {
    /// What both say.
    pub fn and(self, other: Self) -> Self {
        let least = |a: Option<Time>, b: Option<Time>| a.into_iter().chain(b).min();
        Self {
            stuck_at_least: self.stuck_at_least.max(other.stuck_at_least),
            lease_at_most: least(self.lease_at_most, other.lease_at_most),
            retention_at_most: least(self.retention_at_most, other.retention_at_most),
        }
    }
}

/// Solves for each limit that the rules leave unknown, the others being as the rules have them. Explanations only
/// grow with an older mark, a shorter lease and a shorter retention, so each limit is found by halving.
pub fn solve(history: &KeyHistory, rules: &Rules, budget: u32) -> Limits {
    let explains = |rules: &Rules| explain(history, rules, budget) == Answer::Explained;
    let from = history.observations.iter().map(|o| o.from).min();
    let to = history.observations.iter().map(|o| o.to.min(super::FOREVER / 2)).max();
    let Some((from, to)) = from.zip(to).filter(|_| explains(rules)) else { return Limits::default() };
    // Longer than the history lasted, no limit can be told from none.
    let longest = (to - from).saturating_add(rules.late).saturating_add(1);
    let mut limits = Limits::default();
    if rules.stuck.is_none() {
        let with = |span: Time| Rules { stuck: Some(span), ..rules.clone() };
        limits.stuck_at_least = boundary(longest, |span| explains(&with(span))).filter(|span| *span > 0);
    }
    if rules.lease == Bound::Unknown {
        let with = |span: Time| Rules { lease: Bound::AtLeast(span), ..rules.clone() };
        limits.lease_at_most = boundary(longest, |span| !explains(&with(span))).map(|span| span - 1);
    }
    if rules.retention == Bound::Unknown {
        let with = |span: Time| Rules { retention: Bound::AtLeast(span), ..rules.clone() };
        limits.retention_at_most = boundary(longest, |span| !explains(&with(span))).map(|span| span - 1);
    }
    limits
}

/// The least span, up to `longest`, that has a property which no longer span loses.
fn boundary(longest: Time, has: impl Fn(Time) -> bool) -> Option<Time> {
    if !has(longest) {
        return None;
    }
    let (mut below, mut at) = (-1, longest);
    while at - below > 1 {
        let middle = below + (at - below) / 2;
        if has(middle) { at = middle } else { below = middle }
    }
    Some(at)
}
