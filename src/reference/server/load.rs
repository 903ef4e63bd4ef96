//! The work in flight: how much there is, how much there may be, and when to stop waiting for it.

use std::sync::Arc;
use tokio::sync::watch;

/// Counts work in flight.
#[derive(Debug, Clone)]
pub(in crate::reference) struct Load {
    state: Arc<watch::Sender<State>>,
}

#[derive(Debug, Default)]
struct State {
    in_flight: usize,
    given_up: bool,
}

impl Default for Load {
    fn default() -> Self {
        Self { state: Arc::new(watch::Sender::new(State::default())) }
    }
}

impl Load {
    /// The most requests that may be worked on at once.
    const MOST: usize = 1024;

    /// Counts one piece of work, as long as the value returned lives. Refused when there is too much or no more time.
    pub(in crate::reference) fn begin(&self) -> Option<InFlight> {
        let admitted = self.state.send_if_modified(|state| {
            let admitted = state.in_flight < Self::MOST && !state.given_up;
            state.in_flight += usize::from(admitted);
            admitted
        });
        admitted.then(|| InFlight(self.clone()))
    }

    /// How many pieces of work are in flight.
    pub(in crate::reference) fn in_flight(&self) -> usize {
        self.state.borrow().in_flight
    }

    /// Waits until no work is in flight.
    pub(super) async fn idle(&self) {
        // The sender lives in `self`, so the wait cannot end for want of one.
        let _ = self.state.subscribe().wait_for(|state| state.in_flight == 0).await;
    }

    /// Interrupts all work in flight.
    pub(super) fn give_up(&self) {
        self.state.send_modify(|state| state.given_up = true);
    }

    /// Waits until work in flight is to be interrupted.
    pub(in crate::reference) async fn given_up(&self) {
        let _ = self.state.subscribe().wait_for(|state| state.given_up).await;
    }
}

/// One piece of work in flight.
#[derive(Debug)]
pub(in crate::reference) struct InFlight(Load);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.in_flight -= 1);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[tokio::test]
    async fn work_is_counted_limited_and_interrupted() {
        let load = Load::default();
        load.idle().await;
        let mut work: Vec<_> = (0..Load::MOST).map(|_| load.begin().unwrap()).collect();
        assert!(load.begin().is_none());
        assert_eq!(load.in_flight(), Load::MOST);
        work.pop();
        work.push(load.begin().unwrap());
        load.give_up();
        load.given_up().await;
        drop(work);
        load.idle().await;
        assert!(load.begin().is_none());
    }
}
