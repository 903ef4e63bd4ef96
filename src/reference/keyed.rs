//! One keyed request, from its claim to its answer.

use super::app::App;
use super::contract::{Different, Kept, Open, ReplayKind, StatusOr, Waits};
use super::core::{Answer, Claim, Fingerprint, LostLease, OwnerToken, Record, State, Time, Verdict};
use super::fault::{self, Fault};
use super::handler::{self, Run, refused, store_unavailable};
use super::http::Problem;
use super::keyless;
use super::operations::{Input, Job};
use super::policy::Policy;
use super::store::{Conflict, End, KeyId, Kind, Phase, Refused, RowId};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// How often a duplicate that waits looks whether the first request is through.
const LOOK: Duration = Duration::from_millis(10);

/// How often a handler runs when others change what it reads before it can commit.
pub(super) const TRIES: usize = 50;

/// A request with everything that decides about it.
#[derive(Clone)]
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
pub(super) async fn execute(app: &Arc<App>, mut request: Keyed) -> Reply {
    if app.faults.contains(Fault::CheckThenActRace) || app.faults.contains(Fault::LoserKeepsItsEffect) {
        return check_then_act(app, request).await;
    }
    let contract = &app.contract;
    if let Some(refused) = app.expired(&request.id).await {
        return Reply::Fresh(refused);
    }
    if contract.mismatch == StatusOr::Word(Different::Execute) {
        request.id.key.push_str(&request.fingerprint.text());
    }
    let patience = Instant::now() + contract.in_flight_wait;
    loop {
        let steady = app.clock.steady().await;
        let claim = app.claim_of(&request);
        let verdict = match app.store.claim(request.id.clone(), claim, app.terms).await {
            Ok(Verdict::Granted(record)) => {
                // An owner keeps its lease until it has come to its end, in whichever way.
                let (id, store) = (request.id.clone(), Arc::clone(&app.store));
                let kept = app.leases.keep(record.owner, id, store, request.input.controls.stall);
                drop(steady);
                let reply = own(app, request, record, claim.now).await;
                drop(kept);
                return reply;
            }
            Ok(verdict) => verdict,
            // Without a claim nothing protects the client from a second effect, so nothing runs, unless the contract
            // says in so many words that it does.
            Err(_) if app.runs_unprotected() => {
                return keyless::execute(app, request.job, request.input).await;
            }
            Err(error) => return Reply::Fresh(contract.refuse(Problem::StoreUnavailable, error.to_string())),
        };
        drop(steady);
        let waits = matches!(verdict, Verdict::InFlight(_)) && contract.in_flight == StatusOr::Word(Waits::Wait);
        if !waits || Instant::now() >= patience {
            return app.without_running(&request, verdict).await;
        }
        sleep(LOOK).await;
    }
}

/// The owner's part: everything after the claim.
async fn own(app: &Arc<App>, request: Keyed, record: Record, claimed: Time) -> Reply {
    let Keyed { id, policy, job, input, .. } = request;
    let Record { owner, state, .. } = record;
    let dies = input.controls.dies_committed();
    let mut recovery = match state {
        State::Claimed { recovery, .. } => recovery,
        State::Completed(_) => None,
    };
    for _ in 0..TRIES {
        let work = app.work(Some((id.clone(), owner)), recovery);
        let run = handler::run(app, job, input.clone(), &work).await;
        fault::meddle(app, &id, owner, &work, &run).await;
        let answer = match run {
            Run::Ended(ending, answer) => match app.contract.keeps(policy, ending, work.has_effects()) {
                Kept::Stored => answer,
                _ if app.faults.pins(ending) => answer,
                Kept::Released => return give_back(app, id, owner, answer).await,
                Kept::Held => return Reply::Fresh(answer),
            },
            Run::Refused(Refused::Conflict(_)) => {
                recovery = work.recovery();
                continue;
            }
            Run::Refused(lost) => return Reply::Fresh(refused(lost)),
            Run::Store(error) => return give_back(app, id, owner, store_unavailable(&error)).await,
            Run::Died => return Reply::Died,
        };
        let effects = work.take();
        let now = app.contract.retention_from(claimed, app.clock.now());
        let phase = Phase { owner, effects: effects.clone(), end: End::Answer(answer.clone()), now };
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
    async fn without_running(&self, request: &Keyed, verdict: Verdict) -> Reply {
        if let Some(wrong) = fault::refusal(self.faults, &verdict) {
            return Reply::Fresh(wrong);
        }
        let in_use = || {
            let detail = "a request with this key is being worked on; send it again later";
            Reply::Fresh(self.contract.refuse(Problem::KeyInUse, detail))
        };
        match verdict {
            Verdict::Replay(answer) => {
                let answer = self.contract.replay(self.current(request, answer).await);
                Reply::Replay(fault::replayed(self.faults, answer))
            }
            Verdict::Mismatch if self.contract.in_flight_first && self.runs(&request.id).await => in_use(),
            Verdict::Mismatch => {
                Reply::Fresh(self.contract.refuse(
                    Problem::KeyReused,
                    "this key was used for another request; take a new key for a new intent",
                ))
            }
            Verdict::InFlight(Time(_)) | Verdict::Granted(_) => in_use(),
        }
    }

    /// The refusal of a key that has expired, where expired keys are refused.
    async fn expired(&self, id: &KeyId) -> Option<Answer> {
        if matches!(self.contract.expired, StatusOr::Word(_)) {
            return None;
        }
        // A store that cannot be asked now cannot grant the claim either.
        let record = self.store.look(id.clone()).await.ok()?;
        self.contract.expired(record.as_ref(), self.clock.now())
    }

    /// Whether a request runs whose claim could be neither granted nor refused.
    fn runs_unprotected(&self) -> bool {
        self.contract.store_down == StatusOr::Word(Open::Open) || self.faults.contains(Fault::StoreOutageFailOpen)
    }

    /// Whether somebody is at work on a key.
    async fn runs(&self, id: &KeyId) -> bool {
        let record = self.store.look(id.clone()).await;
        matches!(record, Ok(Some(Record { state: State::Claimed { .. }, .. })))
    }

    /// A stored answer with the state that its resource has now, where the contract wants that.
    async fn current(&self, request: &Keyed, answer: Answer) -> Answer {
        let kind = match request.job {
            Job::CreatePayment | Job::Charge => Kind::Payment,
            Job::StartExport => Kind::Export,
            _ => return answer,
        };
        let stored: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let Some(id) = stored["id"].as_str().filter(|_| self.contract.replay == ReplayKind::CurrentState) else {
            return answer;
        };
        let id = RowId { kind, tenant: request.input.tenant.clone(), id: id.to_owned() };
        match self.store.find(id).await {
            Ok(Some(row)) => Answer { body: row.body.to_string().into(), ..answer },
            _ => answer,
        }
    }
}

/// Frees the key of a request that is given up: nothing of it can be committed any more.
pub(super) async fn give_up(app: Arc<App>, id: KeyId) {
    if let Ok(Some(Record { owner, state: State::Claimed { .. }, .. })) = app.store.look(id.clone()).await {
        // A claim that cannot be given back ends with its lease.
        let _ = app.store.release(id, owner).await;
    }
}

/// The fault [`Fault::CheckThenActRace`]: nothing stands between the look at the key and the insert after the effect. With
/// [`Fault::LoserKeepsItsEffect`] whoever inserts too late is at least told so.
async fn check_then_act(app: &Arc<App>, request: Keyed) -> Reply {
    let claim = app.claim_of(&request);
    let seen = match app.store.look(request.id.clone()).await {
        Ok(seen) => seen,
        Err(error) => return Reply::Fresh(store_unavailable(&error)),
    };
    match super::core::claim(seen.as_ref(), &claim, &app.terms) {
        Verdict::Granted(_) => {}
        verdict => return app.without_running(&request, verdict).await,
    }
    let Keyed { id, policy, job, input, .. } = request.clone();
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
    match app.store.claim(id.clone(), claim, app.terms).await {
        Ok(Verdict::Granted(_)) => {
            let end = End::Answer(answer.clone());
            let phase = Phase { owner: claim.owner, effects: Vec::new(), end, now: claim.now };
            let _ = app.store.commit_phase(id, phase, app.terms).await;
        }
        Ok(verdict) if app.faults.contains(Fault::LoserKeepsItsEffect) => {
            return app.without_running(&request, verdict).await;
        }
        _ => {}
    }
    Reply::Fresh(answer)
}
