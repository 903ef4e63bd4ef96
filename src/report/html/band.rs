//! The state of a key as its answers tell it: who held it, which answer it then had, and where two executions
//! contradict each other.

use crate::{
    history::{Attempt, Micros},
    report::terminal::identity_of_success,
};

/// One stretch of a key's life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Where it begins.
    pub(super) from: Micros,
    /// Where it ends; `None` if it lasts.
    pub(super) to: Option<Micros>,
    /// What it is.
    pub(super) state: State,
    /// What is written into it.
    pub(super) label: String,
}

/// A state of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// An attempt was being executed.
    InFlight,
    /// An execution had succeeded.
    Completed,
    /// Executed again, although an execution had succeeded or was under way.
    Again,
}

/// The life of one key, from the successes of its attempts. The first success with an identity was executed
/// somewhere between its first byte out and its first byte in; every later one with another identity was executed
/// as well, which is what must not be.
pub(super) fn stretches(attempts: &[&Attempt]) -> Vec<Stretch> {
    let mut executed: Vec<(&Attempt, &str)> = Vec::new();
    let mut in_time: Vec<_> =
        attempts.iter().filter_map(|attempt| Some((*attempt, identity_of_success(attempt)?))).collect();
    in_time.sort_by_key(|(attempt, _)| attempt.timing.first_in.unwrap_or(attempt.timing.ended));
    for (attempt, identity) in in_time {
        if executed.iter().all(|(_, known)| *known != identity) {
            executed.push((attempt, identity));
        }
    }
    let mut stretches = Vec::new();
    for (index, (attempt, identity)) in executed.iter().enumerate() {
        let from = attempt.timing.first_out.unwrap_or(attempt.timing.opened);
        let to = attempt.timing.first_in.unwrap_or(attempt.timing.ended);
        let shown = identity.trim_matches('"');
        if index == 0 {
            let label = format!("in flight: {}", attempt.name);
            stretches.push(Stretch { from, to: Some(to), state: State::InFlight, label });
            stretches.push(Stretch {
                from: to,
                to: None,
                state: State::Completed,
                label: format!("completed: {shown}"),
            });
        } else {
            let label = format!("executed again by {}: {shown}", attempt.name);
            stretches.push(Stretch { from, to: Some(to), state: State::Again, label });
        }
    }
    stretches
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::report::fixture::{attempt, lost};

    fn states(attempts: &[Attempt]) -> Vec<(State, String)> {
        let attempts: Vec<_> = attempts.iter().collect();
        stretches(&attempts).into_iter().map(|stretch| (stretch.state, stretch.label)).collect()
    }

    #[test]
    fn a_replay_adds_nothing_and_a_second_identity_is_a_second_execution() {
        let first = attempt("first", 10, 100, 201, "pay_1");
        let again = attempt("retry", 110, 120, 201, "pay_1");
        let refused = attempt("early", 20, 30, 409, "");
        let right = states(&[again.clone(), refused, first.clone()]);
        assert_eq!(
            right,
            [(State::InFlight, "in flight: first".to_owned()), (State::Completed, "completed: pay_1".to_owned())]
        );
        let wrong = states(&[first, again, attempt("third", 50, 130, 201, "pay_2")]);
        assert_eq!(wrong[2], (State::Again, "executed again by third: pay_2".to_owned()));
    }

    #[test]
    fn what_was_lost_says_nothing() {
        let witness = crate::history::Witness::Witnessed(String::new());
        assert_eq!(states(&[lost("first", 0, 10, witness)]), []);
    }
}
