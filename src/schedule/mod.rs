//! The plan: what will be sent, in which order, with which faults. Pure data, made by a pure function.

mod mint;
mod plan;

pub use mint::Mint;
pub use plan::{AttemptPlan, CaseId, Encoding, PlannedKey, Schedule, Step, TimeMove};
