//! The store in PostgreSQL.
//!
//! A claim is an insert against the primary key, a statement and so a transaction of its own, seen by everybody when it
//! is done. The end of a phase is one transaction: an update of the record that is conditional on the owner token, and
//! the effects. Zero rows updated means roll back. All of it holds at the isolation level "read committed", because
//! every decision is made by a constraint or by the condition of an update, which PostgreSQL evaluates again after it
//! has waited for a concurrent change of the row; nothing is decided by what an earlier statement has read.
//!
//! Several servers may share one database. Their clocks decide about leases, so they should agree within a part of a
//! lease; when they do not, a key is taken over early or late, and the owner token still lets only one commit.

mod connection;
mod open;
mod pool;
mod rows;

use super::{Conflict, Effect, End, KeyId, Kind, Pending, Phase, Refused, Row, RowId, Store};
use crate::reference::core::{self, Claim, LostLease, OwnerToken, Record, Recovery, Terms, Time, Verdict};
use connection::Connection;
use pool::Pool;
use tokio_postgres::Error;
use tokio_postgres::types::ToSql;

pub use open::PostgresError;
pub(super) use open::{parse, show};

const INSERT_CLAIM: &str = "INSERT INTO idempotency_keys
    (tenant, method, route, idem_key, fingerprint, owner_token, lease_until, expires, recovery_pt, recovery_saved, state)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'claimed') ON CONFLICT DO NOTHING";

// The owner may have renewed its lease or ended a phase since the record was read, so both are part of the condition.
const TAKE_OVER: &str =
    "UPDATE idempotency_keys SET fingerprint = $5, owner_token = $6, lease_until = $7, expires = $8,
    recovery_pt = $9, recovery_saved = $10,
    state = 'claimed', resp_status = NULL, resp_headers = NULL, resp_body = NULL
    WHERE tenant = $1 AND method = $2 AND route = $3 AND idem_key = $4 AND owner_token = $11 AND state = $12
    AND (state = 'completed' OR (lease_until = $13 AND recovery_pt IS NOT DISTINCT FROM $14))";

const COMPLETE: &str =
    "UPDATE idempotency_keys SET state = 'completed', expires = $6, resp_status = $7, resp_headers = $8,
    resp_body = $9, recovery_pt = NULL, recovery_saved = NULL
    WHERE tenant = $1 AND method = $2 AND route = $3 AND idem_key = $4 AND owner_token = $5 AND state = 'claimed'";

const ADVANCE: &str = "UPDATE idempotency_keys SET lease_until = greatest(lease_until, $6),
    expires = greatest(expires, $6), recovery_pt = $7, recovery_saved = $8
    WHERE tenant = $1 AND method = $2 AND route = $3 AND idem_key = $4 AND owner_token = $5 AND state = 'claimed'";

const RENEW: &str = "UPDATE idempotency_keys SET lease_until = greatest(lease_until, $6),
    expires = greatest(expires, $6)
    WHERE tenant = $1 AND method = $2 AND route = $3 AND idem_key = $4 AND owner_token = $5 AND state = 'claimed'";

const REMOVE_CLAIM: &str = "DELETE FROM idempotency_keys
    WHERE tenant = $1 AND method = $2 AND route = $3 AND idem_key = $4 AND owner_token = $5 AND state = 'claimed'
    AND recovery_pt IS NULL";

const END_LEASE: &str = "UPDATE idempotency_keys SET lease_until = 0, owner_token = $6
    WHERE tenant = $1 AND method = $2 AND route = $3 AND idem_key = $4 AND owner_token = $5 AND state = 'claimed'
    AND recovery_pt IS NOT NULL";

const INSERT_ROW: &str =
    "INSERT INTO resources (kind, tenant, id, reference, tag, body) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT DO NOTHING";

const REPLACE_ROW: &str = "UPDATE resources SET reference = $4, tag = $5, body = $6
    WHERE kind = $1 AND tenant = $2 AND id = $3 AND tag = $7";

const REMOVE_ROW: &str = "DELETE FROM resources WHERE kind = $1 AND tenant = $2 AND id = $3 AND tag = $4";

const LIST: &str = "SELECT tenant, id, reference, tag, body FROM resources
    WHERE kind = $1 AND tenant = $2 AND reference = $3 ORDER BY seq";

const FIND: &str = "SELECT tenant, id, reference, tag, body FROM resources
    WHERE kind = $1 AND tenant = $2 AND id = $3";

const RECORD: &str =
    "SELECT fingerprint, owner_token, lease_until, expires, state, resp_status, resp_headers, resp_body,
    recovery_pt, recovery_saved
    FROM idempotency_keys WHERE tenant = $1 AND method = $2 AND route = $3 AND idem_key = $4";

const SWEEP: &str = "DELETE FROM idempotency_keys WHERE expires <= $1";

/// How often a claim looks again at a record that changes under its eyes.
const LOOKS: usize = 8;

/// A database, and the connections to it.
#[derive(Debug)]
pub(in crate::reference) struct Postgres {
    pool: Pool,
}

impl Postgres {
    /// Connects and creates the tables.
    pub(in crate::reference) async fn open(url: &str) -> Result<Self, PostgresError> {
        open::open(url).await.map(|pool| Self { pool })
    }
}

impl Store for Postgres {
    fn claim(&self, id: KeyId, request: Claim, terms: Terms) -> Pending<'_, Verdict> {
        self.pool.run(move |sql| Box::pin(async move { claim(sql, &id, &request, &terms).await }))
    }

    fn commit_phase(&self, id: KeyId, phase: Phase, terms: Terms) -> Pending<'_, Result<(), Refused>> {
        self.pool.run(move |sql| {
            Box::pin(async move {
                sql.begin().await?;
                let ended = end_phase(sql, &id, phase, &terms).await?;
                sql.end(ended.is_ok()).await?;
                Ok(ended)
            })
        })
    }

    fn renew(&self, id: KeyId, owner: OwnerToken, now: Time, terms: Terms) -> Pending<'_, Result<(), LostLease>> {
        self.pool.run(move |sql| {
            Box::pin(async move {
                let KeyId { scope, key } = &id;
                let (owner, lease) = (rows::owner(owner), rows::time(now.after(terms.lease)));
                let columns: [&(dyn ToSql + Sync); 6] =
                    [&scope.tenant, &scope.method, &scope.route, key, &owner, &lease];
                Ok(if sql.execute(RENEW, &columns).await? == 1 { Ok(()) } else { Err(LostLease) })
            })
        })
    }

    fn release(&self, id: KeyId, owner: OwnerToken) -> Pending<'_, ()> {
        self.pool.run(move |sql| {
            Box::pin(async move {
                let KeyId { scope, key } = &id;
                let (owner, nobody) = (rows::owner(owner), rows::owner(OwnerToken::NOBODY));
                let columns: [&(dyn ToSql + Sync); 6] =
                    [&scope.tenant, &scope.method, &scope.route, key, &owner, &nobody];
                // Each statement is right alone: the first does nothing after a phase, the second nothing before one.
                sql.execute(REMOVE_CLAIM, &columns[..5]).await?;
                sql.execute(END_LEASE, &columns).await?;
                Ok(())
            })
        })
    }

    fn look(&self, id: KeyId) -> Pending<'_, Option<Record>> {
        self.pool.run(move |sql| Box::pin(async move { look(sql, &id).await }))
    }

    fn commit(&self, effects: Vec<Effect>) -> Pending<'_, Result<(), Conflict>> {
        self.pool.run(move |sql| {
            Box::pin(async move {
                sql.begin().await?;
                let applied = apply(sql, effects).await?;
                sql.end(applied.is_ok()).await?;
                Ok(applied)
            })
        })
    }

    fn list(&self, kind: Kind, tenant: String, reference: String) -> Pending<'_, Vec<Row>> {
        self.pool.run(move |sql| {
            Box::pin(async move {
                let found = sql.query(LIST, &[&kind.name(), &tenant, &reference]).await?;
                found.iter().map(|row| rows::row(kind, row)).collect()
            })
        })
    }

    fn find(&self, id: RowId) -> Pending<'_, Option<Row>> {
        self.pool.run(move |sql| {
            Box::pin(async move {
                let found = sql.query(FIND, &[&id.kind.name(), &id.tenant, &id.id]).await?;
                found.first().map(|row| rows::row(id.kind, row)).transpose()
            })
        })
    }

    fn sweep(&self, now: Time) -> Pending<'_, usize> {
        self.pool.run(move |sql| {
            Box::pin(async move {
                let removed = sql.execute(SWEEP, &[&rows::time(now)]).await?;
                Ok(usize::try_from(removed).unwrap_or(usize::MAX))
            })
        })
    }
}

async fn look(sql: &mut Connection, id: &KeyId) -> Result<Option<Record>, Error> {
    let KeyId { scope, key } = id;
    let found = sql.query(RECORD, &[&scope.tenant, &scope.method, &scope.route, key]).await?;
    found.first().map(rows::record).transpose()
}

async fn claim(sql: &mut Connection, id: &KeyId, request: &Claim, terms: &Terms) -> Result<Verdict, Error> {
    let fresh = core::first(request, terms);
    for _ in 0..LOOKS {
        if sql.execute(INSERT_CLAIM, &rows::claim_columns(id, &fresh).refs()).await? == 1 {
            return Ok(Verdict::Granted(fresh));
        }
        // Without a record it was removed between the two statements, and the insert is tried again.
        let Some(current) = look(sql, id).await? else { continue };
        let Verdict::Granted(record) = core::claim(Some(&current), request, terms) else {
            return Ok(core::claim(Some(&current), request, terms));
        };
        let columns = rows::claim_columns(id, &record);
        let seen = rows::Seen::new(&current);
        if sql.execute(TAKE_OVER, &[&columns.refs()[..], &seen.refs()].concat()).await? == 1 {
            return Ok(Verdict::Granted(record));
        }
        // Somebody else was faster: the owner finished or lives, or another request has taken over.
    }
    Ok(Verdict::InFlight(request.now.after(terms.lease)))
}

async fn end_phase(
    sql: &mut Connection,
    id: &KeyId,
    phase: Phase,
    terms: &Terms,
) -> Result<Result<(), Refused>, Error> {
    let Phase { owner, effects, end, now } = phase;
    let KeyId { scope, key } = id;
    let owner = rows::owner(owner);
    let named: [&(dyn ToSql + Sync); 5] = [&scope.tenant, &scope.method, &scope.route, key, &owner];
    let updated = match end {
        End::Answer(answer) => {
            let (expires, headers) = (rows::time(now.after(terms.retention)), rows::headers(&answer.headers));
            let (status, body) = (i32::from(answer.status), &answer.body[..]);
            let columns: [&(dyn ToSql + Sync); 4] = [&expires, &status, &headers, &body];
            sql.execute(COMPLETE, &[&named[..], &columns].concat()).await?
        }
        End::Point(Recovery { point, saved }) => {
            let lease = rows::time(now.after(terms.lease));
            let columns: [&(dyn ToSql + Sync); 3] = [&lease, &point, &saved];
            sql.execute(ADVANCE, &[&named[..], &columns].concat()).await?
        }
    };
    if updated == 0 {
        return Ok(Err(LostLease.into()));
    }
    Ok(apply(sql, effects).await?.map_err(Refused::from))
}

/// Makes changes, one after the other, until one of them conflicts.
async fn apply(sql: &mut Connection, effects: Vec<Effect>) -> Result<Result<(), Conflict>, Error> {
    for effect in effects {
        let changed = match effect {
            Effect::Insert(Row { id, reference, tag, body }) => {
                let columns: [&(dyn ToSql + Sync); 6] =
                    [&id.kind.name(), &id.tenant, &id.id, &reference, &tag, &body.to_string()];
                sql.execute(INSERT_ROW, &columns).await?
            }
            Effect::Replace { seen, row: Row { id, reference, tag, body } } => {
                let columns: [&(dyn ToSql + Sync); 7] =
                    [&id.kind.name(), &id.tenant, &id.id, &reference, &tag, &body.to_string(), &seen];
                sql.execute(REPLACE_ROW, &columns).await?
            }
            Effect::Remove { id, seen } => {
                sql.execute(REMOVE_ROW, &[&id.kind.name(), &id.tenant, &id.id, &seen]).await?
            }
        };
        if changed == 0 {
            return Ok(Err(Conflict));
        }
    }
    Ok(Ok(()))
}
