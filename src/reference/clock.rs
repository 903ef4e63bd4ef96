//! The clock of a server: real time plus an offset that a test may move forward.

use super::core::Time;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Reads the system's clock once and counts on from there, so that a step of that clock does not step a lease.
#[derive(Debug)]
pub(super) struct Clock {
    epoch: Time,
    started: Instant,
    offset_ms: AtomicU64,
}

impl Clock {
    pub(super) fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { epoch: Time(0).after(since_epoch), started: Instant::now(), offset_ms: AtomicU64::new(0) }
    }

    pub(super) fn now(&self) -> Time {
        let offset = Duration::from_millis(self.offset_ms.load(Ordering::SeqCst));
        self.epoch.after(self.started.elapsed()).after(offset)
    }

    /// Moves the clock forward and tells the new time.
    pub(super) fn advance(&self, by: Duration) -> Time {
        let by = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        // Saturating: a clock that has come to the end of time stays there instead of starting again.
        let moved = |offset: u64| Some(offset.saturating_add(by));
        // The closure always gives a value, so the update cannot be refused.
        let _ = self.offset_ms.fetch_update(Ordering::SeqCst, Ordering::SeqCst, moved);
        self.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advancing_moves_leases_and_nothing_else() {
        let clock = Clock::start();
        let before = clock.now();
        let after = clock.advance(Duration::from_secs(3600));
        assert!(after >= before.after(Duration::from_secs(3600)));
        assert!(clock.now() >= after);
    }

    #[test]
    fn time_never_wraps() {
        let clock = Clock::start();
        clock.advance(Duration::MAX);
        assert_eq!(clock.advance(Duration::MAX), Time(u64::MAX));
    }
}
