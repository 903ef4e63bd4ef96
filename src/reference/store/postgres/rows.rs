//! Between the values of the core and the columns of the tables.

use crate::reference::core::{Answer, Fingerprint, OwnerToken, Record, Recovery, State, Time};
use crate::reference::store::{KeyId, Kind, Row, RowId};
use tokio_postgres::Error;
use tokio_postgres::types::ToSql;

/// PostgreSQL counts in 64 bits with a sign. The end of time is the same far away in both.
pub(super) fn time(time: Time) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

fn to_time(column: i64) -> Time {
    Time(u64::try_from(column).unwrap_or(0))
}

pub(super) fn owner(owner: OwnerToken) -> Vec<u8> {
    owner.0.to_be_bytes().to_vec()
}

pub(super) fn headers(headers: &[(String, String)]) -> String {
    serde_json::json!(headers).to_string()
}

/// The parameters of the statements that write a claim: `$1` to `$10`.
pub(super) struct ClaimColumns<'a> {
    id: &'a KeyId,
    fingerprint: &'a [u8],
    owner: Vec<u8>,
    lease_until: i64,
    expires: i64,
    point: Option<&'a str>,
    saved: Option<&'a str>,
}

pub(super) fn claim_columns<'a>(id: &'a KeyId, record: &'a Record) -> ClaimColumns<'a> {
    let (lease_until, recovery) = lease(record);
    ClaimColumns {
        id,
        fingerprint: &record.fingerprint.0,
        owner: owner(record.owner),
        lease_until,
        expires: time(record.expires),
        point: recovery.map(|recovery| recovery.point.as_str()),
        saved: recovery.map(|recovery| recovery.saved.as_str()),
    }
}

impl ClaimColumns<'_> {
    pub(super) fn refs(&self) -> [&(dyn ToSql + Sync); 10] {
        let Self { id: KeyId { scope, key }, fingerprint, owner, lease_until, expires, point, saved } = self;
        [&scope.tenant, &scope.method, &scope.route, key, fingerprint, owner, lease_until, expires, point, saved]
    }
}

fn lease(record: &Record) -> (i64, Option<&Recovery>) {
    match &record.state {
        State::Claimed { lease_until, recovery } => (time(*lease_until), recovery.as_ref()),
        State::Completed(_) => (0, None),
    }
}

/// What a takeover expects to find, as it was read: `$11` to `$14`.
pub(super) struct Seen<'a> {
    owner: Vec<u8>,
    state: &'static str,
    lease_until: i64,
    point: Option<&'a str>,
}

impl<'a> Seen<'a> {
    pub(super) fn new(record: &'a Record) -> Self {
        let (lease_until, recovery) = lease(record);
        let state = match record.state {
            State::Claimed { .. } => "claimed",
            State::Completed(_) => "completed",
        };
        let point = recovery.map(|recovery| recovery.point.as_str());
        Self { owner: owner(record.owner), state, lease_until, point }
    }

    pub(super) fn refs(&self) -> [&(dyn ToSql + Sync); 4] {
        [&self.owner, &self.state, &self.lease_until, &self.point]
    }
}

/// The record of a key.
pub(super) fn record(row: &tokio_postgres::Row) -> Result<Record, Error> {
    let lease_until = to_time(row.try_get(2)?);
    let state = match row.try_get::<_, &str>(4)? {
        "completed" => State::Completed(Answer {
            status: u16::try_from(row.try_get::<_, i32>(5)?).unwrap_or(500),
            headers: serde_json::from_str(row.try_get(6)?).unwrap_or_default(),
            body: row.try_get::<_, Vec<u8>>(7)?.into(),
        }),
        _ => {
            let (point, saved): (Option<String>, Option<String>) = (row.try_get(8)?, row.try_get(9)?);
            State::Claimed { lease_until, recovery: point.zip(saved).map(|(point, saved)| Recovery { point, saved }) }
        }
    };
    Ok(Record {
        fingerprint: Fingerprint(bytes(row.try_get(0)?)),
        owner: OwnerToken(u128::from_be_bytes(bytes(row.try_get(1)?))),
        state,
        expires: to_time(row.try_get(3)?),
    })
}

/// Bytes of a known length. The tables check the lengths, so nothing is cut or filled.
fn bytes<const N: usize>(column: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    for (to, from) in bytes.iter_mut().zip(column) {
        *to = *from;
    }
    bytes
}

/// A row of the business, of a known kind.
pub(super) fn row(kind: Kind, row: &tokio_postgres::Row) -> Result<Row, Error> {
    Ok(Row {
        id: RowId { kind, tenant: row.try_get(0)?, id: row.try_get(1)? },
        reference: row.try_get(2)?,
        tag: row.try_get(3)?,
        body: serde_json::from_str(row.try_get(4)?).unwrap_or_default(),
    })
}
