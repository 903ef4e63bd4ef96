//! Where records and rows live.
//!
//! A store applies the transitions of [`super::core`] one at a time to one record, and commits the end of a phase
//! together with its effects. Everything else about it is its own affair.

mod memory;
mod postgres;
mod resource;
mod sqlite;
#[cfg(test)]
mod tests;

use super::core::{Answer, Claim, LostLease, OwnerToken, Record, Recovery, Terms, Time, Verdict};
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

pub(super) use memory::Memory;
pub(super) use postgres::Postgres;
pub use postgres::PostgresError;
pub(super) use resource::{Conflict, Effect, Kind, Row, RowId};
pub(super) use sqlite::Sqlite;
pub use sqlite::SqliteError;

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

/// The end of one phase of an execution: what is committed together.
#[derive(Debug, Clone)]
pub(super) struct Phase {
    pub(super) owner: OwnerToken,
    pub(super) effects: Vec<Effect>,
    pub(super) end: End,
    pub(super) now: Time,
}

/// Where a phase ends.
#[derive(Debug, Clone)]
pub(super) enum End {
    /// At a recovery point; more is to come.
    Point(Recovery),
    /// With the answer of the execution.
    Answer(Answer),
}

/// Nothing of a phase was committed, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    /// The execution has been taken over.
    #[error(transparent)]
    Lost(#[from] LostLease),
    /// What the phase read has changed since.
    #[error(transparent)]
    Conflict(#[from] Conflict),
}

/// A store could not do what it was asked. It did none of it, unless its answer to the very commit was lost.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store failed: {0}")]
pub(super) struct StoreError(pub(super) String);

/// An answer of a store that is on its way. Dropping it does not undo what has begun.
pub(super) type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A place for records and rows.
pub(super) trait Store: fmt::Debug + Send + Sync + 'static {
    /// Decides a request for a key and, if granted, inserts or takes over its record, visible to everybody at once.
    fn claim(&self, id: KeyId, request: Claim, terms: Terms) -> Pending<'_, Verdict>;

    /// Commits the end of a phase in one transaction: effects and record, or neither.
    fn commit_phase(&self, id: KeyId, phase: Phase, terms: Terms) -> Pending<'_, Result<(), Refused>>;

    /// Renews the lease of an owner.
    fn renew(&self, id: KeyId, owner: OwnerToken, now: Time, terms: Terms) -> Pending<'_, Result<(), LostLease>>;

    /// Gives a key back: removes the claim, or ends its lease when a phase has committed. Does nothing when the key is
    /// not (or no longer) claimed by this owner.
    fn release(&self, id: KeyId, owner: OwnerToken) -> Pending<'_, ()>;

    /// The record of a key as it is right now. What it says may be out of date the moment it is read.
    fn look(&self, id: KeyId) -> Pending<'_, Option<Record>>;

    /// Commits effects that no record stands for, all or none.
    fn commit(&self, effects: Vec<Effect>) -> Pending<'_, Result<(), Conflict>>;

    /// The rows of one kind and tenant with a reference, in the order in which they were added.
    fn list(&self, kind: Kind, tenant: String, reference: String) -> Pending<'_, Vec<Row>>;

    /// One row.
    fn find(&self, id: RowId) -> Pending<'_, Option<Row>>;

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
    /// A PostgreSQL database. Several servers may share it.
    Postgres(PostgresUrl),
}

/// The URL of a PostgreSQL database, which may hold a password and is shown without it.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(String);

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresUrl({self})")
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        postgres::show(&self.0, f)
    }
}

/// Text that names no store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownStore {
    /// It is of no known kind. The text is not repeated, because it may hold a password.
    #[error(
        "this names no store; expected \"memory\", \"sqlite:PATH\" such as sqlite:./payments.db, or \
         \"postgres://USER@HOST/DATABASE\""
    )]
    Kind,
    /// It is a PostgreSQL URL that cannot be read.
    #[error("this is no URL of a PostgreSQL database: {0}; expected postgres://USER:PASSWORD@HOST:PORT/DATABASE")]
    Postgres(String),
}

impl FromStr for StoreChoice {
    type Err = UnknownStore;

    fn from_str(given: &str) -> Result<Self, Self::Err> {
        match given.split_once(':') {
            None if given == "memory" => Ok(Self::Memory),
            // A private in-memory database would lose its content with the connection.
            Some(("sqlite", path)) if !path.is_empty() && path != ":memory:" => Ok(Self::Sqlite(path.into())),
            Some(("postgres" | "postgresql", _)) => match postgres::parse(given) {
                Ok(_) => Ok(Self::Postgres(PostgresUrl(given.to_owned()))),
                Err(why) => Err(UnknownStore::Postgres(why)),
            },
            _ => Err(UnknownStore::Kind),
        }
    }
}

impl fmt::Display for StoreChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => write!(f, "{url}"),
        }
    }
}

/// A store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The SQLite file cannot.
    #[error(transparent)]
    Sqlite(#[from] SqliteError),
    /// The PostgreSQL database cannot.
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    /// Opening it came to no end.
    #[error("opening the store was interrupted: {0}")]
    Interrupted(String),
}

impl StoreChoice {
    /// Opens the store. May wait a moment for a locked file or a slow server.
    pub(super) async fn open(&self) -> Result<Arc<dyn Store>, OpenError> {
        Ok(match self {
            Self::Memory => Arc::new(Memory::default()),
            Self::Sqlite(path) => {
                let path = path.clone();
                let opened = tokio::task::spawn_blocking(move || Sqlite::open(&path)).await;
                Arc::new(opened.map_err(|error| OpenError::Interrupted(error.to_string()))??)
            }
            Self::Postgres(url) => Arc::new(Postgres::open(&url.0).await?),
        })
    }
}
