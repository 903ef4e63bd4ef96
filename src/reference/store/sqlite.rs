//! The store in an SQLite file.
//!
//! The same protocol as in any SQL database: a claim is an insert against the primary key, in a short transaction of
//! its own, so that others see it at once; a completion is an update that is conditional on the owner token, in the
//! transaction of the effects; zero rows updated means roll back. Several servers may share one file.

mod open;
mod rows;

use super::{Conflict, Effect, End, KeyId, Kind, Pending, Phase, Refused, Row, RowId, Store, StoreError};
use crate::reference::core::{self, Claim, LostLease, OwnerToken, Record, Recovery, Terms, Time, Verdict};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;

pub use open::SqliteError;

const INSERT_CLAIM: &str = "INSERT INTO idempotency_keys
    (tenant, method, route, idem_key, fingerprint, owner_token, lease_until, expires, recovery_pt, recovery_saved, state)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 'claimed') ON CONFLICT DO NOTHING";

const TAKE_OVER: &str =
    "UPDATE idempotency_keys SET fingerprint = ?5, owner_token = ?6, lease_until = ?7, expires = ?8,
    recovery_pt = ?9, recovery_saved = ?10,
    state = 'claimed', resp_status = NULL, resp_headers = NULL, resp_body = NULL
    WHERE tenant = ?1 AND method = ?2 AND route = ?3 AND idem_key = ?4 AND owner_token = ?11 AND state = ?12";

const COMPLETE: &str =
    "UPDATE idempotency_keys SET state = 'completed', expires = ?6, resp_status = ?7, resp_headers = ?8,
    resp_body = ?9, recovery_pt = NULL, recovery_saved = NULL
    WHERE tenant = ?1 AND method = ?2 AND route = ?3 AND idem_key = ?4 AND owner_token = ?5 AND state = 'claimed'";

const ADVANCE: &str = "UPDATE idempotency_keys SET lease_until = max(lease_until, ?6), expires = max(expires, ?6),
    recovery_pt = ?7, recovery_saved = ?8
    WHERE tenant = ?1 AND method = ?2 AND route = ?3 AND idem_key = ?4 AND owner_token = ?5 AND state = 'claimed'";

const RENEW: &str = "UPDATE idempotency_keys SET lease_until = max(lease_until, ?6), expires = max(expires, ?6)
    WHERE tenant = ?1 AND method = ?2 AND route = ?3 AND idem_key = ?4 AND owner_token = ?5 AND state = 'claimed'";

const REMOVE_CLAIM: &str = "DELETE FROM idempotency_keys
    WHERE tenant = ?1 AND method = ?2 AND route = ?3 AND idem_key = ?4 AND owner_token = ?5 AND state = 'claimed'
    AND recovery_pt IS NULL";

const END_LEASE: &str = "UPDATE idempotency_keys SET lease_until = 0, owner_token = ?6
    WHERE tenant = ?1 AND method = ?2 AND route = ?3 AND idem_key = ?4 AND owner_token = ?5 AND state = 'claimed'
    AND recovery_pt IS NOT NULL";

const INSERT_ROW: &str =
    "INSERT INTO resources (kind, tenant, id, reference, tag, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT DO NOTHING";

const REPLACE_ROW: &str = "UPDATE resources SET reference = ?4, tag = ?5, body = ?6
    WHERE kind = ?1 AND tenant = ?2 AND id = ?3 AND tag = ?7";

const REMOVE_ROW: &str = "DELETE FROM resources WHERE kind = ?1 AND tenant = ?2 AND id = ?3 AND tag = ?4";

const LIST: &str = "SELECT tenant, id, reference, tag, body FROM resources
    WHERE kind = ?1 AND tenant = ?2 AND reference = ?3 ORDER BY seq";

const FIND: &str = "SELECT tenant, id, reference, tag, body FROM resources
    WHERE kind = ?1 AND tenant = ?2 AND id = ?3";

/// How long a transaction waits for those before it.
const QUEUE: Duration = Duration::from_secs(10);

/// One connection to one file. SQLite has one writer at a time anyway, so more connections would only wait elsewhere.
#[derive(Debug)]
pub(in crate::reference) struct Sqlite {
    connection: Arc<Mutex<Connection>>,
}

impl Sqlite {
    /// Opens or creates the file and its tables. Waits a moment for a lock, so call it where blocking is fine.
    pub(in crate::reference) fn open(path: &Path) -> Result<Self, SqliteError> {
        Ok(Self { connection: Arc::new(Mutex::new(open::open(path)?)) })
    }

    /// Runs `work` in one transaction on a thread that may block. Once begun it ends, even when nobody waits any more.
    fn transact<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<Outcome<T>> + Send + 'static,
    ) -> Pending<'_, T> {
        Box::pin(async move {
            let queue = timeout(QUEUE, Arc::clone(&self.connection).lock_owned());
            let mut connection = queue.await.map_err(|_| StoreError("too many transactions are waiting".into()))?;
            let transacted = tokio::task::spawn_blocking(move || {
                // Immediate: the lock to write is taken at the start, where the busy timeout applies. Whatever fails
                // or panics from here to the commit drops the transaction, which rolls it back.
                let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                match work(&transaction)? {
                    Outcome::Commit(value) => transaction.commit().map(|()| value),
                    Outcome::RollBack(value) => transaction.rollback().map(|()| value),
                }
            });
            match transacted.await {
                Ok(result) => result.map_err(|error| StoreError(error.to_string())),
                Err(error) => Err(StoreError(error.to_string())),
            }
        })
    }
}

/// How a transaction ends.
enum Outcome<T> {
    Commit(T),
    RollBack(T),
}

impl Store for Sqlite {
    fn claim(&self, id: KeyId, request: Claim, terms: Terms) -> Pending<'_, Verdict> {
        self.transact(move |sql| {
            let fresh = core::first(&request, &terms);
            if sql.execute(INSERT_CLAIM, rusqlite::params_from_iter(rows::claim_columns(&id, &fresh)))? == 1 {
                return Ok(Outcome::Commit(Verdict::Granted(fresh)));
            }
            let current = rows::record(sql, &id)?;
            let verdict = core::claim(current.as_ref(), &request, &terms);
            if let (Verdict::Granted(record), Some(old)) = (&verdict, &current) {
                let columns = rows::claim_columns(&id, record);
                let (owner, state) = (rows::owner(old.owner), rows::state(&old.state));
                if sql.execute(TAKE_OVER, &rows::with(&columns, [&owner, &state])[..])? == 0 {
                    // Somebody else was faster to take over, so that claim is the one in flight.
                    return Ok(Outcome::RollBack(Verdict::InFlight(request.now.after(terms.lease))));
                }
            }
            Ok(Outcome::Commit(verdict))
        })
    }

    fn commit_phase(&self, id: KeyId, phase: Phase, terms: Terms) -> Pending<'_, Result<(), Refused>> {
        self.transact(move |sql| {
            let Phase { owner, effects, end, now } = phase;
            let KeyId { scope, key } = id;
            let owner = rows::owner(owner);
            let updated = match end {
                End::Answer(answer) => {
                    let (expires, headers) = (rows::time(now.after(terms.retention)), rows::headers(&answer.headers));
                    let (status, body) = (answer.status, &answer.body[..]);
                    let columns =
                        params![scope.tenant, scope.method, scope.route, key, owner, expires, status, headers, body];
                    sql.execute(COMPLETE, columns)?
                }
                End::Point(reached) => {
                    let (lease, Recovery { point, saved }) = (rows::time(now.after(terms.lease)), reached);
                    let columns = params![scope.tenant, scope.method, scope.route, key, owner, lease, point, saved];
                    sql.execute(ADVANCE, columns)?
                }
            };
            if updated == 0 {
                return Ok(Outcome::RollBack(Err(LostLease.into())));
            }
            Ok(match apply(sql, effects)? {
                Ok(()) => Outcome::Commit(Ok(())),
                Err(conflict) => Outcome::RollBack(Err(conflict.into())),
            })
        })
    }

    fn renew(&self, id: KeyId, owner: OwnerToken, now: Time, terms: Terms) -> Pending<'_, Result<(), LostLease>> {
        self.transact(move |sql| {
            let KeyId { scope, key } = id;
            let (owner, lease) = (rows::owner(owner), rows::time(now.after(terms.lease)));
            let updated = sql.execute(RENEW, params![scope.tenant, scope.method, scope.route, key, owner, lease])?;
            Ok(Outcome::Commit(if updated == 1 { Ok(()) } else { Err(LostLease) }))
        })
    }

    fn release(&self, id: KeyId, owner: OwnerToken) -> Pending<'_, ()> {
        self.transact(move |sql| {
            let KeyId { scope, key } = id;
            let (owner, nobody) = (rows::owner(owner), rows::owner(OwnerToken::NOBODY));
            sql.execute(REMOVE_CLAIM, params![scope.tenant, scope.method, scope.route, key, owner])?;
            sql.execute(END_LEASE, params![scope.tenant, scope.method, scope.route, key, owner, nobody])?;
            Ok(Outcome::Commit(()))
        })
    }

    fn look(&self, id: KeyId) -> Pending<'_, Option<Record>> {
        self.transact(move |sql| rows::record(sql, &id).map(Outcome::RollBack))
    }

    fn commit(&self, effects: Vec<Effect>) -> Pending<'_, Result<(), Conflict>> {
        self.transact(move |sql| {
            Ok(match apply(sql, effects)? {
                Ok(()) => Outcome::Commit(Ok(())),
                Err(conflict) => Outcome::RollBack(Err(conflict)),
            })
        })
    }

    fn list(&self, kind: Kind, tenant: String, reference: String) -> Pending<'_, Vec<Row>> {
        self.transact(move |sql| {
            let mut query = sql.prepare_cached(LIST)?;
            let found = query.query_map(params![kind.name(), tenant, reference], |row| rows::row(kind, row))?;
            Ok(Outcome::RollBack(found.collect::<Result<_, _>>()?))
        })
    }

    fn find(&self, id: RowId) -> Pending<'_, Option<Row>> {
        self.transact(move |sql| {
            let RowId { kind, tenant, id } = id;
            let found = sql.query_row(FIND, params![kind.name(), tenant, id], |row| rows::row(kind, row));
            found.optional().map(Outcome::RollBack)
        })
    }

    fn sweep(&self, now: Time) -> Pending<'_, usize> {
        self.transact(move |sql| {
            sql.execute("DELETE FROM idempotency_keys WHERE expires <= ?1", params![rows::time(now)])
                .map(Outcome::Commit)
        })
    }
}

/// Makes changes, one after the other, until one of them conflicts.
fn apply(sql: &Transaction<'_>, effects: Vec<Effect>) -> rusqlite::Result<Result<(), Conflict>> {
    for effect in effects {
        let changed = match effect {
            Effect::Insert(Row { id, reference, tag, body }) => {
                let columns = params![id.kind.name(), id.tenant, id.id, reference, tag, body.to_string()];
                sql.prepare_cached(INSERT_ROW)?.execute(columns)?
            }
            Effect::Replace { seen, row: Row { id, reference, tag, body } } => {
                let columns = params![id.kind.name(), id.tenant, id.id, reference, tag, body.to_string(), seen];
                sql.prepare_cached(REPLACE_ROW)?.execute(columns)?
            }
            Effect::Remove { id, seen } => {
                sql.prepare_cached(REMOVE_ROW)?.execute(params![id.kind.name(), id.tenant, id.id, seen])?
            }
        };
        if changed == 0 {
            return Ok(Err(Conflict));
        }
    }
    Ok(Ok(()))
}
