//! idemproof sends keyed requests again (overlapping, cut off, late, altered, from another tenant) and
//! tells whether the API did the work once and told every caller that one result.
//!
//! # The map of the house
//!
//! ```text
//! suites/*.yaml ─┐
//!                ├─> schedule ──> drive ──> history ──> judge ──> findings ──> report
//! target.yaml ───┘                  │                     ^
//!                                 chaos             rules + policy
//! ```
//!
//! | room | job | may know |
//! |---|---|---|
//! | [`text`] | reading what people write: YAML with places, diagnostics, templates, durations, redaction | nothing |
//! | [`spec`] | the rules as data | text |
//! | [`target`] | the API under test: operations, tenants, policy, hooks, probes | text, spec |
//! | [`suite`] | the YAML suites and the copies built into the binary | text, spec, target |
//! | [`schedule`] | the plan: suite and target compiled into attempts, waits and controls | text, spec, suite, target |
//! | [`history`] | the record of what happened, and its JSON Lines form | text, suite, schedule |
//! | [`chaos`] | the fault vocabulary, the client of the Toxiproxy API, the embedded Toxiproxy-compatible server | nothing |
//! | [`drive`] | performs a schedule: sockets, barriers, clocks, probes | text, target, suite, schedule, history, chaos |
//! | [`judge`] | decides rules from history and policy, without IO | text, spec, target, suite, schedule, history |
//! | [`report`] | terminal, HTML, JUnit, JSON | text, spec, suite, schedule, history, judge |
//! | [`mod@reference`] | the reference server: sans-IO core, stores, HTTP shell, switchable faults | nothing |
//! | [`run`] | selects cases and takes each through schedule, drive and judge; emits events | everything but `cli` |
//! | [`cli`] | the command line, one file per subcommand | everything |
//!
//! Two pure halves around one impure middle: `schedule`, `history` and `judge` have no IO, no clock and no
//! randomness of their own; `drive`, `chaos` and `reference` are the only rooms that touch sockets. The test
//! `tests/architecture.rs` reads the sources and fails on an import that is not in this table.

pub mod chaos;
pub mod cli;
pub mod drive;
pub mod history;
pub mod judge;
pub mod reference;
pub mod report;
pub mod run;
pub mod schedule;
pub mod spec;
pub mod suite;
pub mod target;
pub mod text;
