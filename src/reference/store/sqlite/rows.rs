//! Between the values of the core and the columns of the tables.

use crate::reference::core::{Answer, Fingerprint, OwnerToken, Record, Recovery, State, Time};
use crate::reference::store::{KeyId, Kind, Row, RowId};
use rusqlite::types::{Type, Value};
use rusqlite::{Connection, OptionalExtension, ToSql, params};

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

/// The parameters of the statements that write a claim: `?1` to `?10`.
pub(super) fn claim_columns(id: &KeyId, record: &Record) -> [Value; 10] {
    let (lease_until, recovery) = match &record.state {
        State::Claimed { lease_until, recovery } => (time(*lease_until), recovery.clone()),
        State::Completed(_) => (0, None),
    };
    let (point, saved) = recovery.map(|Recovery { point, saved }| (point, saved)).unzip();
    [
        id.scope.tenant.clone().into(),
        id.scope.method.to_owned().into(),
        id.scope.route.to_owned().into(),
        id.key.clone().into(),
        record.fingerprint.0.to_vec().into(),
        owner(record.owner).to_vec().into(),
        lease_until.into(),
        time(record.expires).into(),
        point.into(),
        saved.into(),
    ]
}

/// The record of a key.
pub(super) fn record(sql: &Connection, id: &KeyId) -> rusqlite::Result<Option<Record>> {
    let query = "SELECT fingerprint, owner_token, lease_until, expires, state, resp_status, resp_headers, resp_body,
        recovery_pt, recovery_saved
        FROM idempotency_keys WHERE tenant = ?1 AND method = ?2 AND route = ?3 AND idem_key = ?4";
    let key = params![id.scope.tenant, id.scope.method, id.scope.route, id.key];
    sql.query_row(query, key, to_record).optional()
}

fn to_record(row: &rusqlite::Row<'_>) -> rusqlite::Result<Record> {
    let state = match row.get::<_, String>(4)?.as_str() {
        "completed" => State::Completed(Answer {
            status: row.get(5)?,
            headers: serde_json::from_str(&row.get::<_, String>(6)?)
                .map_err(|error| rusqlite::Error::FromSqlConversionFailure(6, Type::Text, error.into()))?,
            body: row.get::<_, Vec<u8>>(7)?.into(),
        }),
        _ => {
            let (point, saved): (Option<String>, Option<String>) = (row.get(8)?, row.get(9)?);
            let recovery = point.zip(saved).map(|(point, saved)| Recovery { point, saved });
            State::Claimed { lease_until: to_time(row.get(2)?), recovery }
        }
    };
    Ok(Record {
        fingerprint: Fingerprint(row.get(0)?),
        owner: OwnerToken(u128::from_be_bytes(row.get(1)?)),
        state,
        expires: to_time(row.get(3)?),
    })
}

/// A row of the business, of a known kind.
pub(super) fn row(kind: Kind, row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    let body: String = row.get(4)?;
    Ok(Row {
        id: RowId { kind, tenant: row.get(0)?, id: row.get(1)? },
        reference: row.get(2)?,
        tag: row.get(3)?,
        body: serde_json::from_str(&body)
            .map_err(|error| rusqlite::Error::FromSqlConversionFailure(4, Type::Text, error.into()))?,
    })
}

/// The parameters of a statement, from values of one kind and further ones.
pub(super) fn with<'a>(columns: &'a [Value], more: [&'a dyn ToSql; 2]) -> Vec<&'a dyn ToSql> {
    columns.iter().map(|column| column as &dyn ToSql).chain(more).collect()
}
