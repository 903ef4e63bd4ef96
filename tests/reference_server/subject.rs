//! Servers in this process, over each store, with one node or several.

use crate::common::postgres::{self, Postgres};
use crate::common::{Need, external_trial};
use idemproof::reference::{Config, Server, StartError, StoreChoice, start};
use libtest_mimic::{Failed, Trial};
use std::net::SocketAddr;
use std::sync::LazyLock;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// All servers of this process run here.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));

/// A server, stopped when dropped.
pub(crate) struct Subject {
    server: Option<Server>,
    /// The port that clients use.
    pub(crate) addr: SocketAddr,
    /// Every node.
    pub(crate) nodes: Vec<SocketAddr>,
}

impl Subject {
    /// Starts a server.
    pub(crate) fn try_start(config: Config) -> Result<Self, StartError> {
        let server = RUNTIME.block_on(start(config))?;
        let (addr, nodes) = (server.addr(), server.nodes().to_vec());
        Ok(Self { server: Some(server), addr, nodes })
    }

    /// Starts a server over a store.
    pub(crate) fn start(store: &str, nodes: u16) -> Self {
        Self::try_start(config(store, nodes)).expect("the server starts")
    }
}

/// A server over a store that is named as on the command line.
pub(crate) fn config(store: &str, nodes: u16) -> Config {
    let store = store.parse::<StoreChoice>().expect("a store");
    Config { store, nodes, ..Config::default() }
}

impl Drop for Subject {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            RUNTIME.block_on(server.stop());
        }
    }
}

/// One trial for each store and number of nodes.
pub(crate) fn everywhere(name: &str, test: fn(&Subject)) -> Vec<Trial> {
    let mut trials = Vec::new();
    for nodes in [1, 3] {
        let titled = move |store: &str| format!("{name}, {store}, {nodes} node(s)");
        trials.push(Trial::test(titled("memory"), move || {
            test(&Subject::start("memory", nodes));
            Ok(())
        }));
        trials.push(Trial::test(titled("sqlite"), move || {
            let folder = TempDir::new()?;
            test(&Subject::start(&format!("sqlite:{}", folder.path().join("store.db").display()), nodes));
            Ok(())
        }));
        trials.push(with_postgres(titled("postgres"), move |postgres| {
            test(&Subject::start(&postgres.create("shop"), nodes));
            Ok(())
        }));
    }
    trials
}

/// A trial with a PostgreSQL of its own.
pub(crate) fn with_postgres(
    name: impl Into<String>,
    test: impl FnOnce(&mut Postgres) -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let held = || match postgres::start() {
        Need::Ready(postgres) => Need::Ready(std::cell::RefCell::new((postgres,))),
        Need::Skipped(skip) => Need::Skipped(skip),
    };
    external_trial(name, held, move |postgres| test(&mut postgres.borrow_mut().0))
}
