//! The inbox: events that somebody else tells us of, perhaps more than once.
//!
//! The sender names each event and repeats it until it is acknowledged. The name is the unique identifier of a row in
//! the inbox, which is added by the commit of the event's effect. A repeat that comes later finds the row; one that
//! comes at the same time conflicts with it and then finds it. Both are acknowledged like the first one.

use super::{Handled, Input, fresh, insert, invalid, reference, text};
use crate::reference::controls::{FailCounts, Moment};
use crate::reference::core::Answer;
use crate::reference::policy::Ending;
use crate::reference::store::{Kind, Row};
use crate::reference::work::Work;
use serde_json::{Value, json};

/// Takes an event: a payment that came in from outside adds a credit.
pub(super) async fn take(input: Input, work: &Work, counts: &FailCounts) -> Handled {
    let event = text(&input.body, "id").ok_or_else(|| invalid("id must be a string of 1 to 512 characters"))?;
    let reference = reference(&input.body)?;
    let amount = input.body.get("amount").and_then(Value::as_i64).filter(|amount| *amount > 0);
    let amount = amount.ok_or_else(|| invalid("amount must be a positive integer"))?;
    let fate = input.fate(counts, reference).await;
    fate.at(Moment::Before)?;
    let id = input.row_id(Kind::Event, event);
    if work.find(id.clone()).await?.is_some() {
        return Ok((Ending::Succeeded, acknowledged(event, "duplicate")));
    }
    insert(work, Row::new(id, reference, json!({ "id": event, "reference": reference }))).await?;
    let credit = fresh("crd");
    let body = json!({ "id": credit, "event": event, "amount": amount, "reference": reference });
    insert(work, Row::new(input.row_id(Kind::Credit, credit), reference, body)).await?;
    fate.at(Moment::After)?;
    Ok((Ending::Succeeded, acknowledged(event, "processed")))
}

fn acknowledged(event: &str, status: &str) -> Answer {
    let body = json!({ "id": event, "status": status });
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    Answer { status: 200, headers, body: body.to_string().into() }
}
