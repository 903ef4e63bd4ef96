//! A payment that charges a card: three phases with a call to the payment network between the first two.
//!
//! ```text
//! (none) ── payment row ──> started ── call ── charge noted ──> charged ── approved, notification ──> answer
//! ```
//!
//! Each arrow ends in one commit of its effects with the recovery point. The call stands between two commits; whoever
//! takes over after `started` makes it again, with the same key and the parameters that `started` saved. The
//! notification is never sent from here: it is written into the outbox by the commit that finishes the request.

use super::payments::{Payment, declined};
use super::{Handled, Input, fresh, insert, replace, shown};
use crate::reference::controls::{FailCounts, Moment};
use crate::reference::fault;
use crate::reference::http::{Problem, problem};
use crate::reference::outbox::{self, To};
use crate::reference::policy::Ending;
use crate::reference::provider::{self, ChargeCall, ProviderError};
use crate::reference::store::{Kind, Row};
use crate::reference::work::{Halt, Work};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How often the payment network is called before the request is given up (and may be sent again).
const CALLS: usize = 2;

/// What the recovery points save: all that the call and the phases after it need.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Saved {
    payment: String,
    amount: i64,
    currency: String,
    reference: String,
    /// The charge, once it is noted.
    charge: Option<String>,
}

/// Makes a payment and charges the card.
pub(super) async fn charge(input: Input, work: &Work, counts: &FailCounts) -> Handled {
    let payment =
        Payment::read(&input.body).map_err(|reason| Halt::Rejected(problem(Problem::InvalidPayment, reason)))?;
    let fate = input.fate(counts, &payment.reference).await;
    let mut saved = match work.recovery() {
        Some(recovery) => read(&recovery.saved)?,
        None => {
            fate.at(Moment::Before)?;
            if payment.declined {
                return Ok(declined());
            }
            let saved = start(&input, payment, work).await?;
            fate.at(Moment::Started)?;
            saved
        }
    };
    if saved.charge.is_none() {
        let charge = call(&input, &saved, work, counts).await?;
        fate.at(Moment::Between)?;
        saved.charge = Some(charge);
        change(&input, &saved, work, "charged").await?;
        work.reach("charged", write(&saved)?).await?;
    }
    let row = change(&input, &saved, work, "approved").await?;
    // One message for one payment, so a second relay of it can be told from another payment's.
    let (id, about) = (format!("ntf_{}", saved.payment), json!({ "payment": saved.payment, "status": "approved" }));
    let message = outbox::message(To::Receiver, id, &input.tenant, &saved.reference, about);
    if let Some(message) = fault::unsent(work, message).await? {
        work.add(message).await?;
    }
    fate.at(Moment::After)?;
    Ok((Ending::Succeeded, shown(201, &row, Some(format!("/payments/{}", saved.payment)))))
}

/// The first phase: the payment exists, and everything about the call is decided.
async fn start(input: &Input, payment: Payment, work: &Work) -> Result<Saved, Halt> {
    let id = fresh("pay");
    insert(work, payment.row(input.row_id(Kind::Payment, &*id), "pending")).await?;
    let Payment { amount, currency, reference, .. } = payment;
    let saved = Saved { payment: id, amount, currency, reference, charge: None };
    work.reach("started", write(&saved)?).await?;
    Ok(saved)
}

/// The call between the phases. Calling again is safe, because the network knows the key.
async fn call(input: &Input, saved: &Saved, work: &Work, counts: &FailCounts) -> Result<String, Halt> {
    let Saved { payment, amount, currency, reference, .. } = saved.clone();
    let key = work.outside_key("charge", &payment);
    let call = ChargeCall { tenant: input.tenant.clone(), key: Some(key.clone()), amount, currency, reference };
    let mut trouble = ProviderError::Silent;
    for _ in 0..CALLS {
        let fate = input.controls.network(counts, &input.tenant, &call.reference);
        let call = ChargeCall { key: fault::forwarded(work.faults(), &key), ..call.clone() };
        match provider::charge(work.store(), call, fate).await {
            Ok(charge) => return Ok(charge),
            Err(ProviderError::Books(error)) => return Err(Halt::Store(error)),
            Err(error) => trouble = error,
        }
    }
    Err(Halt::Failed(problem(Problem::ProviderFailed, format!("{trouble}; send the request again to go on"))))
}

/// Brings the row of the payment up to date.
async fn change(input: &Input, saved: &Saved, work: &Work, status: &str) -> Result<Row, Halt> {
    let row = work.find(input.row_id(Kind::Payment, &*saved.payment)).await?;
    let row = row.ok_or_else(|| Halt::Failed(problem(Problem::Internal, "the payment of this request is gone")))?;
    let mut body = row.body.clone();
    body["status"] = json!(status);
    body["charge"] = saved.charge.clone().map_or(Value::Null, Value::from);
    replace(work, &row, body).await
}

fn write(saved: &Saved) -> Result<String, Halt> {
    serde_json::to_string(saved).map_err(unreadable)
}

fn read(saved: &str) -> Result<Saved, Halt> {
    serde_json::from_str(saved).map_err(unreadable)
}

fn unreadable(error: serde_json::Error) -> Halt {
    Halt::Failed(problem(Problem::Internal, format!("the recovery point cannot be used: {error}")))
}
