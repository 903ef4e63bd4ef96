//! What the tests that need outside things share: starting them, and saying why they could not be had.
//!
//! A plain `cargo test` must pass on a machine that has nothing but Rust, and must not hide what it did not test.
//! The standard harness swallows what a passing test prints, so tests that need an outside thing live in a test target
//! with `harness = false` and are built by [`external_trial`]:
//!
//! ```ignore
//! mod common;
//! use common::{external_trial, peer, toxiproxy};
//!
//! fn main() {
//!     let trials = vec![
//!         external_trial("express replays", || peer::start("express-idempotency"), |peer| {
//!             let url = peer.base_url();
//!             // use it; an Err or a panic fails the trial
//!             Ok(())
//!         }),
//!         external_trial("drops", || toxiproxy::start().and(|| peer::start("express-idempotency")), |(toxi, peer)| Ok(())),
//!     ];
//!     libtest_mimic::run(&libtest_mimic::Arguments::from_args(), trials).exit();
//! }
//! ```
//!
//! A thing that is not installed makes its trial `ignored (what: why)` and prints `skipped: what: why` on stderr. With
//! `IDEMPROOF_REQUIRE_ALL=1` (set by `.ci/run`, which installs everything) the same trial fails. A thing that is installed
//! and does not start always fails its trial.

// Each test target compiles this module for itself and uses a part of it.
#![allow(dead_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub(crate) mod http;
pub(crate) mod peer;
pub(crate) mod postgres;
mod process;
pub(crate) mod toxiproxy;

use libtest_mimic::{Completion, Failed, Trial};
use std::ffi::OsString;
use std::fmt;

/// An outside thing: at hand, or not installed.
pub(crate) enum Need<T> {
    /// It runs, and stops when it is dropped.
    Ready(T),
    /// It cannot be had on this machine.
    Skipped(Skip),
}

impl<T> Need<T> {
    /// Both things, the second started only when the first is at hand.
    pub(crate) fn and<U>(self, next: impl FnOnce() -> Need<U>) -> Need<(T, U)> {
        match self {
            Self::Skipped(skip) => Need::Skipped(skip),
            Self::Ready(first) => match next() {
                Need::Ready(second) => Need::Ready((first, second)),
                Need::Skipped(skip) => Need::Skipped(skip),
            },
        }
    }
}

/// What could not be had, why, and how to get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skip {
    pub(crate) what: String,
    pub(crate) why: String,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}

/// A trial that starts what it needs with `start` and hands it to `test`; skipped when it cannot be had.
pub(crate) fn external_trial<T: 'static>(
    name: impl Into<String>,
    start: impl FnOnce() -> Need<T> + Send + 'static,
    test: impl FnOnce(&T) -> Result<(), Failed> + Send + 'static,
) -> Trial {
    Trial::ignorable_test(name, move || match start() {
        Need::Ready(thing) => test(&thing).map(|()| Completion::Completed),
        Need::Skipped(why) => Ok(skip(&why)),
    })
}

/// Says on stderr what is skipped and why, and hands back what makes the trial an ignored one.
///
/// # Panics
/// When `IDEMPROOF_REQUIRE_ALL` is `1`: then nothing may be skipped.
pub(crate) fn skip(skip: &Skip) -> Completion {
    assert!(
        !requires_all(std::env::var_os("IDEMPROOF_REQUIRE_ALL")),
        "{skip}\nIDEMPROOF_REQUIRE_ALL=1 is set, so nothing may be skipped"
    );
    // One write, so that the words of trials running side by side do not mix.
    let line = format!("skipped: {skip}\n");
    eprint!("{line}");
    Completion::ignored_with(skip)
}

/// Whether the value of `IDEMPROOF_REQUIRE_ALL` forbids skipping: only `1` does.
pub(crate) fn requires_all(value: Option<OsString>) -> bool {
    value.is_some_and(|value| value == "1")
}
