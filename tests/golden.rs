//! The judge against histories whose verdict is known: worked examples, one history per rule and decision, and
//! simulated servers, right and wrong ones.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "golden/build.rs"]
mod build;
#[path = "golden/expectations.rs"]
mod expectations;
#[path = "golden/rules.rs"]
mod rules;
#[path = "golden/simulate.rs"]
mod simulate;
#[path = "golden/worked.rs"]
mod worked;
