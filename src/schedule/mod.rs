//! The plan: what will be sent, in which order, with which faults. Pure data, made by a pure function.

mod compile;
mod compiler;
mod extra;
mod key_field;
mod mint;
mod payload;
mod plan;
mod when;

pub use compile::{Allowed, Planned, Skipped, compile};
pub use key_field::{NotAString, key_field};
pub use mint::Mint;
pub use plan::{AttemptPlan, CaseId, Encoding, Extra, Form, PlannedKey, Schedule, Step, TimeMove};

#[cfg(test)]
mod tests;
