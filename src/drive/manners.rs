//! Politeness: the rate, the budget and the seats of a run.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use super::interrupt::Interrupt;
use crate::target::Limits;

/// Why no more requests may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The run is to stop.
    Interrupted,
    /// So many requests were allowed, and all of them are used.
    Spent(u32),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("interrupted"),
            Self::Spent(budget) => {
                write!(f, "the budget of {budget} requests is spent: raise `limits.requests` or select fewer cases")
            }
        }
    }
}

/// Shared by everything that a driver sends.
#[derive(Debug)]
pub(super) struct Manners {
    interrupt: Interrupt,
    spacing: Option<Duration>,
    next: Mutex<Instant>,
    budget: u32,
    left: AtomicU32,
    concurrency: u32,
    seats: Arc<Semaphore>,
}

impl Manners {
    pub(super) fn new(limits: &Limits, interrupt: Interrupt) -> Self {
        let concurrency = u32::from(limits.concurrency).max(1);
        Self {
            interrupt,
            spacing: limits.rate.map(|rate| Duration::from_secs(1) / rate.max(1)),
            next: Mutex::new(Instant::now()),
            budget: limits.requests,
            left: AtomicU32::new(limits.requests),
            concurrency,
            seats: Arc::new(Semaphore::new(concurrency as usize)),
        }
    }

    /// Takes leave to send one request: returns when its turn has come.
    ///
    /// # Errors
    /// When no request may be sent any more.
    pub(super) async fn one(&self) -> Result<(), Refusal> {
        self.burst(1)?;
        let Some(spacing) = self.spacing else { return Ok(()) };
        let wait = {
            let now = Instant::now();
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let turn = (*next).max(now);
            *next = turn + spacing;
            turn - now
        };
        if self.interrupt.sleep(wait).await { Ok(()) } else { Err(Refusal::Interrupted) }
    }

    /// Takes leave to send so many requests together, at once.
    ///
    /// # Errors
    /// When not all of them may be sent.
    pub(super) fn burst(&self, requests: u32) -> Result<(), Refusal> {
        if self.interrupt.is_set() {
            return Err(Refusal::Interrupted);
        }
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(requests))
            .map(drop)
            .map_err(|_| Refusal::Spent(self.budget))
    }

    /// Takes the seats that a whole case needs at once. All or none, so that two cases cannot each hold a part of
    /// what both need. A case that needs more than there are gets all of them.
    ///
    /// # Errors
    /// When an interrupt comes first.
    pub(super) async fn seats(&self, wanted: u32) -> Result<OwnedSemaphorePermit, Refusal> {
        let wanted = wanted.clamp(1, self.concurrency);
        tokio::select! {
            biased;
            () = self.interrupt.interrupted() => Err(Refusal::Interrupted),
            permit = self.seats.clone().acquire_many_owned(wanted) => permit.map_err(|_| Refusal::Interrupted),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[tokio::test]
    async fn the_budget_ends_and_says_so() {
        let limits = Limits { requests: 3, ..Limits::default() };
        let manners = Manners::new(&limits, Interrupt::never());
        manners.one().await.unwrap();
        assert_eq!(manners.burst(3), Err(Refusal::Spent(3)));
        manners.burst(2).unwrap();
        assert!(manners.one().await.unwrap_err().to_string().contains("budget of 3"));
    }

    #[tokio::test]
    async fn the_rate_spaces_requests() {
        let limits = Limits { rate: Some(100), ..Limits::default() };
        let manners = Manners::new(&limits, Interrupt::never());
        let began = Instant::now();
        for _ in 0..5 {
            manners.one().await.unwrap();
        }
        assert!(began.elapsed() >= Duration::from_millis(40), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn an_interrupt_ends_every_wait() {
        let (interrupter, interrupt) = Interrupt::pair();
        let limits = Limits { rate: Some(1), concurrency: 1, ..Limits::default() };
        let manners = Manners::new(&limits, interrupt);
        let _seat = manners.seats(40).await.unwrap();
        interrupter.interrupt();
        assert_eq!(manners.seats(1).await.unwrap_err(), Refusal::Interrupted);
        assert_eq!(manners.one().await, Err(Refusal::Interrupted));
    }
}
