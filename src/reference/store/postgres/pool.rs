//! A few connections, made when they are needed and used again while they are sound.

use super::connection::Connection;
use crate::reference::store::{Pending, StoreError};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_postgres::{Config, Error, NoTls};

/// The most connections of one server.
const MOST: usize = 8;
/// How long work waits for a connection that others use.
const QUEUE: Duration = Duration::from_secs(5);
/// How long making a connection may take.
const CONNECT: Duration = Duration::from_secs(3);
/// How long work may take on a connection. The server gives up a statement before that (see [`SESSION`]).
const PATIENCE: Duration = Duration::from_secs(6);

/// Said on every new connection. A transaction whose client is gone must not hold its locks for long.
const SESSION: &str = "SET search_path TO idemproof;
    SET default_transaction_isolation TO 'read committed';
    SET statement_timeout TO '4s'; SET lock_timeout TO '3s'; SET idle_in_transaction_session_timeout TO '8s'";

/// What a piece of work on a connection comes to.
pub(super) type Working<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// The connections to one database.
#[derive(Clone)]
pub(super) struct Pool {
    config: Arc<Config>,
    idle: Arc<Mutex<Vec<Connection>>>,
    places: Arc<Semaphore>,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The configuration holds a password.
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

impl Pool {
    pub(super) fn new(config: Config) -> Self {
        Self { config: Arc::new(config), idle: Arc::default(), places: Arc::new(Semaphore::new(MOST)) }
    }

    /// Runs `work` on a connection, in a task of its own: once begun it ends, even when nobody waits any more.
    ///
    /// After any failure the connection is dropped, which ends its transaction. When the failure is the silence of the
    /// server, a commit that was on its way may still happen; the record then says so to whoever asks next.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl for<'a> FnOnce(&'a mut Connection) -> Working<'a, T> + Send + 'static,
    ) -> Pending<'static, T> {
        let pool = self.clone();
        Box::pin(async move {
            let queue = timeout(QUEUE, Arc::clone(&pool.places).acquire_owned());
            // The semaphore is never closed.
            let Ok(Ok(place)) = queue.await else {
                return Err(StoreError("all connections to PostgreSQL are busy".into()));
            };
            let task = tokio::spawn(async move {
                let mut connection = pool.take().await?;
                let worked = match timeout(PATIENCE, work(&mut connection)).await {
                    Ok(Ok(value)) => {
                        pool.idle().push(connection);
                        Ok(value)
                    }
                    Ok(Err(error)) => Err(StoreError(describe(&error))),
                    Err(_) => Err(StoreError(format!("PostgreSQL did not answer within {} s", PATIENCE.as_secs()))),
                };
                drop(place);
                worked
            });
            task.await.unwrap_or_else(|error| Err(StoreError(error.to_string())))
        })
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that was used before and is still open, or a new one.
    async fn take(&self) -> Result<Connection, StoreError> {
        loop {
            let Some(connection) = self.idle().pop() else { break };
            if !connection.is_closed() {
                return Ok(connection);
            }
        }
        match timeout(CONNECT, connect(&self.config)).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(StoreError(format!("no connection to PostgreSQL: {}", describe(&error)))),
            Err(_) => Err(StoreError(format!("no connection to PostgreSQL within {} s", CONNECT.as_secs()))),
        }
    }
}

/// Makes a connection.
pub(super) async fn connect(config: &Config) -> Result<Connection, Error> {
    let (client, driver) = config.connect(NoTls).await?;
    // The driver ends when the client is dropped or the server closes; what went wrong is told to the client.
    tokio::spawn(driver);
    client.batch_execute(SESSION).await?;
    Ok(Connection::new(client))
}

/// An error with its causes, in one line.
pub(super) fn describe(error: &Error) -> String {
    if let Some(error) = error.as_db_error() {
        return format!("PostgreSQL says: {} ({})", error.message(), error.code().code());
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        // Some errors repeat their cause.
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
