//! The wish to stop, told once and seen by everybody.

use std::{
    future::{Future, pending},
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

/// How long attempts that are under way may go on after an interrupt.
const GRACE: Duration = Duration::from_secs(1);

/// Sees an interrupt. Clones see the same one.
#[derive(Debug, Clone)]
pub struct Interrupt(watch::Receiver<bool>);

/// Interrupts. Dropping it without [`interrupt`](Self::interrupt) interrupts nothing.
#[derive(Debug)]
pub struct Interrupter(watch::Sender<bool>);

impl Interrupt {
    /// A fresh pair.
    pub fn pair() -> (Interrupter, Self) {
        let (sender, receiver) = watch::channel(false);
        (Interrupter(sender), Self(receiver))
    }

    /// One that never comes.
    pub fn never() -> Self {
        Self::pair().1
    }

    /// Whether it has come.
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when it comes, at once if it has come.
    pub async fn interrupted(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|set| *set).await.is_err() {
            // The interrupter is gone: there is nobody left to interrupt.
            pending::<()>().await;
        }
    }

    /// Sleeps; returns whether the whole time has passed without an interrupt.
    pub(super) async fn sleep(&self, span: Duration) -> bool {
        tokio::select! {
            () = self.interrupted() => false,
            () = sleep(span) => true,
        }
    }
}

impl Interrupter {
    /// Makes it come.
    pub fn interrupt(&self) {
        self.0.send_replace(true);
    }
}

/// The instant by which something must be over; an interrupt moves it close.
#[derive(Debug, Clone)]
pub(super) struct Deadline {
    at: Instant,
    interrupt: Interrupt,
}

impl Deadline {
    pub(super) fn after(span: Duration, interrupt: &Interrupt) -> Self {
        Self { at: Instant::now() + span, interrupt: interrupt.clone() }
    }

    /// What the future gives, or `None` if it is not done in time.
    pub(super) async fn within<F: Future>(&self, future: F) -> Option<F::Output> {
        tokio::select! {
            biased;
            output = future => Some(output),
            () = sleep_until(self.at) => None,
            () = async { self.interrupt.interrupted().await; sleep(GRACE).await } => None,
        }
    }

    /// The earlier of this one and one `span` from now.
    pub(super) fn and_after(&self, span: Duration) -> Self {
        Self { at: self.at.min(Instant::now() + span), interrupt: self.interrupt.clone() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[tokio::test]
    async fn an_interrupt_is_seen_by_every_clone_and_ends_a_sleep() {
        let (interrupter, interrupt) = Interrupt::pair();
        let other = interrupt.clone();
        assert!(!other.is_set());
        let sleeper = tokio::spawn(async move { other.sleep(Duration::from_secs(3600)).await });
        interrupter.interrupt();
        assert!(!sleeper.await.unwrap());
        assert!(interrupt.is_set());
        interrupt.interrupted().await;
    }

    #[tokio::test]
    async fn a_deadline_lets_a_ready_future_win() {
        let deadline = Deadline::after(Duration::ZERO, &Interrupt::never());
        assert_eq!(deadline.within(async { 1 }).await, Some(1));
        assert_eq!(deadline.within(pending::<()>()).await, None);
    }
}
