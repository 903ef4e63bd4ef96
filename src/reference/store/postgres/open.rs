//! Opening the database: its URL, its tables, and what may be in the way.

use super::pool::{Pool, connect, describe};
use std::fmt;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, Error, NoTls};

/// How long connecting and creating the tables may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The version of the tables.
const VERSION: i32 = 1;

/// The lock of two servers that start on a new database together. The number is ours alone: "idemproo".
const LOCK: &str = "SELECT pg_advisory_xact_lock(7594875896325988207)";

/// Everything is in a schema of its own, so nothing of another program is touched.
const SCHEMA: &str = "
CREATE SCHEMA IF NOT EXISTS idemproof;
CREATE TABLE IF NOT EXISTS idemproof.version (version int NOT NULL);
CREATE TABLE IF NOT EXISTS idemproof.idempotency_keys (
    tenant text NOT NULL, method text NOT NULL, route text NOT NULL, idem_key text NOT NULL,
    fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32),
    state text NOT NULL CHECK (state IN ('claimed', 'completed')),
    owner_token bytea NOT NULL CHECK (length(owner_token) = 16),
    lease_until bigint NOT NULL, -- milliseconds since the Unix epoch
    expires bigint NOT NULL,     -- likewise
    recovery_pt text,            -- the last phase that has committed
    recovery_saved text,         -- what the next ones need
    resp_status int, resp_headers text, resp_body bytea,
    PRIMARY KEY (tenant, method, route, idem_key)
);
CREATE INDEX IF NOT EXISTS idempotency_keys_expires ON idemproof.idempotency_keys (expires);
CREATE TABLE IF NOT EXISTS idemproof.resources (
    seq bigserial PRIMARY KEY,
    kind text NOT NULL, tenant text NOT NULL, id text NOT NULL,
    reference text NOT NULL,
    tag text NOT NULL,           -- another one after every change
    body text NOT NULL,          -- JSON, byte for byte
    UNIQUE (kind, tenant, id)
);
CREATE INDEX IF NOT EXISTS resources_reference ON idemproof.resources (kind, tenant, reference);
INSERT INTO idemproof.version SELECT 1 WHERE NOT EXISTS (SELECT FROM idemproof.version);
";

/// A PostgreSQL database cannot be used as a store.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// Nobody answers there.
    #[error("cannot reach PostgreSQL at {at}: {why}; check that it runs and that host and port are right")]
    Unreachable {
        /// Where it should be.
        at: String,
        /// What went wrong.
        why: String,
    },
    /// The server does not let us in.
    #[error("PostgreSQL at {at} refuses the login: {why}; check user, password and database")]
    Refused {
        /// Where it is.
        at: String,
        /// What the server says.
        why: String,
    },
    /// The database takes no changes.
    #[error("the database at {at} is read-only, such as a replica; choose the primary")]
    ReadOnly {
        /// Where it is.
        at: String,
    },
    /// The tables cannot be created or are not ours.
    #[error("the tables at {at} cannot be used: {why}")]
    Tables {
        /// Where it is.
        at: String,
        /// What is wrong.
        why: String,
    },
}

/// Reads the URL; the error says what is wrong with it and repeats none of it.
pub(in crate::reference::store) fn parse(url: &str) -> Result<Config, String> {
    let config: Config = url.parse().map_err(|error: Error| describe(&error))?;
    if config.get_hosts().is_empty() {
        return Err("it names no host".to_owned());
    }
    Ok(config)
}

/// Shows a URL without its password and its options.
pub(in crate::reference::store) fn show(url: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Ok(config) = parse(url) else { return f.write_str("postgres://...") };
    f.write_str("postgres://")?;
    if let Some(user) = config.get_user() {
        write!(f, "{user}@")?;
    }
    for (n, host) in config.get_hosts().iter().enumerate() {
        let port = config.get_ports().get(n).or(config.get_ports().first()).copied().unwrap_or(5432);
        let comma = if n == 0 { "" } else { "," };
        match host {
            Host::Tcp(name) => write!(f, "{comma}{name}:{port}")?,
            #[cfg(unix)]
            Host::Unix(path) => write!(f, "{comma}{}:{port}", path.display())?,
        }
    }
    config.get_dbname().map_or(Ok(()), |name| write!(f, "/{name}"))
}

struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self.0, f)
    }
}

/// Connects, creates the tables, and hands out a pool of connections.
pub(super) async fn open(url: &str) -> Result<Pool, PostgresError> {
    let at = Shown(url).to_string();
    let config = parse(url).map_err(|why| PostgresError::Unreachable { at: at.clone(), why })?;
    let prepared = timeout(PATIENCE, prepare(&config)).await.unwrap_or_else(|_| {
        let why = format!("no answer within {} s", PATIENCE.as_secs());
        Err(PostgresError::Unreachable { at: String::new(), why })
    });
    prepared.map_err(|error| named(error, at))?;
    Ok(Pool::new(config))
}

fn named(error: PostgresError, at: String) -> PostgresError {
    match error {
        PostgresError::Unreachable { why, .. } => PostgresError::Unreachable { at, why },
        PostgresError::Refused { why, .. } => PostgresError::Refused { at, why },
        PostgresError::ReadOnly { .. } => PostgresError::ReadOnly { at },
        PostgresError::Tables { why, .. } => PostgresError::Tables { at, why },
    }
}

/// What an error means while the store is opened. The place is filled in by the caller.
fn meaning(error: &Error) -> PostgresError {
    let (at, why) = (String::new(), describe(error));
    match error.code() {
        Some(code) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => PostgresError::ReadOnly { at },
        Some(code)
            if [
                &SqlState::INVALID_PASSWORD,
                &SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
                &SqlState::INVALID_CATALOG_NAME,
            ]
            .contains(&code) =>
        {
            PostgresError::Refused { at, why }
        }
        Some(code) if [&SqlState::CANNOT_CONNECT_NOW, &SqlState::TOO_MANY_CONNECTIONS].contains(&code) => {
            PostgresError::Unreachable { at, why }
        }
        Some(_) => PostgresError::Tables { at, why },
        // Such as a password that is asked for and not given.
        None if why.contains("password") => PostgresError::Refused { at, why },
        None => PostgresError::Unreachable { at, why },
    }
}

async fn prepare(config: &Config) -> Result<(), PostgresError> {
    create(config).await.map_err(|error| meaning(&error))?;
    let mut connection = connect(config).await.map_err(|error| meaning(&error))?;
    let found = connection.query("SELECT version FROM version", &[]).await.map_err(|error| meaning(&error))?;
    match found.first().map(|row| row.try_get::<_, i32>(0)) {
        Some(Ok(VERSION)) => Ok(()),
        _ => {
            let why = "they were made by another version of idemproof; drop the schema idemproof or choose another \
                       database";
            Err(PostgresError::Tables { at: String::new(), why: why.to_owned() })
        }
    }
}

async fn create(config: &Config) -> Result<(), Error> {
    let (client, driver) = config.connect(NoTls).await?;
    let driver = tokio::spawn(driver);
    // One batch is one transaction, so nothing is left of it when it fails.
    client.batch_execute(&format!("BEGIN; {LOCK}; {SCHEMA} COMMIT")).await?;
    drop(client);
    let _ = driver.await;
    Ok(())
}
