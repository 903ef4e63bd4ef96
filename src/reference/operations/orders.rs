//! Orders: idempotent without a key. The client chooses the identifier, and preconditions keep late writes out.

use super::{Conditions, Handled, Input, insert, invalid, not_found, replace, shown, text};
use crate::reference::controls::{FailCounts, Moment};
use crate::reference::core::Answer;
use crate::reference::http::{Problem, problem};
use crate::reference::outbox::{self, To};
use crate::reference::policy::Ending;
use crate::reference::store::{Effect, Kind, Row};
use crate::reference::work::{Halt, Work};
use serde_json::json;

/// Creates an order or sets it to what the request says. Setting it to what it is changes nothing.
pub(super) async fn put(input: Input, work: &Work, counts: &FailCounts) -> Handled {
    if !super::plain(&input.id) {
        return Err(invalid("the identifier of an order has no control characters"));
    }
    let reference = super::reference(&input.body)?;
    let amount = input.body.get("amount").and_then(serde_json::Value::as_i64).filter(|amount| *amount > 0);
    let amount = amount.ok_or_else(|| invalid("amount must be a positive integer"))?;
    let note = text(&input.body, "note");
    let fate = input.fate(counts, reference).await;
    fate.at(Moment::Before)?;
    let seen = work.find(input.row_id(Kind::Order, &*input.id)).await?;
    check(&input.conditions, seen.as_ref())?;
    let body = json!({ "id": input.id, "amount": amount, "reference": reference, "note": note });
    let (status, row) = match seen {
        Some(order) if order.body == body => (200, order),
        Some(order) => {
            let order = Row { reference: reference.to_owned(), ..order };
            (200, changed(&input, work, replace(work, &order, body).await?, "changed").await?)
        }
        None => {
            let order = Row::new(input.row_id(Kind::Order, &*input.id), reference, body);
            (201, changed(&input, work, insert(work, order).await?, "created").await?)
        }
    };
    fate.at(Moment::After)?;
    let location = (status == 201).then(|| format!("/orders/{}", input.id));
    Ok((Ending::Succeeded, shown(status, &row, location)))
}

/// Removes an order.
pub(super) async fn delete(input: Input, work: &Work, counts: &FailCounts) -> Handled {
    let seen = work.find(input.row_id(Kind::Order, &*input.id)).await?;
    let reference = seen.as_ref().map(|order| order.reference.clone()).unwrap_or_default();
    let fate = input.fate(counts, &reference).await;
    fate.at(Moment::Before)?;
    check(&input.conditions, seen.as_ref())?;
    let order = seen.ok_or_else(|| not_found("order"))?;
    work.add(Effect::Remove { id: order.id.clone(), seen: order.tag.clone() }).await?;
    changed(&input, work, order, "removed").await?;
    fate.at(Moment::After)?;
    Ok((Ending::Succeeded, Answer { status: 204, headers: Vec::new(), body: Vec::new().into() }))
}

/// Tells the outside about a change. The tag of the order names the change, so two changes are two messages.
async fn changed(input: &Input, work: &Work, order: Row, what: &str) -> Result<Row, Halt> {
    let id = format!("ntf_{what}_{}", order.tag);
    let about = json!({ "order": order.id.id, "change": what });
    work.add(outbox::message(To::Receiver, id, &input.tenant, &order.reference, about)).await?;
    Ok(order)
}

fn check(conditions: &Conditions, seen: Option<&Row>) -> Result<(), Halt> {
    let failed = |reason| Err(Halt::Rejected(problem(Problem::PreconditionFailed, reason)));
    conditions.check(seen.map(|order| order.tag.as_str())).or_else(failed)
}
