//! Decides rules from a schedule, a history and a policy, without IO.

mod finding;

pub use finding::{CaseResult, Decision, Finding, Gate, Reason, Verdict};
