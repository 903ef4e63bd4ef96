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

/// What an owner at work holds.
#[derive(Debug, Clone)]
struct Held {
    id: KeyId,
    store: Arc<dyn Store>,
    /// A hung owner is at work and does not renew.
    hung: bool,
}

/// The owners of a process that are at work.
#[derive(Debug, Default)]
pub(super) struct Leases {
    owners: Mutex<HashMap<OwnerToken, Held>>,
}

impl Leases {
    fn owners(&self) -> MutexGuard<'_, HashMap<OwnerToken, Held>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many owners are at work.
    pub(super) fn count(&self) -> usize {
        self.owners().len()
    }

    /// Keeps the lease of an owner, unless it hangs, for as long as the value returned lives.
    pub(super) fn keep(self: &Arc<Self>, owner: OwnerToken, id: KeyId, store: Arc<dyn Store>, hung: bool) -> Kept {
        self.owners().insert(owner, Held { id, store, hung });
        Kept { leases: Arc::clone(self), owner }
    }

    /// Renews every lease once, side by side. A store that fails is asked again at the next occasion.
    pub(super) async fn renew(self: &Arc<Self>, clock: &Clock, terms: Terms) {
        let owners = self.owners().clone();
        let mut renewals = JoinSet::new();
        for (owner, Held { id, store, .. }) in owners.into_iter().filter(|(_, held)| !held.hung) {
            let now = clock.now();
            // An owner that has lost its key learns it when it commits.
            renewals.spawn(async move { store.renew(id, owner, now, terms).await });
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

/// An owner that is at work.
#[derive(Debug)]
pub(super) struct Kept {
    leases: Arc<Leases>,
    owner: OwnerToken,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.leases.owners().remove(&self.owner);
    }
}
