//! What people and CI systems read. Every reporter is fed by the same stream of events and, in the end, by the
//! same list of results.

mod event;

pub use event::{Event, RunInfo, ScoreLine, Summary};
