//! One keyed request, from its claim to its answer.

use super::app::App;
use super::core::{Answer, Claim, Fingerprint, LostLease, OwnerToken, Record, State, Time, Verdict};
use super::fault::Fault;
use super::handler::{self, Run, refused, store_unavailable};
use super::http::{Problem, problem};
use super::operations::{Input, Job};
use super::policy::Policy;
use super::store::{Conflict, End, KeyId, Phase, Refused};
use std::sync::Arc;

/// How often a handler runs when others change what it reads before it can commit.
pub(super) const TRIES: usize = 50;

/// A request with everything that decides about it.
pub(super) struct Keyed {
    pub(super) id: KeyId,
    pub(super) policy: Policy,
    pub(super) fingerprint: Fingerprint,
    pub(super) job: Job,
    pub(super) input: Input,
}

/// What the client gets.
#[derive(Debug)]
pub(super) enum Reply {
    /// The answer to this very request.
    Fresh(Answer),
    /// The answer of the execution that this request repeats.
    Replay(Answer),
    /// Nothing: the worker died, and its connection closes.
    Died,
}

/// Claims the key, runs the handler if the claim is granted, and commits or drops the result.
pub(super) async fn execute(app: &Arc<App>, request: Keyed) -> Reply {
    if app.faults.contains(Fault::CheckThenActRace) {
        return check_then_act(app, request).await;
    }
    let steady = app.clock.steady().await;
    let claim = app.claim_of(&request);
    match app.store.claim(request.id.clone(), claim, app.terms).await {
        Ok(Verdict::Granted(record)) => {
            // An owner keeps its lease until it has come to its end, in whichever way.
            let (id, store) = (request.id.clone(), Arc::clone(&app.store));
            let kept = app.leases.keep(record.owner, id, store, request.input.controls.stall);
            drop(steady);
            let reply = own(app, request, record).await;
            drop(kept);
            reply
        }
        Ok(verdict) => app.without_running(verdict),
        // Without a claim nothing protects the client from a second effect, so nothing runs.
        Err(error) => Reply::Fresh(store_unavailable(&error)),
    }
}

/// The owner's part: everything after the claim.
async fn own(app: &Arc<App>, request: Keyed, record: Record) -> Reply {
    let Keyed { id, policy, job, input, .. } = request;
    let Record { owner, state, .. } = record;
    let policy = if app.faults.contains(Fault::TransientFailurePinned) { Policy::StoredFailures } else { policy };
    let dies = input.controls.dies_committed();
    let mut recovery = match state {
        State::Claimed { recovery, .. } => recovery,
        State::Completed(_) => None,
    };
    for _ in 0..TRIES {
        let work = app.work(Some((id.clone(), owner)), recovery);
        let answer = match handler::run(app, job, input.clone(), &work).await {
            Run::Ended(ending, answer) if policy.keeps(ending) => answer,
            Run::Ended(_, answer) => return give_back(app, id, owner, answer).await,
            Run::Refused(Refused::Conflict(_)) => {
                recovery = work.recovery();
                continue;
            }
            Run::Refused(lost) => return Reply::Fresh(refused(lost)),
            Run::Store(error) => return give_back(app, id, owner, store_unavailable(&error)).await,
            Run::Died => return Reply::Died,
        };
        let effects = work.take();
        let phase = Phase { owner, effects: effects.clone(), end: End::Answer(answer.clone()), now: app.clock.now() };
        match app.store.commit_phase(id.clone(), phase, app.terms).await {
            Ok(Ok(())) => {
                app.committed(&effects);
                return if dies { Reply::Died } else { Reply::Fresh(answer) };
            }
            Ok(Err(Refused::Conflict(_))) => recovery = work.recovery(),
            Ok(Err(Refused::Lost(LostLease))) => return Reply::Fresh(refused(LostLease.into())),
            // Giving back is safe even if the commit did happen: it touches claims, never a completed record.
            Err(error) => return give_back(app, id, owner, store_unavailable(&error)).await,
        }
    }
    give_back(app, id, owner, refused(Conflict.into())).await
}

/// Ends an execution without a result. Its effects were dropped, or are dropped with its work, before anybody else may
/// run; phases that have committed stay, and the next request goes on after them.
async fn give_back(app: &Arc<App>, id: KeyId, owner: OwnerToken, answer: Answer) -> Reply {
    // A claim that cannot be given back ends with its lease.
    let _ = app.store.release(id, owner).await;
    Reply::Fresh(answer)
}

impl App {
    fn claim_of(&self, request: &Keyed) -> Claim {
        Claim { fingerprint: request.fingerprint, owner: OwnerToken::fresh(), now: self.clock.now() }
    }

    /// The answer to a request whose claim was not granted.
    fn without_running(&self, verdict: Verdict) -> Reply {
        match verdict {
            Verdict::Replay(mut answer) => {
                if self.faults.contains(Fault::StatusDriftOnReplay) && answer.status == 201 {
                    answer.status = 200;
                }
                Reply::Replay(answer)
            }
            Verdict::Mismatch => Reply::Fresh(problem(
                Problem::KeyReused,
                "this key was used for another request; take a new key for a new intent",
            )),
            Verdict::InFlight(Time(_)) | Verdict::Granted(_) => Reply::Fresh(problem(
                Problem::KeyInUse,
                "a request with this key is being worked on; send it again later",
            )),
        }
    }
}

/// The fault [`Fault::CheckThenActRace`]: nothing stands between the look at the key and the insert after the effect.
async fn check_then_act(app: &Arc<App>, request: Keyed) -> Reply {
    let claim = app.claim_of(&request);
    let seen = match app.store.look(request.id.clone()).await {
        Ok(seen) => seen,
        Err(error) => return Reply::Fresh(store_unavailable(&error)),
    };
    match super::core::claim(seen.as_ref(), &claim, &app.terms) {
        Verdict::Granted(_) => {}
        verdict => return app.without_running(verdict),
    }
    let Keyed { id, policy, job, input, .. } = request;
    let work = app.work(None, None);
    let answer = match handler::run(app, job, input, &work).await {
        Run::Ended(ending, answer) if policy.keeps(ending) => answer,
        Run::Ended(_, answer) => return Reply::Fresh(answer),
        Run::Refused(conflict) => return Reply::Fresh(refused(conflict)),
        Run::Store(error) => return Reply::Fresh(store_unavailable(&error)),
        Run::Died => return Reply::Died,
    };
    let effects = work.take();
    match app.store.commit(effects.clone()).await {
        Ok(Ok(())) => app.committed(&effects),
        Ok(Err(conflict)) => return Reply::Fresh(refused(conflict.into())),
        Err(error) => return Reply::Fresh(store_unavailable(&error)),
    }
    let claim = Claim { now: app.clock.now(), ..claim };
    if let Ok(Verdict::Granted(_)) = app.store.claim(id.clone(), claim, app.terms).await {
        let end = End::Answer(answer.clone());
        let phase = Phase { owner: claim.owner, effects: Vec::new(), end, now: claim.now };
        let _ = app.store.commit_phase(id, phase, app.terms).await;
    }
    Reply::Fresh(answer)
}
