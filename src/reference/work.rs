//! The unit of work of one execution: what it reads, what it changes, and where its phases end.

use super::clock::Clock;
use super::core::{Answer, OwnerToken, Recovery, Terms};
use super::fault::{Fault, FaultSet};
use super::store::{Effect, End, KeyId, Phase, Refused, Row, RowId, Store, StoreError};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Why a handler came to no result that could be kept.
#[derive(Debug)]
pub(super) enum Halt {
    /// The request was refused before it could have an effect.
    Rejected(Answer),
    /// The handler failed.
    Failed(Answer),
    /// Its worker died, so there is nobody to answer or to clean up.
    Died,
    /// The end of a phase was refused.
    Refused(Refused),
    /// The store failed.
    Store(StoreError),
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Effects wait here for the commit that ends their phase.
pub(super) struct Work {
    store: Arc<dyn Store>,
    clock: Arc<Clock>,
    faults: FaultSet,
    terms: Terms,
    /// The key that the execution owns. Without one, no record stands for its effects.
    held: Option<(KeyId, OwnerToken)>,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    effects: Vec<Effect>,
    recovery: Option<Recovery>,
}

impl Work {
    /// The work of an execution, which goes on from a recovery point if there is one.
    pub(super) fn new(
        (store, clock): (Arc<dyn Store>, Arc<Clock>),
        (faults, terms): (FaultSet, Terms),
        held: Option<(KeyId, OwnerToken)>,
        recovery: Option<Recovery>,
    ) -> Self {
        let progress = Mutex::new(Progress { effects: Vec::new(), recovery });
        Self { store, clock, faults, terms, held, progress }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store, for doubles of outside systems that keep their books in it, in commits of their own.
    pub(super) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// What is wrong on purpose.
    pub(super) fn faults(&self) -> FaultSet {
        self.faults
    }

    /// Reads one row.
    pub(super) async fn find(&self, id: RowId) -> Result<Option<Row>, Halt> {
        Ok(self.store.find(id).await?)
    }

    /// Adds an effect to the current phase.
    pub(super) async fn add(&self, effect: Effect) -> Result<(), Halt> {
        if self.faults.contains(Fault::RecordAfterEffect) {
            let committed = self.store.commit(vec![effect]).await?;
            return committed.map_err(|conflict| Halt::Refused(conflict.into()));
        }
        self.progress().effects.push(effect);
        Ok(())
    }

    /// Whether the execution has come to an effect.
    pub(super) fn has_effects(&self) -> bool {
        let progress = self.progress();
        !progress.effects.is_empty() || progress.recovery.is_some()
    }

    /// The last phase that has committed.
    pub(super) fn recovery(&self) -> Option<Recovery> {
        self.progress().recovery.clone()
    }

    /// Ends a phase: commits its effects together with the recovery point, or halts.
    pub(super) async fn reach(&self, point: &str, saved: String) -> Result<(), Halt> {
        let (effects, recovery) = (self.take(), Recovery { point: point.to_owned(), saved });
        match &self.held {
            Some((id, owner)) => {
                let end = End::Point(recovery.clone());
                let phase = Phase { owner: *owner, effects, end, now: self.clock.now() };
                self.store.commit_phase(id.clone(), phase, self.terms).await?.map_err(Halt::Refused)?;
            }
            None => self.store.commit(effects).await?.map_err(|conflict| Halt::Refused(conflict.into()))?,
        }
        self.progress().recovery = Some(recovery);
        Ok(())
    }

    /// The effects of the current phase; none are left.
    pub(super) fn take(&self) -> Vec<Effect> {
        std::mem::take(&mut self.progress().effects)
    }

    /// The key for a call to an outside system, the same whenever this execution's phase is run again. `made` is an
    /// identifier that an earlier phase stored: when the request's key is new again after the retention, it is another.
    pub(super) fn outside_key(&self, phase: &str, made: &str) -> String {
        let mut hash = Sha256::new();
        let scope = self.held.as_ref().map(|(id, _)| (&id.scope, id.key.as_str()));
        let (tenant, method, route, key) =
            scope.map_or(("", "", "", ""), |(scope, key)| (&scope.tenant, scope.method, scope.route, key));
        for part in [tenant, method, route, key, phase, made] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.finalize().iter().fold(String::from("idem_"), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}
