//! The faults in front of the handler: a gateway, and a server that gives its requests up.

use super::store::seize;
use super::{Fault, FaultSet};
use crate::reference::app::App;
use crate::reference::core::{Claim, OwnerToken, State};
use crate::reference::http::{Checked, execute};
use crate::reference::keyed::Reply;
use crate::reference::operations::Operation;
use crate::reference::store::KeyId;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;

/// How long the gateway waits for an answer before it sends a request again.
const PATIENCE: Duration = Duration::from_millis(250);

impl FaultSet {
    /// Whether the work of a request ends when its client hangs up.
    pub(in crate::reference) fn aborts(self) -> bool {
        self.contains(Fault::DisconnectAbortsHandler) || self.contains(Fault::DisconnectWedgesKey)
    }
}

/// Sends a request again that is not answered in time, with a key of its own: [`Fault::GatewayResendsPost`].
pub(in crate::reference) fn resend(app: &Arc<App>, operation: Operation, request: &Checked, work: &AbortHandle) {
    if !app.faults.contains(Fault::GatewayResendsPost) {
        return;
    }
    let (app, mut again, work) = (Arc::clone(app), request.clone(), work.clone());
    if let Checked::Keyed(keyed) = &mut again {
        keyed.id.key.push_str(" again");
    }
    tokio::spawn(async move {
        tokio::time::sleep(PATIENCE).await;
        if !work.is_finished() {
            let _ = execute(&app, operation, again).await;
        }
    });
}

/// Does the work of a request for as long as its client waits for it, and no longer.
pub(in crate::reference) async fn while_waited_for(app: &Arc<App>, operation: Operation, request: Checked) -> Reply {
    let id = match &request {
        Checked::Keyed(keyed) => Some(keyed.id.clone()),
        Checked::Keyless(_) => None,
    };
    let mut watch = Watch { app: Arc::clone(app), id };
    let reply = execute(app, operation, request).await;
    watch.id = None;
    reply
}

/// Dropped with its key when the client hangs up.
struct Watch {
    app: Arc<App>,
    id: Option<KeyId>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            tokio::spawn(give_up(Arc::clone(&self.app), id));
        }
    }
}

async fn give_up(app: Arc<App>, id: KeyId) {
    let Ok(Some(record)) = app.store.look(id.clone()).await else { return };
    if let State::Completed(_) = record.state {
        return;
    }
    let now = app.clock.now();
    if app.faults.contains(Fault::DisconnectWedgesKey) {
        let request = Claim { fingerprint: record.fingerprint, owner: OwnerToken::fresh(), now };
        seize(&*app.store, &id, request, app.terms).await;
    } else {
        let _ = app.store.release(id, record.owner).await;
    }
}
