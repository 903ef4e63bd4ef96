//! A server of the Toxiproxy HTTP API inside this process, on an engine of its own.
//!
//! It does what Toxiproxy 2.12 does, with these differences, all on purpose:
//! attributes and names that crash or cannot be addressed there are refused with 400; an update that is refused
//! changes nothing; a change of toxics is served while a peer does not read and is answered within two seconds; the
//! upstream is dialled per connection, so that a slow one holds nobody up; `reset_peer` resets connections that were
//! already open; `reset_peer` under way fires at once when removed; a seed is used.
//!
//! What Toxiproxy cannot do has routes of its own below `/idemproof`: triggers at points of an exchange, a ledger of
//! what happened on each connection, dial settings, and cutting one connection.

mod api;
mod body;
mod common;
mod connection;
mod definition;
mod dial;
mod extensions;
mod leave;
mod ledger;
mod link;
mod listen;
mod metrics;
mod proxy;
mod registry;
mod rng;
mod scan;
mod serve;
mod stage;
mod tap;
mod trigger;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use common::Common;
use registry::Registry;
use rng::Rng;

/// How a server is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the API listens. Port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where jitter, toxicity and slice points come from. Without one it is a different one each time, which the API
    /// tells.
    pub seed: Option<u64>,
    /// Whether `/metrics` shows counters.
    pub metrics: bool,
}

impl Default for Settings {
    /// A free port of 127.0.0.1, no seed, no counters.
    fn default() -> Self {
        Self { listen: (Ipv4Addr::LOCALHOST, 0).into(), seed: None, metrics: false }
    }
}

/// The server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its address cannot be used.
    #[error(
        "the embedded Toxiproxy cannot listen on {listen}: {source}; choose another address, or port 0 for a free one"
    )]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The proxies that it should start with cannot be made.
    #[error("the proxies to start with cannot be made: {why}")]
    Proxies {
        /// What the API says to them.
        why: String,
    },
}

/// A running server. It stops when [`stop`](Self::stop) is called or when it is dropped.
#[derive(Debug)]
pub struct Embedded {
    addr: SocketAddr,
    registry: Arc<Registry>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Embedded {
    /// Starts the server on the current runtime. Port 0 takes a free one.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub async fn start(listen: SocketAddr) -> Result<Self, StartError> {
        Self::start_with(Settings { listen, ..Settings::default() }).await
    }

    /// The same with more settings.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub async fn start_with(settings: Settings) -> Result<Self, StartError> {
        let Settings { listen, seed, metrics } = settings;
        let failed = |source| StartError::Listen { listen, source };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let addr = listener.local_addr().map_err(failed)?;
        let registry = Arc::new(Registry::new(Common::new(seed.unwrap_or_else(Rng::entropy))));
        let router = api::router(Arc::clone(&registry), metrics);
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(serve::serve(listener, router, stopped, serve::HEAD_WAIT));
        Ok(Self { addr, registry, stop, task })
    }

    /// Makes the proxies that `json` lists: an array of objects with `name`, `listen`, `upstream` and `enabled`, as in
    /// the configuration file of Toxiproxy. Gives how many.
    ///
    /// # Errors
    /// When it is no such list, or a proxy cannot be opened. Those before that one stand.
    pub async fn populate(&self, json: &[u8]) -> Result<usize, StartError> {
        let refused = |refusal: body::Refusal| StartError::Proxies { why: refusal.text };
        let bodies = body::Fields::decode_list(json).map_err(refused)?;
        match self.registry.populate(&bodies).await {
            (made, None) => Ok(made.map_or(0, |made| made.len())),
            (_, Some(refusal)) => Err(refused(refusal)),
        }
    }

    /// The address of the API.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URL of the API.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The seed in use.
    pub fn seed(&self) -> u64 {
        self.registry.common().seed
    }

    /// Closes every proxy and connection and ends the server.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        self.registry.shut_down().await;
        // It ends by itself within a bounded time; a panic of its task is no reason to go on.
        let _ = (&mut self.task).await;
        // A call that was under way may have made a proxy meanwhile.
        self.registry.shut_down().await;
    }
}
