//! Between the values of the core and the columns of the tables.

use crate::reference::core::{Answer, Fingerprint, OwnerToken, Record, State, Time};
use crate::reference::payments::APPROVED;
use crate::reference::store::{KeyId, Payment};
use rusqlite::types::{Type, Value};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

/// SQLite counts in 64 bits with a sign. The end of time is the same far away in both.
pub(super) fn time(time: Time) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

fn to_time(column: i64) -> Time {
    Time(u64::try_from(column).unwrap_or(0))
}

pub(super) fn owner(owner: OwnerToken) -> [u8; 16] {
    owner.0.to_be_bytes()
}

pub(super) fn state(state: &State) -> &'static str {
    match state {
        State::Claimed { .. } => "claimed",
        State::Completed(_) => "completed",
    }
}

pub(super) fn headers(headers: &[(String, String)]) -> String {
    serde_json::json!(headers).to_string()
}

/// The parameters of the statements that write a claim: `?1` to `?8`.
pub(super) fn claim_columns(id: &KeyId, record: &Record) -> [Value; 8] {
    let lease_until = match record.state {
        State::Claimed { lease_until } => time(lease_until),
        State::Completed(_) => 0,
    };
    [
        id.scope.tenant.clone().into(),
        id.scope.method.to_owned().into(),
        id.scope.route.to_owned().into(),
        id.key.clone().into(),
        record.fingerprint.0.to_vec().into(),
        owner(record.owner).to_vec().into(),
        lease_until.into(),
        time(record.expires).into(),
    ]
}

/// The record of a key.
pub(super) fn record(sql: &Connection, id: &KeyId) -> rusqlite::Result<Option<Record>> {
    let query = "SELECT fingerprint, owner_token, lease_until, expires, state, resp_status, resp_headers, resp_body
        FROM idempotency_keys WHERE tenant = ?1 AND method = ?2 AND route = ?3 AND idem_key = ?4";
    let key = params![id.scope.tenant, id.scope.method, id.scope.route, id.key];
    sql.query_row(query, key, to_record).optional()
}

fn to_record(row: &Row<'_>) -> rusqlite::Result<Record> {
    let state = match row.get::<_, String>(4)?.as_str() {
        "completed" => State::Completed(Answer {
            status: row.get(5)?,
            headers: serde_json::from_str(&row.get::<_, String>(6)?)
                .map_err(|error| rusqlite::Error::FromSqlConversionFailure(6, Type::Text, error.into()))?,
            body: row.get::<_, Vec<u8>>(7)?.into(),
        }),
        _ => State::Claimed { lease_until: to_time(row.get(2)?) },
    };
    Ok(Record {
        fingerprint: Fingerprint(row.get(0)?),
        owner: OwnerToken(u128::from_be_bytes(row.get(1)?)),
        state,
        expires: to_time(row.get(3)?),
    })
}

pub(super) fn payment(row: &Row<'_>) -> rusqlite::Result<Payment> {
    Ok(Payment {
        id: row.get(0)?,
        tenant: row.get(1)?,
        amount: row.get(2)?,
        currency: row.get(3)?,
        reference: row.get(4)?,
        status: APPROVED,
    })
}

/// The parameters of a statement, from values of one kind and further ones.
pub(super) fn with<'a>(columns: &'a [Value], more: [&'a dyn ToSql; 2]) -> Vec<&'a dyn ToSql> {
    columns.iter().map(|column| column as &dyn ToSql).chain(more).collect()
}
