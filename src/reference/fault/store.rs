//! The faults between the protocol and its store.
//!
//! A store that is right stands behind this one, which is put in between only when one of these faults is on.

use super::{Fault, FaultSet};
use crate::reference::core::{self, Claim, LostLease, OwnerToken, Record, State, Terms, Time, Verdict};
use crate::reference::store::{
    Conflict, Effect, End, KeyId, Kind, Pending, Phase, Refused, Row, RowId, Store, StoreError,
};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// How many keys are kept by [`Fault::FewKeysKept`].
const FEW: usize = 8;
/// How long the handler may take under [`Fault::TimeoutReleasesClaim`].
const IMPATIENCE: Duration = Duration::from_millis(400);
/// How long a key is free under [`Fault::UnlockBeforeStore`]: a slow write.
const GAP: Duration = Duration::from_millis(150);
/// How far the copy is behind under [`Fault::StaleCopyAsked`].
const LAG: Duration = Duration::from_millis(200);
/// The time between a look and what is done about it.
const MOMENT: Duration = Duration::from_millis(30);
/// A time at which every record has expired.
const NEVER: Time = Time(u64::MAX);

/// A store with faults.
#[derive(Debug)]
pub(in crate::reference) struct Faulty {
    inner: Arc<dyn Store>,
    faults: FaultSet,
    node: usize,
    books: Arc<Mutex<Books>>,
}

/// What the faults remember.
#[derive(Debug, Default)]
struct Books {
    /// Who has used a name first.
    users: HashMap<KeyId, String>,
    /// Who is at work under a name.
    running: HashMap<KeyId, String>,
    /// The keys that several may have taken.
    raced: HashSet<KeyId>,
    /// The keys with a result and since when, the oldest first.
    finished: VecDeque<(KeyId, Instant)>,
}

/// The store as one node has it, with the faults that act here.
pub(in crate::reference) fn broken(store: Arc<dyn Store>, faults: FaultSet, node: usize) -> Arc<dyn Store> {
    const HERE: &[Fault] = &[
        Fault::ExpiredKeyRace,
        Fault::UnlockBeforeStore,
        Fault::StaleCopyAsked,
        Fault::KeyUnknownToPeer,
        Fault::LeaseShorterThanHandler,
        Fault::CompletionNotFenced,
        Fault::LateFailureFreesKey,
        Fault::TimeoutReleasesClaim,
        Fault::FewKeysKept,
        Fault::KeyNeverExpires,
        Fault::ExpiredKeyYields5xx,
        Fault::MismatchIgnoredWhileRunning,
        Fault::MismatchOverwritesRecord,
        Fault::MismatchRemovesRecord,
        Fault::CrossTenantConflict,
        Fault::CrossTenantLock,
        Fault::ReplayNeverEngages,
    ];
    if !HERE.iter().any(|fault| faults.contains(*fault)) {
        return store;
    }
    Arc::new(Faulty { inner: store, faults, node, books: Arc::default() })
}

/// Takes a key from whoever has it. The token returned owns it from now on, and nobody may take it over.
pub(in crate::reference) async fn seize(store: &dyn Store, id: &KeyId, request: Claim, terms: Terms) -> OwnerToken {
    // A store that fails leaves things as they are, which is no fault of its own.
    let _ = store.claim(id.clone(), Claim { now: NEVER, ..request }, terms).await;
    request.owner
}

/// Removes whatever is known about a key.
async fn forget(store: &dyn Store, id: &KeyId, terms: Terms) {
    let request = Claim { fingerprint: core::Fingerprint([0; 32]), owner: OwnerToken::fresh(), now: NEVER };
    let owner = seize(store, id, request, terms).await;
    let _ = store.release(id.clone(), owner).await;
}

/// The name of a key without its tenant.
fn shared(id: &KeyId) -> KeyId {
    let mut id = id.clone();
    id.scope.tenant.clear();
    id
}

impl Faulty {
    fn on(&self, fault: Fault) -> bool {
        self.faults.contains(fault)
    }

    fn books(&self) -> std::sync::MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key as this node knows it.
    fn known_as(&self, mut id: KeyId) -> KeyId {
        if self.on(Fault::KeyUnknownToPeer) {
            id.key = format!("{} of node {}", id.key, self.node);
        }
        id
    }

    async fn look_expired(&self, id: &KeyId, now: Time) -> Option<Record> {
        let record = self.inner.look(id.clone()).await.ok()?;
        record.filter(|record| core::expired(record, now))
    }

    /// Whether another tenant stands in the way.
    fn foreign(&self, id: &KeyId, now: Time) -> Option<Verdict> {
        let mut books = self.books();
        let user = books.users.entry(shared(id)).or_insert_with(|| id.scope.tenant.clone());
        if self.on(Fault::CrossTenantConflict) && *user != id.scope.tenant {
            return Some(Verdict::Mismatch);
        }
        let running = books.running.get(&shared(id)).filter(|tenant| **tenant != id.scope.tenant);
        (self.on(Fault::CrossTenantLock) && running.is_some()).then_some(Verdict::InFlight(now))
    }

    /// What comes of a request whose payload is another one than the first.
    async fn mismatch(&self, id: &KeyId, request: Claim, terms: Terms) -> Result<Verdict, StoreError> {
        if self.on(Fault::MismatchOverwritesRecord) {
            return self.inner.claim(id.clone(), Claim { now: NEVER, ..request }, terms).await;
        }
        if self.on(Fault::MismatchRemovesRecord) {
            forget(&*self.inner, id, terms).await;
        }
        if self.on(Fault::MismatchIgnoredWhileRunning) {
            let mut waited = false;
            loop {
                match self.inner.look(id.clone()).await?.map(|record| record.state) {
                    Some(State::Claimed { .. }) => sleep(MOMENT).await,
                    Some(State::Completed(answer)) if waited => return Ok(Verdict::Replay(answer)),
                    _ => break,
                }
                waited = true;
            }
        }
        Ok(Verdict::Mismatch)
    }

    fn granted(&self, id: &KeyId, owner: OwnerToken) {
        self.books().running.insert(shared(id), id.scope.tenant.clone());
        if self.on(Fault::TimeoutReleasesClaim) {
            let (inner, id) = (Arc::clone(&self.inner), id.clone());
            tokio::spawn(async move {
                sleep(IMPATIENCE).await;
                let _ = inner.release(id, owner).await;
            });
        }
    }

    /// Stores the answer a moment after it was given and the key was freed.
    async fn store_late(&self, id: &KeyId, phase: Phase, terms: Terms) -> Result<(), StoreError> {
        let record = self.inner.look(id.clone()).await?;
        let _ = self.inner.commit(phase.effects).await?;
        self.inner.release(id.clone(), phase.owner).await?;
        let (inner, id) = (Arc::clone(&self.inner), id.clone());
        tokio::spawn(async move {
            sleep(GAP).await;
            let Some(record) = record else { return };
            let request = Claim { fingerprint: record.fingerprint, owner: phase.owner, now: phase.now };
            let _ = inner.claim(id.clone(), request, terms).await;
            let _ = inner.commit_phase(id, Phase { effects: Vec::new(), ..phase }, terms).await;
        });
        Ok(())
    }

    /// Commits the effects, and no record of them.
    async fn store_nothing(&self, id: &KeyId, phase: Phase) -> Result<(), StoreError> {
        let _ = self.inner.commit(phase.effects).await?;
        self.inner.release(id.clone(), phase.owner).await
    }

    async fn finished(&self, id: &KeyId, terms: Terms) {
        let oldest = {
            let mut books = self.books();
            books.running.remove(&shared(id));
            books.finished.push_back((id.clone(), Instant::now()));
            let full = self.on(Fault::FewKeysKept) && books.finished.len() > FEW;
            if full { books.finished.pop_front() } else { None }
        };
        if let Some((oldest, _)) = oldest {
            forget(&*self.inner, &oldest, terms).await;
        }
    }
}

impl Store for Faulty {
    fn claim(&self, id: KeyId, request: Claim, terms: Terms) -> Pending<'_, Verdict> {
        let id = self.known_as(id);
        Box::pin(async move {
            if let Some(verdict) = self.foreign(&id, request.now) {
                return Ok(verdict);
            }
            if let Some(record) = self.look_expired(&id, request.now).await {
                if self.on(Fault::ExpiredKeyYields5xx) {
                    // An error that nobody handles, such as the violation of a unique constraint.
                    std::panic::resume_unwind(Box::new("UNIQUE constraint failed: idempotency_keys"));
                }
                if let State::Completed(answer) = record.state
                    && self.on(Fault::KeyNeverExpires)
                {
                    return Ok(Verdict::Replay(answer));
                }
                if self.on(Fault::ExpiredKeyRace) {
                    self.books().raced.insert(id.clone());
                    sleep(MOMENT).await;
                    return self.inner.claim(id, Claim { now: NEVER, ..request }, terms).await;
                }
            }
            let unknown = self.books().finished.iter().any(|(known, since)| *known == id && since.elapsed() < LAG);
            if unknown && self.on(Fault::StaleCopyAsked) {
                return self.inner.claim(id, Claim { now: NEVER, ..request }, terms).await;
            }
            let verdict = match self.inner.claim(id.clone(), request, terms).await? {
                Verdict::Mismatch => self.mismatch(&id, request, terms).await?,
                verdict => verdict,
            };
            if let Verdict::Granted(record) = &verdict {
                self.granted(&id, record.owner);
            }
            Ok(verdict)
        })
    }

    fn commit_phase(&self, id: KeyId, phase: Phase, terms: Terms) -> Pending<'_, Result<(), Refused>> {
        let id = self.known_as(id);
        Box::pin(async move {
            if let End::Answer(_) = phase.end {
                if self.on(Fault::UnlockBeforeStore) {
                    return self.store_late(&id, phase, terms).await.map(Ok);
                }
                if self.on(Fault::ReplayNeverEngages) {
                    return self.store_nothing(&id, phase).await.map(Ok);
                }
            }
            let (effects, last) = (phase.effects.clone(), matches!(phase.end, End::Answer(_)));
            let committed = self.inner.commit_phase(id.clone(), phase, terms).await?;
            let unfenced = [
                Fault::ExpiredKeyRace,
                Fault::LeaseShorterThanHandler,
                Fault::CompletionNotFenced,
                Fault::TimeoutReleasesClaim,
            ];
            let committed = match committed {
                Err(Refused::Lost(_))
                    if unfenced.iter().any(|fault| self.on(*fault)) || self.books().raced.contains(&id) =>
                {
                    self.inner.commit(effects).await?.map_err(Refused::from)
                }
                committed => committed,
            };
            if last {
                self.finished(&id, terms).await;
            }
            Ok(committed)
        })
    }

    fn renew(&self, id: KeyId, owner: OwnerToken, now: Time, terms: Terms) -> Pending<'_, Result<(), LostLease>> {
        let id = self.known_as(id);
        if self.on(Fault::LeaseShorterThanHandler) {
            return Box::pin(std::future::ready(Ok(Ok(()))));
        }
        self.inner.renew(id, owner, now, terms)
    }

    fn release(&self, id: KeyId, owner: OwnerToken) -> Pending<'_, ()> {
        let id = self.known_as(id);
        Box::pin(async move {
            self.books().running.remove(&shared(&id));
            let owner = match self.inner.look(id.clone()).await? {
                Some(record) if self.on(Fault::LateFailureFreesKey) => record.owner,
                _ => owner,
            };
            self.inner.release(id, owner).await
        })
    }

    fn look(&self, id: KeyId) -> Pending<'_, Option<Record>> {
        self.inner.look(self.known_as(id))
    }

    fn commit(&self, effects: Vec<Effect>) -> Pending<'_, Result<(), Conflict>> {
        self.inner.commit(effects)
    }

    fn list(&self, kind: Kind, tenant: String, reference: String) -> Pending<'_, Vec<Row>> {
        self.inner.list(kind, tenant, reference)
    }

    fn find(&self, id: RowId) -> Pending<'_, Option<Row>> {
        self.inner.find(id)
    }

    fn sweep(&self, now: Time) -> Pending<'_, usize> {
        if self.on(Fault::KeyNeverExpires) {
            return Box::pin(std::future::ready(Ok(0)));
        }
        self.inner.sweep(now)
    }
}
