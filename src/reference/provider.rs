//! A double of a payment network: the outside system that an operation of several phases calls.
//!
//! It is idempotent in its own way: a call with a key that it knows is answered with the charge that was made then, and
//! refused when it asks for something else. It keeps its books in the store that it is given, in commits of its own, so
//! that they can be counted: one row for each charge, and one for each call with the key it carried.

use super::controls::NetworkFate;
use super::store::{Effect, Kind, Row, RowId, Store, StoreError};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How long a caller waits for the network. It is shorter than any sensible lease.
const PATIENCE: Duration = Duration::from_secs(5);

/// A call to the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChargeCall {
    pub(super) tenant: String,
    /// What makes a second call a retry of the first one.
    pub(super) key: Option<String>,
    pub(super) amount: i64,
    pub(super) currency: String,
    pub(super) reference: String,
}

/// The network did not say that it charged, which does not mean that it did not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ProviderError {
    #[error("the payment network answered 502")]
    BadGateway,
    #[error("the payment network did not answer within {} s", PATIENCE.as_secs())]
    Silent,
    #[error("the payment network refused its key: it was used for another charge")]
    KeyReused,
    #[error("the payment network keeps its books here, and {0}")]
    Books(#[from] StoreError),
}

/// Charges a card and tells the identifier of the charge. The network goes on when its caller stops waiting.
pub(super) async fn charge(
    store: &Arc<dyn Store>,
    call: ChargeCall,
    fate: NetworkFate,
) -> Result<String, ProviderError> {
    let answering = tokio::spawn(answer(Arc::clone(store), call, fate));
    match tokio::time::timeout(PATIENCE, answering).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) | Err(_) => Err(ProviderError::Silent),
    }
}

async fn answer(store: Arc<dyn Store>, call: ChargeCall, fate: NetworkFate) -> Result<String, ProviderError> {
    if !fate.delay.is_zero() {
        tokio::time::sleep(fate.delay).await;
    }
    let ChargeCall { tenant, key, amount, currency, reference } = call;
    let id_of = |kind, id: String| RowId { kind, tenant: tenant.clone(), id };
    let fresh = || uuid::Uuid::new_v4().simple().to_string();
    let called = json!({ "key": key, "amount": amount, "currency": currency, "reference": reference });
    let log = Row::new(id_of(Kind::Call, fresh()), reference.clone(), called);
    // The identifier is fresh, so there is nothing to conflict with.
    let _ = store.commit(vec![Effect::Insert(log)]).await?;
    if fate.fails_before {
        return Err(ProviderError::BadGateway);
    }
    let charge = format!("ch_{}", fresh());
    let books = json!({ "id": charge, "key": key, "amount": amount, "currency": currency, "reference": reference });
    // A call without a key is a charge of its own, like any first call.
    let row = Row::new(id_of(Kind::Charge, key.unwrap_or_else(|| charge.clone())), reference, books);
    let charged = match store.commit(vec![Effect::Insert(row.clone())]).await? {
        Ok(()) => charge,
        Err(_conflict) => known(&store, &row).await?,
    };
    if fate.fails_after { Err(ProviderError::BadGateway) } else { Ok(charged) }
}

/// The charge that was made under this key before.
async fn known(store: &Arc<dyn Store>, asked: &Row) -> Result<String, ProviderError> {
    let made = store.find(asked.id.clone()).await?.ok_or(ProviderError::Silent)?;
    let same = ["amount", "currency", "reference"].iter().all(|name| made.body[name] == asked.body[name]);
    match (&made.body["id"], same) {
        (Value::String(id), true) => Ok(id.clone()),
        _ => Err(ProviderError::KeyReused),
    }
}
