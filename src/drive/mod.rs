//! Performs a schedule: the only room that sends requests to a target.
//!
//! One send is one arrival: every attempt has a TCP connection of its own, driven directly, without a pool, a
//! retry, a redirect, a decoder or a proxy from the environment. Every byte is counted and stamped on one clock.

mod attempt;
mod call;
mod clock;
mod control;
mod driver;
mod exchange;
mod fault;
mod interrupt;
mod manners;
mod meter;
mod payload;
mod perform;
mod probe;
mod proxy;
mod raw;
mod record;
mod scene;
mod wire;
mod words;

#[cfg(test)]
mod tests;

pub use driver::{DriveError, Driver, Options};
pub use interrupt::{Interrupt, Interrupter};
