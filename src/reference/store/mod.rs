//! Where records and payments live.
//!
//! A store applies the transitions of [`super::core`] one at a time to one record, and commits a completion together
//! with its effects. Everything else about it is its own affair.

mod memory;
mod sqlite;
#[cfg(test)]
mod tests;

use super::core::{Answer, Claim, LostLease, OwnerToken, Record, Terms, Time, Verdict};
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

pub(super) use memory::Memory;
pub use sqlite::OpenError;
pub(super) use sqlite::Sqlite;

/// Whose keys and for which operation: keys of two scopes never meet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    pub(super) tenant: String,
    pub(super) method: &'static str,
    pub(super) route: &'static str,
}

/// A key within its scope: what a record is found by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct KeyId {
    pub(super) scope: Scope,
    pub(super) key: String,
}

/// The effect of the payments API, and the row that counts it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(super) struct Payment {
    pub(super) id: String,
    #[serde(skip)]
    pub(super) tenant: String,
    /// In the smallest unit of the currency.
    pub(super) amount: i64,
    pub(super) currency: String,
    pub(super) reference: String,
    pub(super) status: &'static str,
}

/// What an execution commits.
#[derive(Debug, Clone)]
pub(super) struct Completion {
    pub(super) owner: OwnerToken,
    pub(super) answer: Answer,
    pub(super) effects: Vec<Payment>,
    pub(super) now: Time,
}

/// A store could not do what it was asked, and did none of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store failed: {0}")]
pub(super) struct StoreError(pub(super) String);

/// An answer of a store that is on its way. Dropping it does not undo what has begun.
pub(super) type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A place for records and payments.
pub(super) trait Store: fmt::Debug + Send + Sync + 'static {
    /// Decides a request for a key and, if granted, inserts or takes over its record, visible to everybody at once.
    fn claim(&self, id: KeyId, request: Claim, terms: Terms) -> Pending<'_, Verdict>;

    /// Commits effects and completed record in one transaction, or neither when the owner has lost its key.
    fn complete(&self, id: KeyId, completion: Completion, terms: Terms) -> Pending<'_, Result<(), LostLease>>;

    /// Removes the claim of an owner. Does nothing when the key is not (or no longer) claimed by it.
    fn release(&self, id: KeyId, owner: OwnerToken) -> Pending<'_, ()>;

    /// The record of a key as it is right now. What it says may be out of date the moment it is read.
    fn look(&self, id: KeyId) -> Pending<'_, Option<Record>>;

    /// Commits effects that no record stands for.
    fn commit(&self, effects: Vec<Payment>) -> Pending<'_, ()>;

    /// The payments of a tenant with a reference, in the order of their commits.
    fn payments(&self, tenant: String, reference: String) -> Pending<'_, Vec<Payment>>;

    /// One payment of a tenant.
    fn payment(&self, tenant: String, id: String) -> Pending<'_, Option<Payment>>;

    /// Removes expired records and tells how many. Correctness does not depend on it.
    fn sweep(&self, now: Time) -> Pending<'_, usize>;
}

/// Which store a server uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreChoice {
    /// In the memory of the process, gone when it ends.
    Memory,
    /// An SQLite file, created when it is not there. Several servers may share it.
    Sqlite(PathBuf),
}

/// Text that names no store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" names no store; expected \"memory\" or \"sqlite:PATH\", such as sqlite:./payments.db")]
pub struct UnknownStore(String);

impl FromStr for StoreChoice {
    type Err = UnknownStore;

    fn from_str(given: &str) -> Result<Self, Self::Err> {
        match given.split_once(':') {
            None if given == "memory" => Ok(Self::Memory),
            // A private in-memory database would lose its content with the connection.
            Some(("sqlite", path)) if !path.is_empty() && path != ":memory:" => Ok(Self::Sqlite(path.into())),
            _ => Err(UnknownStore(given.chars().take(200).collect())),
        }
    }
}

impl fmt::Display for StoreChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
        }
    }
}

impl StoreChoice {
    /// Opens the store. May wait for a locked file; call it where blocking is fine.
    pub(super) fn open(&self) -> Result<Arc<dyn Store>, OpenError> {
        Ok(match self {
            Self::Memory => Arc::new(Memory::default()),
            Self::Sqlite(path) => Arc::new(Sqlite::open(path)?),
        })
    }
}
