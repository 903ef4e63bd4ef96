//! Tests of the room as a whole, against servers on raw sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arrivals;
mod bursts;
mod faults;
mod hostile;
mod steps;
pub(super) mod support;
mod tls;
