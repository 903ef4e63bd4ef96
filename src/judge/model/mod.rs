//! The history checker: is there any order of executions, refusals and replays that explains everything observed?
//!
//! Every attempt with one key is an interval with an outcome (`record`). A server that is right goes through the
//! states of a key; `search` sweeps the intervals in time order and keeps every state that it may be in (`state`),
//! with the instants that timed guards speak of as a zone of difference constraints (`zone`), so that leases and
//! retentions are decided exactly. What no state explains is rejected; `severity` relaxes the policy to say how bad
//! that is, `core` weakens the evidence to say why, and `solve` finds the limits of unknown values.
//! `partition` makes the model's histories from recorded ones.

mod across;
mod bits;
mod core;
mod partition;
mod record;
mod run;
mod search;
mod severity;
mod solve;
mod state;
mod steps;
mod words;
mod zone;

pub use self::{
    across::{Crossing, crossings},
    core::weaken,
    partition::{Alternative, Key, partition},
    record::{Bound, FOREVER, KeyHistory, Observation, Outcome, Rules, Time},
    run::{Inferred, Tally},
    search::{Answer, BUDGET, Rejection, explain},
    severity::{Level, Ruling, judge_key},
    solve::{Limits, solve},
    words::{Accusation, accuse},
};
