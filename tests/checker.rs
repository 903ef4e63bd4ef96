//! The history checker against what is known: the worked table, exhaustive search, simulated servers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "checker/command.rs"]
mod command;
#[path = "checker/exhaustive.rs"]
mod exhaustive;
#[path = "checker/random.rs"]
mod random;
#[path = "checker/simulated.rs"]
mod simulated;
#[path = "checker/table.rs"]
mod table;
