//! Decides rules from a schedule, a history and a policy, without IO.
//!
//! Each attempt is given the outcome words that it may be (`classify`); the case's own expectations are matched with
//! them (`expect`, `setup`); and the rules that hold for every history are decided from pairs of attempts and counts
//! of effects (`checks`). `verdict` makes one finding per rule and one verdict of all that.

mod checks;
mod classify;
mod effects;
mod expect;
mod finding;
pub mod model;
mod overlap;
mod seen;
mod setup;
mod verdict;
mod words;

pub use checks::{CHECKS, Check};
pub use classify::Words;
pub use finding::{CaseResult, Decision, Finding, Gate, Reason, Verdict};
pub use overlap::Overlap;
pub use seen::{Seen, Success};
pub use verdict::{Combined, Judgement, combine, judge};
