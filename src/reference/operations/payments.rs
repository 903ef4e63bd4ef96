//! Payments: make one, make many, give money back, change one. One transaction each.

use super::{Handled, Input, fresh, insert, not_found, replace, shown, text};
use crate::reference::controls::{FailCounts, Moment};
use crate::reference::core::Answer;
use crate::reference::http::{Problem, problem};
use crate::reference::policy::Ending;
use crate::reference::store::{Effect, Kind, Row, RowId};
use crate::reference::work::{Halt, Work};
use serde_json::{Value, json};

/// The most payments of one batch.
const LARGEST_BATCH: usize = 100;

/// What a payment is asked to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Payment {
    /// In the smallest unit of the currency.
    pub(super) amount: i64,
    pub(super) currency: String,
    pub(super) reference: String,
    /// The card is one that is always declined.
    pub(super) declined: bool,
}

impl Payment {
    /// Reads a payment; the error says what is wrong with it.
    pub(super) fn read(body: &Value) -> Result<Self, &'static str> {
        if !body.is_object() {
            return Err("the body must be a JSON object");
        }
        let amount = body.get("amount").and_then(Value::as_i64).filter(|amount| *amount > 0);
        let three_letters = |text: &&str| text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
        Ok(Self {
            amount: amount.ok_or("amount must be a positive integer")?,
            currency: text(body, "currency").filter(three_letters).ok_or("currency must have 3 letters")?.to_owned(),
            reference: text(body, "reference").ok_or("reference must be a string of 1 to 512 characters")?.to_owned(),
            declined: body.get("card").and_then(Value::as_str) == Some("declined"),
        })
    }

    /// The row of the payment.
    pub(super) fn row(&self, id: RowId, status: &str) -> Row {
        let Self { amount, currency, reference, .. } = self;
        let body = json!({
            "id": id.id, "amount": amount, "currency": currency, "reference": reference, "status": status,
        });
        Row::new(id, reference, body)
    }
}

/// A payment that every tenant has from the start, for operations that need one. No tenant runs out of it.
pub(in crate::reference) fn demo_payment(tenant: &str) -> Effect {
    let id = RowId { kind: Kind::Payment, tenant: tenant.to_owned(), id: "pay_demo".to_owned() };
    let (currency, reference) = ("TRY".to_owned(), "demo".to_owned());
    let payment = Payment { amount: 1_000_000_000_000_000, currency, reference, declined: false };
    Effect::Insert(payment.row(id, "approved"))
}

fn read(body: &Value) -> Result<Payment, Halt> {
    Payment::read(body).map_err(|reason| Halt::Rejected(problem(Problem::InvalidPayment, reason)))
}

/// The final answer of a payment whose card was declined: running it again would not make the card any better.
pub(super) fn declined() -> (Ending, Answer) {
    (Ending::Declined, problem(Problem::CardDeclined, "take another card, and a new key for that payment"))
}

/// Makes a payment.
pub(super) async fn create(input: Input, work: &Work, counts: &FailCounts) -> Handled {
    let payment = read(&input.body)?;
    let fate = input.fate(counts, &payment.reference).await;
    fate.at(Moment::Before)?;
    if payment.declined {
        return Ok(declined());
    }
    let id = fresh("pay");
    let location = format!("/payments/{id}");
    let row = insert(work, payment.row(input.row_id(Kind::Payment, id), "approved")).await?;
    fate.at(Moment::After)?;
    Ok((Ending::Succeeded, shown(201, &row, Some(location))))
}

/// Makes many payments at once. Each has an outcome of its own; those that are valid are made together or not at all.
pub(super) async fn batch(input: Input, work: &Work, counts: &FailCounts) -> Handled {
    let refused = |reason: &str| Halt::Rejected(problem(Problem::Invalid, reason));
    let items = input.body.get("items").and_then(Value::as_array).filter(|items| !items.is_empty());
    let items = items.ok_or_else(|| refused("items must be a list of payments that is not empty"))?;
    if items.len() > LARGEST_BATCH {
        return Err(refused("a batch may have at most 100 items"));
    }
    let reference = text(&items[0], "reference").unwrap_or_default();
    let fate = input.fate(counts, reference).await;
    fate.at(Moment::Before)?;
    let mut outcomes = Vec::new();
    for item in items {
        outcomes.push(match Payment::read(item) {
            Err(reason) => json!({ "status": 400, "detail": reason }),
            Ok(Payment { declined: true, .. }) => json!({ "status": 402, "detail": "the card was declined" }),
            Ok(payment) => {
                let row = payment.row(input.row_id(Kind::Payment, fresh("pay")), "approved");
                json!({ "status": 201, "payment": insert(work, row).await?.body })
            }
        });
    }
    fate.at(Moment::After)?;
    let body = json!({ "id": fresh("bat"), "items": outcomes });
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    Ok((Ending::Succeeded, Answer { status: 200, headers, body: body.to_string().into() }))
}

/// Gives money back. Never more than was paid, however many refunds run at once: each one replaces the payment it saw.
pub(super) async fn refund(input: Input, work: &Work, counts: &FailCounts) -> Handled {
    let amount = input.body.get("amount").and_then(Value::as_i64).filter(|amount| *amount > 0);
    let amount = amount.ok_or_else(|| super::invalid("amount must be a positive integer"))?;
    let reference = super::reference(&input.body)?;
    let fate = input.fate(counts, reference).await;
    fate.at(Moment::Before)?;
    let payment = work.find(input.row_id(Kind::Payment, &*input.id)).await?.ok_or_else(|| not_found("payment"))?;
    let refunded = payment.body["refunded"].as_i64().unwrap_or(0);
    let total = refunded.checked_add(amount).filter(|total| Some(*total) <= payment.body["amount"].as_i64());
    let total = total.ok_or_else(|| super::invalid("amount is more than is left of the payment"))?;
    let id = fresh("ref");
    let body = json!({ "id": id, "payment": input.id, "amount": amount, "reference": reference, "status": "refunded" });
    let row = insert(work, Row::new(input.row_id(Kind::Refund, id), reference, body)).await?;
    let mut changed = payment.body.clone();
    changed["refunded"] = json!(total);
    replace(work, &payment, changed).await?;
    fate.at(Moment::After)?;
    Ok((Ending::Succeeded, shown(201, &row, None)))
}

/// Changes a payment: adds to its amount, or sets its note. Adding is what makes a second time visible.
pub(super) async fn change(input: Input, work: &Work, counts: &FailCounts) -> Handled {
    let add = match input.body.get("add") {
        None => 0,
        Some(add) => add.as_i64().ok_or_else(|| super::invalid("add must be an integer"))?,
    };
    let note = text(&input.body, "note");
    if add == 0 && note.is_none() {
        return Err(super::invalid("say what to change: {\"add\": 5} or {\"note\": \"text\"}"));
    }
    let reference = super::reference(&input.body)?;
    let fate = input.fate(counts, reference).await;
    fate.at(Moment::Before)?;
    let payment = work.find(input.row_id(Kind::Payment, &*input.id)).await?.ok_or_else(|| not_found("payment"))?;
    let mut body = payment.body.clone();
    let amount = body["amount"].as_i64().unwrap_or(0).checked_add(add).filter(|amount| *amount > 0);
    body["amount"] = json!(amount.ok_or_else(|| super::invalid("the amount must stay positive"))?);
    if let Some(note) = note {
        body["note"] = json!(note);
    }
    let id = fresh("chg");
    let change = json!({ "id": id, "payment": input.id, "add": add, "note": note, "reference": reference });
    insert(work, Row::new(input.row_id(Kind::Change, &*id), reference, change)).await?;
    let row = replace(work, &payment, body).await?;
    fate.at(Moment::After)?;
    let mut answer = row;
    answer.body["change"] = json!(id);
    Ok((Ending::Succeeded, shown(200, &answer, None)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn payments_are_validated() {
        let good = json!({"amount": 1, "currency": "TRY", "reference": "r", "more": [1]});
        assert_eq!(Payment::read(&good).unwrap().currency, "TRY");
        let bad = [
            json!([]),
            json!(null),
            json!({}),
            json!({"amount": 0, "currency": "TRY", "reference": "r"}),
            json!({"amount": 1.0, "currency": "TRY", "reference": "r"}),
            json!({"amount": "1", "currency": "TRY", "reference": "r"}),
            json!({"amount": true, "currency": "TRY", "reference": "r"}),
            json!({"amount": u64::MAX, "currency": "TRY", "reference": "r"}),
            json!({"amount": 1, "currency": "TR", "reference": "r"}),
            json!({"amount": 1, "currency": "T1Y", "reference": "r"}),
            json!({"amount": 1, "currency": "TRY", "reference": ""}),
            json!({"amount": 1, "currency": "TRY", "reference": "a\u{0}b"}),
            json!({"amount": 1, "currency": "TRY", "reference": "x".repeat(5000)}),
            json!({"amount": 1, "currency": "TRY"}),
        ];
        for body in bad {
            assert!(Payment::read(&body).is_err(), "{body}");
        }
    }
}
