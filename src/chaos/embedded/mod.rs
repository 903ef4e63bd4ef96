//! A server of the Toxiproxy HTTP API inside this process, on an engine of its own.
//!
//! It does what Toxiproxy 2.12 does, with these differences, all on purpose:
//! attributes and names that crash or cannot be addressed there are refused with 400; an update that is refused
//! changes nothing; a change of toxics is served while a peer does not read and is answered within two seconds; the
//! upstream is dialled per connection, so that a slow one holds nobody up; `reset_peer` resets connections that were
//! already open; `reset_peer` under way fires at once when removed.

mod api;
mod body;
mod connection;
mod definition;
mod link;
mod listen;
mod proxy;
mod registry;
mod rng;
mod stage;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use registry::Registry;

/// How long calls that are being answered may take to finish when the server stops.
const FAREWELL: Duration = Duration::from_secs(2);

/// The server could not be started.
#[derive(Debug, thiserror::Error)]
#[error("the embedded Toxiproxy cannot listen on {listen}: {source}; choose another address, or port 0 for a free one")]
pub struct StartError {
    listen: SocketAddr,
    source: io::Error,
}

/// A running server. It stops when [`stop`](Self::stop) is called or when it is dropped.
#[derive(Debug)]
pub struct Embedded {
    addr: SocketAddr,
    registry: Arc<Registry>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<io::Result<()>>,
}

impl Embedded {
    /// Starts the server on the current runtime. Port 0 takes a free one.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub async fn start(listen: SocketAddr) -> Result<Self, StartError> {
        let failed = |source| StartError { listen, source };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let addr = listener.local_addr().map_err(failed)?;
        let registry = Arc::new(Registry::default());
        let router = api::router(Arc::clone(&registry));
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = axum::serve(listener, router).with_graceful_shutdown(async {
            // A dropped sender means stop as well.
            let _ = stopped.await;
        });
        let task = tokio::spawn(async move { serve.await });
        Ok(Self { addr, registry, stop: Some(stop), task })
    }

    /// The address of the API.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URL of the API.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Closes every proxy and connection and ends the server.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        self.registry.shut_down().await;
        if tokio::time::timeout(FAREWELL, &mut self.task).await.is_err() {
            self.task.abort();
        }
        // A call that was under way may have made a proxy meanwhile.
        self.registry.shut_down().await;
    }
}
