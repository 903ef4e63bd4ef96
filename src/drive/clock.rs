//! The one monotonic clock of a run.

use std::time::Instant;

use crate::history::Micros;

/// Counts microseconds from its making.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock(Instant);

impl Clock {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn now(self) -> Micros {
        Micros::try_from(self.0.elapsed().as_micros()).unwrap_or(Micros::MAX)
    }
}
