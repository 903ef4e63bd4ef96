//! What the business stores: rows of a few kinds, and the changes that are made to them.

use serde_json::Value;

/// The kinds of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::reference) enum Kind {
    /// A payment.
    Payment,
    /// Money given back from a payment.
    Refund,
    /// A change that was made to a payment.
    Change,
    /// A document with a binary form.
    Receipt,
    /// A document with a streamed form.
    Statement,
    /// A job that is done after its request was answered.
    Export,
    /// An order, whose identifier the client chose.
    Order,
    /// An event that somebody else told us of: the inbox.
    Event,
    /// The effect of an event.
    Credit,
    /// A message that must leave the house: the outbox.
    Outbox,
    /// The books of the payment network: what it charged.
    Charge,
    /// The books of the payment network: the calls it got.
    Call,
    /// The books of the receiver of notifications: what it got, once for each identifier.
    Notification,
}

impl Kind {
    /// The name, as SQL stores keep it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Payment => "payment",
            Self::Refund => "refund",
            Self::Change => "change",
            Self::Receipt => "receipt",
            Self::Statement => "statement",
            Self::Export => "export",
            Self::Order => "order",
            Self::Event => "event",
            Self::Credit => "credit",
            Self::Outbox => "outbox",
            Self::Charge => "charge",
            Self::Call => "call",
            Self::Notification => "notification",
        }
    }
}

/// What a row is found by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::reference) struct RowId {
    pub(in crate::reference) kind: Kind,
    pub(in crate::reference) tenant: String,
    pub(in crate::reference) id: String,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::reference) struct Row {
    pub(in crate::reference) id: RowId,
    /// What the client calls the intent; lists are asked for by it.
    pub(in crate::reference) reference: String,
    /// Another one after every change, also when a row was removed and made again: the entity tag.
    pub(in crate::reference) tag: String,
    /// The representation.
    pub(in crate::reference) body: Value,
}

impl Row {
    /// A new row with a fresh tag.
    pub(in crate::reference) fn new(id: RowId, reference: impl Into<String>, body: Value) -> Self {
        Self { id, reference: reference.into(), tag: fresh_tag(), body }
    }

    /// The row after a change of its representation.
    pub(in crate::reference) fn changed(&self, body: Value) -> Self {
        Self { tag: fresh_tag(), body, ..self.clone() }
    }
}

fn fresh_tag() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// One change of the rows. A change that finds the rows otherwise than it expects is a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::reference) enum Effect {
    /// Adds a row. No row of this kind and tenant has the identifier.
    Insert(Row),
    /// Puts a row in the place of the one that was seen.
    Replace {
        /// The tag of the row that was seen.
        seen: String,
        /// The new row, of the same identifier.
        row: Row,
    },
    /// Removes the row that was seen.
    Remove {
        /// What the row is found by.
        id: RowId,
        /// The tag of the row that was seen.
        seen: String,
    },
}

/// The rows are not as a change expects them, so none of the changes that belong to it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("somebody else changed the same thing at the same time")]
pub(in crate::reference) struct Conflict;
