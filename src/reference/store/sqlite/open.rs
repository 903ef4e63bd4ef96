//! Opening the file: its settings, its tables, and what may be wrong with it.

use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a statement waits for another process that writes.
const BUSY: Duration = Duration::from_secs(5);
/// How long opening waits for a locked file.
const PATIENCE: Duration = Duration::from_secs(2);
/// The pause before the next look at a locked file.
const PAUSE: Duration = Duration::from_millis(50);
/// Marks the file as ours, in the header field that SQLite has for this: "idpr".
const APPLICATION: i32 = 0x6964_7072;

/// The version of the tables.
const VERSION: i32 = 2;

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS idempotency_keys (
    tenant TEXT NOT NULL, method TEXT NOT NULL, route TEXT NOT NULL, idem_key TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('claimed', 'completed')),
    owner_token BLOB NOT NULL,
    lease_until INTEGER NOT NULL, -- milliseconds since the Unix epoch
    expires INTEGER NOT NULL,     -- likewise
    recovery_pt TEXT,             -- the last phase that has committed
    recovery_saved TEXT,          -- what the next ones need
    resp_status INTEGER, resp_headers TEXT, resp_body BLOB,
    PRIMARY KEY (tenant, method, route, idem_key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS idempotency_keys_expires ON idempotency_keys (expires);
CREATE TABLE IF NOT EXISTS resources (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL, tenant TEXT NOT NULL, id TEXT NOT NULL,
    reference TEXT NOT NULL,
    tag TEXT NOT NULL,            -- another one after every change
    body TEXT NOT NULL,           -- JSON
    UNIQUE (kind, tenant, id)
);
CREATE INDEX IF NOT EXISTS resources_reference ON resources (kind, tenant, reference);
";

/// An SQLite file cannot be used as a store.
#[derive(Debug, thiserror::Error)]
pub enum SqliteError {
    /// Another process holds a lock that does not go away.
    #[error("the database {} is locked by another process; stop that process or choose another file", .0.display())]
    Locked(PathBuf),
    /// The file or its folder cannot be written.
    #[error("the database {} is read-only; make the file and its folder writable or choose another path", .0.display())]
    ReadOnly(PathBuf),
    /// The file is damaged or is not an SQLite database.
    #[error("the file {} is not an SQLite database or is damaged; move it away or choose another path", .0.display())]
    Corrupt(PathBuf),
    /// The file is the database of another program.
    #[error("the database {} belongs to another program and was left alone; choose another path", .0.display())]
    Foreign(PathBuf),
    /// The file was made by another version of this program.
    #[error("the database {} was made by another version of idemproof; choose another path", .0.display())]
    OtherVersion(PathBuf),
    /// The file can neither be opened nor created.
    #[error("cannot open the database {}: {source}; check that its folder exists and that the path names a file", .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
}

impl SqliteError {
    fn new(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked(path),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly(path),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt(path),
            _ => Self::Open { path, source },
        }
    }
}

/// Opens the file and makes it ready. While it is locked, tries again for a moment: switching to the write-ahead log
/// answers "busy" at once, also when two servers start on one new file together.
pub(super) fn open(path: &Path) -> Result<Connection, SqliteError> {
    let begun = Instant::now();
    loop {
        match prepared(path) {
            Err(SqliteError::Locked(_)) if begun.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            result => return result,
        }
    }
}

fn prepared(path: &Path) -> Result<Connection, SqliteError> {
    let failed = |error| SqliteError::new(path, error);
    let mut connection = Connection::open(path).map_err(failed)?;
    connection.busy_timeout(PAUSE).map_err(failed)?;
    match whose(&connection).map_err(failed)? {
        Whose::Ours | Whose::New => {}
        Whose::OtherVersion => return Err(SqliteError::OtherVersion(path.to_owned())),
        Whose::Foreign => return Err(SqliteError::Foreign(path.to_owned())),
    }
    if connection.is_readonly("main").map_err(failed)? {
        return Err(SqliteError::ReadOnly(path.to_owned()));
    }
    prepare(&mut connection).map_err(failed)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    Ok(connection)
}

/// Who made a file.
enum Whose {
    New,
    Ours,
    OtherVersion,
    Foreign,
}

/// Whose the file is. Nothing is written to one that is not ours.
fn whose(connection: &Connection) -> rusqlite::Result<Whose> {
    let number = |pragma| connection.query_row(pragma, [], |row| row.get::<_, i32>(0));
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(match (number("PRAGMA application_id")?, number("PRAGMA user_version")?) {
        (APPLICATION, VERSION) => Whose::Ours,
        (APPLICATION, _) => Whose::OtherVersion,
        (0, _) if tables == 0 => Whose::New,
        _ => Whose::Foreign,
    })
}

fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(SCHEMA)?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn error(path: &Path) -> SqliteError {
        open(path).expect_err("the file should be refused")
    }

    #[test]
    fn a_file_is_created_and_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a b'ü.db");
        drop(open(&path).unwrap());
        let connection = open(&path).unwrap();
        let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
    }

    #[test]
    fn a_locked_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("locked.db");
        let holder = Connection::open(&path).unwrap();
        holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
        assert!(matches!(error(&path), SqliteError::Locked(_)));
        holder.execute_batch("COMMIT").unwrap();
        open(&path).unwrap();
    }

    #[test]
    fn garbage_foreign_and_missing_are_told_apart_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let garbage = folder.path().join("garbage.db");
        std::fs::write(&garbage, "this is not a database ".repeat(100)).unwrap();
        assert!(matches!(error(&garbage), SqliteError::Corrupt(_)));
        let foreign = folder.path().join("foreign.db");
        Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE payments (mine)").unwrap();
        let before = std::fs::read(&foreign).unwrap();
        assert!(matches!(error(&foreign), SqliteError::Foreign(_)));
        assert_eq!(std::fs::read(&foreign).unwrap(), before);
        assert!(matches!(error(&folder.path().join("no/such/folder.db")), SqliteError::Open { .. }));
        assert!(matches!(error(folder.path()), SqliteError::Open { .. }));
    }

    #[test]
    fn a_read_only_database_is_named() {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY);
        let source = rusqlite::Error::SqliteFailure(code, None);
        let error = SqliteError::new(Path::new("x.db"), source);
        assert_eq!(
            error.to_string(),
            "the database x.db is read-only; make the file and its folder writable or choose another path"
        );
    }
}
