//! Takes cases from plan to result and emits events: the one place where the rooms are wired together.
//!
//! [`Stage`] is what a run needs around it (the reference server, the fault proxy), [`select`] chooses what is
//! run, [`Runner`] performs it, and [`harness`] offers the same as tests for `cargo test` and nextest.

mod harness;
mod probe;
mod runner;
mod select;
mod shard;
mod stage;

pub use harness::{Arguments, Conclusion, HarnessOptions, harness};
pub use runner::{Limits, RunOptions, Runner};
pub use select::{SelectError, Selection, files, plan, select};
pub use shard::{Shard, ShardError};
pub use stage::{Reference, Stage, StageError, StageOptions, TargetSource, reference_target, reference_target_file};
