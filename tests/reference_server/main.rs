//! The reference server over each of its stores, with one node and several, and with what goes wrong around it.
//!
//! What needs PostgreSQL is skipped where it is not installed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

mod client;
mod contract;
mod differential;
mod outage;
mod process;
mod subject;

fn main() {
    let trials = [contract::trials(), differential::trials(), outage::trials(), process::trials()];
    let mut arguments = libtest_mimic::Arguments::from_args();
    // Each trial with PostgreSQL has a server of its own, so not too many at once.
    arguments.test_threads = arguments.test_threads.or(Some(4));
    libtest_mimic::run(&arguments, trials.into_iter().flatten().collect()).exit();
}
