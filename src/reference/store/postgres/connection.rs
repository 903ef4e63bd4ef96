//! One connection with the statements it has prepared.

use std::collections::HashMap;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

/// A connection. It is given back to the pool only when it is outside a transaction.
pub(super) struct Connection {
    client: Client,
    statements: HashMap<&'static str, Statement>,
}

impl Connection {
    pub(super) fn new(client: Client) -> Self {
        Self { client, statements: HashMap::new() }
    }

    /// Whether the other side is gone.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Runs a statement and tells how many rows it changed.
    pub(super) async fn execute(&mut self, sql: &'static str, columns: &[&(dyn ToSql + Sync)]) -> Result<u64, Error> {
        let statement = self.prepared(sql).await?;
        self.client.execute(&statement, columns).await
    }

    /// Runs a statement and tells its rows.
    pub(super) async fn query(
        &mut self,
        sql: &'static str,
        columns: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let statement = self.prepared(sql).await?;
        self.client.query(&statement, columns).await
    }

    async fn prepared(&mut self, sql: &'static str) -> Result<Statement, Error> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }

    /// Begins a transaction.
    pub(super) async fn begin(&mut self) -> Result<(), Error> {
        self.client.batch_execute("BEGIN").await
    }

    /// Ends a transaction in which every statement has succeeded.
    pub(super) async fn end(&mut self, commit: bool) -> Result<(), Error> {
        self.client.batch_execute(if commit { "COMMIT" } else { "ROLLBACK" }).await
    }
}
