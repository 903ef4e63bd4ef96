//! The business: every operation in one table, and what each one does.
//!
//! Nothing here claims keys or commits results. A handler puts its effects into a [`Work`] and says how it ended;
//! whoever runs it commits both, or neither.

mod charges;
mod conditions;
mod documents;
mod orders;
mod payments;
mod webhooks;

use super::controls::{Controls, FailCounts, Fate};
use super::core::Answer;
use super::http::{Problem, problem};
use super::policy::{Ending, Policy};
use super::store::{Effect, Kind, Row, RowId};
use super::work::{Halt, Work};
use serde_json::Value;
use std::sync::Arc;

pub(super) use conditions::Conditions;
pub(super) use payments::demo_payment;

/// One operation of the API.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) route: &'static str,
    pub(super) key: KeyUse,
    pub(super) job: Job,
    /// The answer is sent in chunks, its length unknown before its end.
    pub(super) streamed: bool,
}

/// What an operation makes of the `Idempotency-Key` field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyUse {
    /// It needs a key.
    Required(Policy),
    /// It looks at none: it is idempotent by itself, or not at all.
    None,
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Job {
    CreatePayment,
    CreateBatch,
    RefundPayment,
    ChangePayment,
    Charge,
    CreateReceipt,
    CreateStatement,
    StartExport,
    PutOrder,
    DeleteOrder,
    TakeEvent,
}

const fn keyed(method: &'static str, route: &'static str, policy: Policy, job: Job) -> Operation {
    Operation { method, route, key: KeyUse::Required(policy), job, streamed: false }
}

const fn keyless(method: &'static str, route: &'static str, job: Job) -> Operation {
    Operation { method, route, key: KeyUse::None, job, streamed: false }
}

/// Every operation.
pub(super) const OPERATIONS: &[Operation] = &[
    keyed("POST", "/payments", Policy::Draft, Job::CreatePayment),
    keyed("POST", "/v1/payments", Policy::StoredFailures, Job::CreatePayment),
    keyed("POST", "/payments/batch", Policy::Draft, Job::CreateBatch),
    keyed("POST", "/payments/{id}/refunds", Policy::Draft, Job::RefundPayment),
    keyed("PATCH", "/payments/{id}", Policy::Draft, Job::ChangePayment),
    keyed("POST", "/charges", Policy::Draft, Job::Charge),
    keyed("POST", "/receipts", Policy::Draft, Job::CreateReceipt),
    Operation { streamed: true, ..keyed("POST", "/statements", Policy::Draft, Job::CreateStatement) },
    keyed("POST", "/exports", Policy::Draft, Job::StartExport),
    keyless("POST", "/keyless/payments", Job::CreatePayment),
    keyless("PUT", "/orders/{id}", Job::PutOrder),
    keyless("DELETE", "/orders/{id}", Job::DeleteOrder),
    keyless("POST", "/webhooks", Job::TakeEvent),
];

/// Where rows are listed by their reference, and of which kind they are.
pub(super) const LISTS: &[(&str, Kind)] = &[
    ("/payments", Kind::Payment),
    ("/refunds", Kind::Refund),
    ("/changes", Kind::Change),
    ("/receipts", Kind::Receipt),
    ("/statements", Kind::Statement),
    ("/exports", Kind::Export),
    ("/orders", Kind::Order),
    ("/webhooks", Kind::Event),
    ("/credits", Kind::Credit),
    ("/test/provider/charges", Kind::Charge),
    ("/test/provider/calls", Kind::Call),
    ("/test/notifications", Kind::Notification),
];

/// Where one row is shown.
pub(super) const SHOWN: &[(&str, Kind)] =
    &[("/payments/{id}", Kind::Payment), ("/exports/{id}", Kind::Export), ("/orders/{id}", Kind::Order)];

impl Job {
    /// Whether it has phases, with a call to the payment network between them.
    pub(super) fn phased(self) -> bool {
        self == Self::Charge
    }

    /// Whether a request for it has a body.
    pub(super) fn has_body(self) -> bool {
        self != Self::DeleteOrder
    }
}

/// A request as far as the business looks at it.
#[derive(Debug, Clone)]
pub(super) struct Input {
    pub(super) tenant: String,
    /// The identifier in the path; empty when the route has none.
    pub(super) id: String,
    pub(super) body: Value,
    pub(super) conditions: Conditions,
    pub(super) controls: Controls,
}

/// How a handler came to an end.
pub(super) type Handled = Result<(Ending, Answer), Halt>;

/// Runs the handler of an operation once.
pub(super) async fn run(job: Job, input: Input, work: Arc<Work>, counts: &FailCounts) -> Handled {
    match job {
        Job::CreatePayment => payments::create(input, &work, counts).await,
        Job::CreateBatch => payments::batch(input, &work, counts).await,
        Job::RefundPayment => payments::refund(input, &work, counts).await,
        Job::ChangePayment => payments::change(input, &work, counts).await,
        Job::Charge => charges::charge(input, &work, counts).await,
        Job::CreateReceipt => documents::receipt(input, &work, counts).await,
        Job::CreateStatement => documents::statement(input, &work, counts).await,
        Job::StartExport => documents::export(input, &work, counts).await,
        Job::PutOrder => orders::put(input, &work, counts).await,
        Job::DeleteOrder => orders::delete(input, &work, counts).await,
        Job::TakeEvent => webhooks::take(input, &work, counts).await,
    }
}

impl Input {
    /// What becomes of this run, after the time that was asked for.
    async fn fate(&self, counts: &FailCounts, reference: &str) -> Fate {
        let fate = self.controls.fate(counts, &self.tenant, reference);
        fate.take_time().await;
        fate
    }

    fn row_id(&self, kind: Kind, id: impl Into<String>) -> RowId {
        RowId { kind, tenant: self.tenant.clone(), id: id.into() }
    }
}

/// A fresh identifier with a prefix that tells what it names.
fn fresh(prefix: &str) -> String {
    format!("{prefix}_{}", uuid::Uuid::new_v4().simple())
}

/// Text that can be stored and shown anywhere: not empty, not endless, without control characters.
fn text<'a>(body: &'a Value, name: &str) -> Option<&'a str> {
    body.get(name).and_then(Value::as_str).filter(|text| plain(text))
}

/// Whether text can be stored and shown anywhere.
pub(super) fn plain(text: &str) -> bool {
    !text.is_empty() && text.len() <= 512 && !text.chars().any(char::is_control)
}

fn reference(body: &Value) -> Result<&str, Halt> {
    text(body, "reference").ok_or_else(|| invalid("reference must be a string of 1 to 512 characters"))
}

fn invalid(reason: &str) -> Halt {
    Halt::Rejected(problem(Problem::Invalid, reason))
}

fn not_found(what: &str) -> Halt {
    Halt::Rejected(problem(Problem::NotFound, format!("you have no {what} of this id")))
}

/// The answer that shows a row.
fn shown(status: u16, row: &Row, location: Option<String>) -> Answer {
    let location = location.map(|location| ("location", location));
    let headers = [("content-type", "application/json".to_owned()), ("etag", etag(row))];
    let headers = headers.into_iter().chain(location).map(|(name, value)| (name.to_owned(), value)).collect();
    Answer { status, headers, body: row.body.to_string().into() }
}

/// The entity tag of a row.
pub(super) fn etag(row: &Row) -> String {
    format!("\"{}\"", row.tag)
}

async fn insert(work: &Work, row: Row) -> Result<Row, Halt> {
    work.add(Effect::Insert(row.clone())).await?;
    Ok(row)
}

async fn replace(work: &Work, seen: &Row, body: Value) -> Result<Row, Halt> {
    let row = seen.changed(body);
    work.add(Effect::Replace { seen: seen.tag.clone(), row: row.clone() }).await?;
    Ok(row)
}
