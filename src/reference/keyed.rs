//! One keyed request, from its claim to its answer.

use super::clock::Clock;
use super::core::{Answer, Claim, Fingerprint, OwnerToken, Terms, Time, Verdict};
use super::fault::{Fault, FaultSet};
use super::http::{Problem, problem};
use super::payments::{self, FailCounts, Order, Run, Work};
use super::policy::{Ending, Policy};
use super::server::Load;
use super::store::{Completion, KeyId, Store, StoreError};
use std::sync::Arc;

/// What all requests of a server share.
#[derive(Debug)]
pub(super) struct App {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Clock,
    pub(super) faults: FaultSet,
    pub(super) terms: Terms,
    pub(super) fail_counts: FailCounts,
    pub(super) load: Load,
}

/// A request with everything that decides about it.
pub(super) struct Keyed {
    pub(super) id: KeyId,
    pub(super) policy: Policy,
    pub(super) fingerprint: Fingerprint,
    pub(super) order: Order,
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
    let claim = app.claim_of(&request);
    match app.store.claim(request.id.clone(), claim, app.terms).await {
        Ok(Verdict::Granted(_)) => own(app, request, claim.owner).await,
        Ok(verdict) => app.without_running(verdict),
        // Without a claim nothing protects the client from a second effect, so nothing runs.
        Err(error) => Reply::Fresh(store_unavailable(&error)),
    }
}

/// The owner's part: everything after the claim.
async fn own(app: &Arc<App>, request: Keyed, owner: OwnerToken) -> Reply {
    let Keyed { id, policy, order, .. } = request;
    let policy = if app.faults.contains(Fault::TransientFailurePinned) { Policy::StoredFailures } else { policy };
    let work = Arc::new(Work::new(Arc::clone(&app.store), app.faults));
    let (ending, answer) = match handle(app, order, &work).await {
        Run::Ended(ending, answer) => (ending, answer),
        Run::Died => return Reply::Died,
    };
    if !policy.keeps(ending) {
        // The effects are dropped before anybody else may run. A claim that cannot be released ends with its lease.
        drop(work);
        let _ = app.store.release(id, owner).await;
        return Reply::Fresh(answer);
    }
    let completion = Completion { owner, answer: answer.clone(), effects: work.take(), now: app.clock.now() };
    match app.store.complete(id.clone(), completion, app.terms).await {
        Ok(Ok(())) => Reply::Fresh(answer),
        Ok(Err(lost)) => Reply::Fresh(problem(Problem::LeaseLost, lost.to_string())),
        Err(error) => {
            // Releasing is safe even if the commit did happen: it removes claims, never a completed record.
            let _ = app.store.release(id, owner).await;
            Reply::Fresh(store_unavailable(&error))
        }
    }
}

/// Runs the handler in a task of its own, so that its unwinding ends there.
async fn handle(app: &Arc<App>, order: Order, work: &Arc<Work>) -> Run {
    let mut handler = tokio::spawn({
        let (app, work) = (Arc::clone(app), Arc::clone(work));
        async move { payments::run(order, work, &app.fail_counts).await }
    });
    tokio::select! {
        biased;
        ended = &mut handler => ended.unwrap_or_else(|_| {
            Run::Ended(Ending::Failed, problem(Problem::Internal, "the handler ended with an unhandled error"))
        }),
        () = app.load.given_up() => {
            handler.abort();
            // Once it has come to its end, no effect of it can follow.
            let _ = handler.await;
            Run::Ended(Ending::Interrupted, problem(Problem::Stopping, "the server stopped before the work was done"))
        }
    }
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
    let Keyed { id, policy, order, .. } = request;
    let work = Arc::new(Work::new(Arc::clone(&app.store), app.faults));
    let answer = match handle(app, order, &work).await {
        Run::Ended(ending, answer) if policy.keeps(ending) => answer,
        Run::Ended(_, answer) => return Reply::Fresh(answer),
        Run::Died => return Reply::Died,
    };
    if let Err(error) = app.store.commit(work.take()).await {
        return Reply::Fresh(store_unavailable(&error));
    }
    let claim = Claim { now: app.clock.now(), ..claim };
    if let Ok(Verdict::Granted(_)) = app.store.claim(id.clone(), claim, app.terms).await {
        let completion = Completion { owner: claim.owner, answer: answer.clone(), effects: Vec::new(), now: claim.now };
        let _ = app.store.complete(id, completion, app.terms).await;
    }
    Reply::Fresh(answer)
}

fn store_unavailable(error: &StoreError) -> Answer {
    problem(Problem::StoreUnavailable, error.to_string())
}
