//! Whether attempts really were in flight together.
//!
//! Two attempts overlap when the last byte of each had been sent before the first byte of the other's answer was
//! read (or the other ended without an answer). Then both requests were with the server, or on the way to it or from
//! it, at one instant; that is the most that can be known without the server's help.

use serde::{Deserialize, Serialize};

use super::seen::Seen;
use crate::{
    history::{Attempt, Micros},
    schedule::Step,
};

/// How many attempts of a burst or a group really were in flight together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overlap {
    /// The burst's name, or the names of the group.
    pub name: String,
    /// The most that were in flight at one instant.
    pub together: usize,
    /// How many there were.
    pub of: usize,
}

/// When an attempt was whole with the server, or on the way.
fn in_flight(attempt: &Attempt) -> Option<(Micros, Micros)> {
    let from = attempt.timing.last_out?;
    let to = attempt.timing.first_in.unwrap_or(attempt.timing.ended);
    (from <= to).then_some((from, to))
}

/// Whether two attempts overlapped.
pub(super) fn overlapped(a: &Attempt, b: &Attempt) -> bool {
    in_flight(a).zip(in_flight(b)).is_some_and(|(a, b)| a.0 <= b.1 && b.0 <= a.1)
}

/// Whether the second attempt was sent and answered while the first one was in flight.
pub(super) fn inside(outer: &Attempt, inner: &Attempt) -> bool {
    in_flight(outer).is_some_and(|(from, to)| from <= super::seen::start(inner) && inner.timing.ended <= to)
}

/// The most attempts that were in flight at one instant.
pub(super) fn together(attempts: &[&Attempt]) -> usize {
    let intervals: Vec<_> = attempts.iter().filter_map(|attempt| in_flight(attempt)).collect();
    let at = |instant: Micros| intervals.iter().filter(|(from, to)| *from <= instant && instant <= *to).count();
    intervals.iter().map(|(from, _)| at(*from)).max().unwrap_or(0)
}

/// What was measured for every burst and every group of the case.
pub(super) fn measure(seen: &Seen<'_>) -> Vec<Overlap> {
    let bursts = seen.schedule.steps.iter().filter_map(|step| match step {
        Step::Burst { name, .. } => Some(vec![name.clone()]),
        _ => None,
    });
    let groups = bursts.chain(seen.schedule.overlap.iter().cloned());
    let mut measured: Vec<Overlap> = Vec::new();
    for names in groups {
        let attempts: Vec<_> = names.iter().flat_map(|name| called(seen, name)).collect();
        let overlap = Overlap { name: names.join(", "), together: together(&attempts), of: attempts.len() };
        if !measured.contains(&overlap) {
            measured.push(overlap);
        }
    }
    measured
}

/// All attempts that a name of the plan stands for: the attempt and its resends, or the members of a burst.
pub(super) fn called<'a>(seen: &Seen<'a>, name: &str) -> Vec<&'a Attempt> {
    let is = |value: &Option<String>| value.as_deref() == Some(name);
    seen.sent().filter(|a| a.name == name || is(&a.resend_of) || is(&a.burst)).collect()
}

/// The first pair of names of a group that did not overlap.
pub(super) fn apart<'n>(seen: &Seen<'_>, names: &'n [String]) -> Option<(&'n str, &'n str)> {
    for (index, first) in names.iter().enumerate() {
        let mine = called(seen, first);
        let burst = mine.iter().any(|attempt| attempt.burst.as_deref() == Some(first));
        if burst && together(&mine) < 2 {
            return Some((first, first));
        }
        for second in &names[index + 1..] {
            let theirs = called(seen, second);
            if !mine.iter().any(|a| theirs.iter().any(|b| overlapped(a, b))) {
                return Some((first, second));
            }
        }
    }
    None
}
