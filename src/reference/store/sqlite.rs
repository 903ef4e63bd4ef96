//! The store in an SQLite file.
//!
//! The same protocol as in any SQL database: a claim is an insert against the primary key, in a short transaction of
//! its own, so that others see it at once; a completion is an update that is conditional on the owner token, in the
//! transaction of the effects; zero rows updated means roll back. Several servers may share one file.

mod open;
mod rows;

use super::{Completion, KeyId, Payment, Pending, Store, StoreError};
use crate::reference::core::{self, Claim, LostLease, OwnerToken, Record, Terms, Time, Verdict};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;

pub use open::OpenError;

const INSERT_CLAIM: &str = "INSERT INTO idempotency_keys
    (tenant, method, route, idem_key, fingerprint, owner_token, lease_until, expires, state)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'claimed') ON CONFLICT DO NOTHING";

const TAKE_OVER: &str =
    "UPDATE idempotency_keys SET fingerprint = ?5, owner_token = ?6, lease_until = ?7, expires = ?8,
    state = 'claimed', resp_status = NULL, resp_headers = NULL, resp_body = NULL
    WHERE tenant = ?1 AND method = ?2 AND route = ?3 AND idem_key = ?4 AND owner_token = ?9 AND state = ?10";

const COMPLETE: &str =
    "UPDATE idempotency_keys SET state = 'completed', expires = ?6, resp_status = ?7, resp_headers = ?8,
    resp_body = ?9
    WHERE tenant = ?1 AND method = ?2 AND route = ?3 AND idem_key = ?4 AND owner_token = ?5 AND state = 'claimed'";

const RELEASE: &str = "DELETE FROM idempotency_keys
    WHERE tenant = ?1 AND method = ?2 AND route = ?3 AND idem_key = ?4 AND owner_token = ?5 AND state = 'claimed'";

const INSERT_PAYMENT: &str =
    "INSERT INTO payments (id, tenant, amount, currency, reference, status) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// How long a transaction waits for those before it.
const QUEUE: Duration = Duration::from_secs(10);

/// One connection to one file. SQLite has one writer at a time anyway, so more connections would only wait elsewhere.
#[derive(Debug)]
pub(in crate::reference) struct Sqlite {
    connection: Arc<Mutex<Connection>>,
}

impl Sqlite {
    /// Opens or creates the file and its tables. Waits a moment for a lock, so call it where blocking is fine.
    pub(in crate::reference) fn open(path: &Path) -> Result<Self, OpenError> {
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
            let fresh = core::takeover(&request, &terms);
            let columns = rows::claim_columns(&id, &fresh);
            if sql.execute(INSERT_CLAIM, rusqlite::params_from_iter(&columns))? == 1 {
                return Ok(Outcome::Commit(Verdict::Granted(fresh)));
            }
            let current = rows::record(sql, &id)?;
            let verdict = core::claim(current.as_ref(), &request, &terms);
            if let (Verdict::Granted(_), Some(old)) = (&verdict, &current) {
                let (owner, state) = (rows::owner(old.owner), rows::state(&old.state));
                if sql.execute(TAKE_OVER, &rows::with(&columns, [&owner, &state])[..])? == 0 {
                    // Somebody else was faster to take over, so that claim is the one in flight.
                    return Ok(Outcome::RollBack(Verdict::InFlight(request.now.after(terms.lease))));
                }
            }
            Ok(Outcome::Commit(verdict))
        })
    }

    fn complete(&self, id: KeyId, completion: Completion, terms: Terms) -> Pending<'_, Result<(), LostLease>> {
        self.transact(move |sql| {
            let Completion { owner, answer, effects, now } = completion;
            insert_payments(sql, &effects)?;
            let updated = sql.execute(
                COMPLETE,
                params![
                    id.scope.tenant,
                    id.scope.method,
                    id.scope.route,
                    id.key,
                    rows::owner(owner),
                    rows::time(now.after(terms.retention)),
                    answer.status,
                    rows::headers(&answer.headers),
                    &answer.body[..],
                ],
            )?;
            Ok(if updated == 1 { Outcome::Commit(Ok(())) } else { Outcome::RollBack(Err(LostLease)) })
        })
    }

    fn release(&self, id: KeyId, owner: OwnerToken) -> Pending<'_, ()> {
        self.transact(move |sql| {
            let KeyId { scope, key } = id;
            sql.execute(RELEASE, params![scope.tenant, scope.method, scope.route, key, rows::owner(owner)])?;
            Ok(Outcome::Commit(()))
        })
    }

    fn look(&self, id: KeyId) -> Pending<'_, Option<Record>> {
        self.transact(move |sql| rows::record(sql, &id).map(Outcome::RollBack))
    }

    fn commit(&self, effects: Vec<Payment>) -> Pending<'_, ()> {
        self.transact(move |sql| insert_payments(sql, &effects).map(Outcome::Commit))
    }

    fn payments(&self, tenant: String, reference: String) -> Pending<'_, Vec<Payment>> {
        self.transact(move |sql| {
            let mut query = sql.prepare_cached(
                "SELECT id, tenant, amount, currency, reference FROM payments
                 WHERE tenant = ?1 AND reference = ?2 ORDER BY seq",
            )?;
            let payments = query.query_map(params![tenant, reference], rows::payment)?.collect::<Result<_, _>>()?;
            Ok(Outcome::RollBack(payments))
        })
    }

    fn payment(&self, tenant: String, id: String) -> Pending<'_, Option<Payment>> {
        self.transact(move |sql| {
            let query = "SELECT id, tenant, amount, currency, reference FROM payments WHERE tenant = ?1 AND id = ?2";
            sql.query_row(query, params![tenant, id], rows::payment).optional().map(Outcome::RollBack)
        })
    }

    fn sweep(&self, now: Time) -> Pending<'_, usize> {
        self.transact(move |sql| {
            sql.execute("DELETE FROM idempotency_keys WHERE expires <= ?1", params![rows::time(now)])
                .map(Outcome::Commit)
        })
    }
}

fn insert_payments(sql: &Transaction<'_>, payments: &[Payment]) -> rusqlite::Result<()> {
    let mut insert = sql.prepare_cached(INSERT_PAYMENT)?;
    for Payment { id, tenant, amount, currency, reference, status } in payments {
        insert.execute(params![id, tenant, amount, currency, reference, status])?;
    }
    Ok(())
}
