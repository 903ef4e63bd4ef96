//! The clock of a server: real time plus an offset that a test may move forward.

use super::core::Time;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{RwLock, RwLockReadGuard};

/// Reads the system's clock once and counts on from there, so that a step of that clock does not step a lease.
#[derive(Debug)]
pub(super) struct Clock {
    epoch: Time,
    started: Instant,
    offset_ms: AtomicU64,
    steps: RwLock<()>,
}

impl Clock {
    pub(super) fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            epoch: Time(0).after(since_epoch),
            started: Instant::now(),
            offset_ms: AtomicU64::new(0),
            steps: RwLock::new(()),
        }
    }

    pub(super) fn now(&self) -> Time {
        let offset = Duration::from_millis(self.offset_ms.load(Ordering::SeqCst));
        self.epoch.after(self.started.elapsed()).after(offset)
    }

    /// No step is made while the value returned lives. Real time does not jump between the moment at which a request
    /// reads the clock and the moment at which its claim stands in the store, so the steps of a test do not either.
    pub(super) async fn steady(&self) -> RwLockReadGuard<'_, ()> {
        self.steps.read().await
    }

    /// Moves the clock forward, between two claims, and tells the new time.
    pub(super) async fn advance(&self, by: Duration) -> Time {
        let by = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        let _alone = self.steps.write().await;
        // Saturating: a clock that has come to the end of time stays there instead of starting again.
        let moved = |offset: u64| Some(offset.saturating_add(by));
        // The closure always gives a value, so the update cannot be refused.
        let _ = self.offset_ms.fetch_update(Ordering::SeqCst, Ordering::SeqCst, moved);
        self.now()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[tokio::test]
    async fn advancing_moves_leases_and_nothing_else() {
        let clock = Clock::start();
        let before = clock.now();
        let after = clock.advance(Duration::from_secs(3600)).await;
        assert!(after >= before.after(Duration::from_secs(3600)));
        assert!(clock.now() >= after);
    }

    #[tokio::test]
    async fn time_never_wraps() {
        let clock = Clock::start();
        clock.advance(Duration::MAX).await;
        assert_eq!(clock.advance(Duration::MAX).await, Time(u64::MAX));
    }

    #[tokio::test]
    async fn a_step_waits_for_whoever_needs_a_steady_clock() {
        let clock = Clock::start();
        let steady = clock.steady().await;
        let (before, mut step) = (clock.now(), Box::pin(clock.advance(Duration::from_secs(3600))));
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut step).await.is_err());
        assert!(clock.now() < before.after(Duration::from_secs(3600)));
        drop(steady);
        assert!(step.await >= before.after(Duration::from_secs(3600)));
    }
}
