//! Keeping the leases of owners that are alive.
//!
//! An owner that works for longer than its lease is not dead. As long as it lives, its lease is renewed three times per
//! lease, so that a single late or failed renewal does not cost it the key. An owner that dies, hangs or loses its key is
//! not renewed any more. Nothing depends on it for safety: an owner that was overtaken cannot commit.

use super::clock::Clock;
use super::core::{OwnerToken, Terms};
use super::store::{KeyId, Store};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// What each living owner holds, and the store it holds it in.
type Living = HashMap<OwnerToken, (KeyId, Arc<dyn Store>)>;

/// The living owners of a process.
#[derive(Debug, Default)]
pub(super) struct Leases {
    living: Mutex<Living>,
}

impl Leases {
    fn living(&self) -> MutexGuard<'_, Living> {
        self.living.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the lease of an owner for as long as the value returned lives.
    pub(super) fn keep(self: &Arc<Self>, owner: OwnerToken, id: KeyId, store: Arc<dyn Store>) -> Kept {
        self.living().insert(owner, (id, store));
        Kept { leases: Arc::clone(self), owner }
    }

    /// Renews every lease once, side by side. A store that fails is asked again at the next occasion.
    pub(super) async fn renew(self: &Arc<Self>, clock: &Clock, terms: Terms) {
        let owners: Vec<_> =
            self.living().iter().map(|(owner, (id, store))| (*owner, id.clone(), store.clone())).collect();
        let mut renewals = JoinSet::new();
        for (owner, id, store) in owners {
            let (leases, now) = (Arc::clone(self), clock.now());
            renewals.spawn(async move {
                if let Ok(Err(_lost)) = store.renew(id, owner, now, terms).await {
                    leases.living().remove(&owner);
                }
            });
        }
        while renewals.join_next().await.is_some() {}
    }

    /// Renews leases for ever, three times per lease.
    pub(super) async fn keep_renewing(self: Arc<Self>, clock: Arc<Clock>, terms: Terms) {
        let mut ticks = interval((terms.lease / 3).max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.renew(&clock, terms).await;
        }
    }
}

/// An owner that is alive.
#[derive(Debug)]
pub(super) struct Kept {
    leases: Arc<Leases>,
    owner: OwnerToken,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.leases.living().remove(&self.owner);
    }
}
