//! The faults at the end of a run of a handler.

use super::store::seize;
use super::{Fault, FaultSet};
use crate::reference::app::App;
use crate::reference::core::{Claim, OwnerToken, Time};
use crate::reference::handler::Run;
use crate::reference::policy::Ending;
use crate::reference::store::KeyId;
use crate::reference::work::Work;
use std::sync::Arc;

impl FaultSet {
    /// Whether a result is stored that frees the key by right.
    pub(in crate::reference) fn pins(self, ending: Ending) -> bool {
        let fault = match ending {
            Ending::Failed => Fault::TransientFailurePinned,
            Ending::Unwound => Fault::ExceptionPinned,
            Ending::Rejected => Fault::ClientErrorPinned,
            Ending::Succeeded | Ending::Declined | Ending::Interrupted => return false,
        };
        self.contains(fault)
    }
}

/// What a server with faults does between the end of a run and what is made of it.
pub(in crate::reference) async fn meddle(app: &App, id: &KeyId, owner: OwnerToken, work: &Work, run: &Run) {
    let on = |fault| app.faults.contains(fault);
    let (leaks, wedges) = match run {
        Run::Ended(Ending::Failed, _) => (on(Fault::FailureReleasesClaim), on(Fault::FailureWedgesKey)),
        Run::Ended(Ending::Unwound, _) => (on(Fault::ExceptionReleasesClaim), on(Fault::ExceptionWedgesKey)),
        Run::Ended(Ending::Rejected, _) => (false, on(Fault::ValidationWedgesKey)),
        Run::Died => (on(Fault::CrashReleasesClaim), false),
        _ => (false, false),
    };
    if leaks {
        let _ = app.store.commit(work.take()).await;
        let _ = app.store.release(id.clone(), owner).await;
    }
    if matches!(run, Run::Died) && on(Fault::RestartForgetsKeys) {
        let _ = app.store.sweep(Time(u64::MAX)).await;
    }
    if wedges {
        let Ok(Some(record)) = app.store.look(id.clone()).await else { return };
        let request = Claim { fingerprint: record.fingerprint, owner: OwnerToken::fresh(), now: app.clock.now() };
        seize(&*app.store, id, request, app.terms).await;
    }
}

/// Commits what a handler did whose request was given up while it ran: [`Fault::DisconnectAbortsHandler`].
pub(in crate::reference) async fn deserted(app: &App, work: &Arc<Work>) {
    if app.faults.contains(Fault::DisconnectAbortsHandler) && Arc::strong_count(work) == 1 {
        let _ = app.store.commit(work.take()).await;
    }
}
