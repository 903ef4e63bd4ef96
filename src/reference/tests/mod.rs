//! The server as its clients see it, over real sockets, in both stores.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod client;
mod contract;
mod crashes;
mod faults;
mod lifecycle;
mod operations;
mod phases;

use super::store::{KeyId, Scope};
use super::*;
use client::{Client, Reply};
use std::future::Future;
use std::time::Duration;

/// A server under test with a client for it.
struct Subject {
    server: Server,
    client: Client,
    _folder: tempfile::TempDir,
}

impl Subject {
    async fn start(sqlite: bool, faults: &[Fault]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = if sqlite { StoreChoice::Sqlite(folder.path().join("store.db")) } else { StoreChoice::Memory };
        let config = Config { store, faults: faults.iter().copied().collect(), ..Config::default() };
        let server = start(config).await.unwrap();
        let client = Client { addr: server.addr() };
        Self { server, client, _folder: folder }
    }

    /// Waits until a key of the public tenant has a record.
    async fn claimed(&self, route: &'static str, key: &str) {
        let id = KeyId { scope: Scope { tenant: "public".into(), method: "POST", route }, key: key.into() };
        until(async || self.server.app.store.look(id.clone()).await.unwrap().is_some()).await;
    }

    async fn advance(&self, seconds: f64) {
        let reply = self.client.send("POST", "/test/clock", &[], format!("{{\"seconds\":{seconds}}}").as_bytes()).await;
        assert_eq!(reply.unwrap().status, 200);
    }
}

/// Looks again and again until something is so; fails when it never is.
async fn until(so: impl AsyncFn() -> bool) {
    let looking = async {
        while !so().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), looking).await.expect("it never came to be so");
}

/// Runs one test on a server with each store, with faults switched on.
async fn with<F: Future<Output = ()>>(faults: &[Fault], test: impl Fn(std::sync::Arc<Subject>) -> F) {
    for sqlite in [false, true] {
        let subject = std::sync::Arc::new(Subject::start(sqlite, faults).await);
        test(std::sync::Arc::clone(&subject)).await;
        std::sync::Arc::into_inner(subject).expect("the test is over").server.stop().await;
    }
}

const BODY: &str = r#"{"amount":100,"currency":"TRY","reference":"r1"}"#;
const OTHER: &str = r#"{"amount":250,"currency":"TRY","reference":"r1"}"#;
