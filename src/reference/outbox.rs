//! The outbox: messages that leave the house, written in the transaction that finishes a request.
//!
//! A message is a row, so it exists if and only if the request it belongs to has committed. A relay delivers it later and
//! removes it when it is delivered. It may die between the two, or another node may deliver the same message, so a
//! message may be delivered twice. Every delivery carries the identifier of its message, by which the receiver knows a
//! second one.

use super::store::{Effect, Kind, Row, RowId, Store, StoreError};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

/// How often the relay looks for messages that another process has left behind.
const LOOK: Duration = Duration::from_secs(1);

/// Who a message is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum To {
    /// The receiver of notifications.
    Receiver,
    /// The worker that makes exports.
    Exporter,
}

/// The effect of writing a message. `id` is its name for ever; `about` is what it is about.
pub(super) fn message(to: To, id: String, tenant: &str, reference: &str, about: Value) -> Effect {
    let to = match to {
        To::Receiver => "receiver",
        To::Exporter => "exporter",
    };
    let body = json!({ "to": to, "tenant": tenant, "reference": reference, "about": about });
    // All messages wait in one list, whoever they belong to.
    Effect::Insert(Row::new(RowId { kind: Kind::Outbox, tenant: String::new(), id }, String::new(), body))
}

/// Whether a commit puts something into the outbox.
pub(super) fn has_message(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Insert(row) if row.id.kind == Kind::Outbox))
}

/// Tells the relay that there is something to deliver.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    written: Notify,
}

impl Outbox {
    /// Wakes the relay.
    pub(super) fn wake(&self) {
        self.written.notify_one();
    }

    /// Delivers messages for ever.
    pub(super) async fn relay(self: Arc<Self>, store: Arc<dyn Store>) {
        loop {
            // What could not be delivered stays in the outbox for the next look.
            let _ = deliver_all(&store).await;
            let _ = timeout(LOOK, self.written.notified()).await;
        }
    }
}

async fn deliver_all(store: &Arc<dyn Store>) -> Result<(), StoreError> {
    for message in store.list(Kind::Outbox, String::new(), String::new()).await? {
        match message.body["to"].as_str() {
            Some("receiver") => notify(store, &message).await?,
            Some("exporter") => export(store, &message).await?,
            _ => {}
        }
        let Row { id, tag, .. } = message;
        // A conflict says that another relay has removed it.
        let _ = store.commit(vec![Effect::Remove { id, seen: tag }]).await?;
    }
    Ok(())
}

fn text(message: &Row, name: &str) -> String {
    message.body[name].as_str().unwrap_or_default().to_owned()
}

/// The receiver: it keeps what it gets by the identifier of the message, so a second delivery changes nothing.
async fn notify(store: &Arc<dyn Store>, message: &Row) -> Result<(), StoreError> {
    let id = message.id.id.clone();
    let body = json!({ "id": id, "reference": message.body["reference"], "about": message.body["about"] });
    let row_id = RowId { kind: Kind::Notification, tenant: text(message, "tenant"), id };
    let _ = store.commit(vec![Effect::Insert(Row::new(row_id, text(message, "reference"), body))]).await?;
    Ok(())
}

/// The worker that makes exports: it finishes what is running, and finds nothing to do when it is asked again.
async fn export(store: &Arc<dyn Store>, message: &Row) -> Result<(), StoreError> {
    let id = message.body["about"]["id"].as_str().unwrap_or_default().to_owned();
    let id = RowId { kind: Kind::Export, tenant: text(message, "tenant"), id };
    let Some(export) = store.find(id).await?.filter(|export| export.body["status"] == "running") else {
        return Ok(());
    };
    let mut body = export.body.clone();
    body["status"] = json!("done");
    body["rows"] = json!(store.list(Kind::Payment, export.id.tenant.clone(), export.reference.clone()).await?.len());
    // A conflict says that another worker has finished it.
    let _ = store.commit(vec![Effect::Replace { seen: export.tag.clone(), row: export.changed(body) }]).await?;
    Ok(())
}
