//! Starting and stopping a server.

mod connections;
mod load;

use super::app::App;
use super::clock::Clock;
use super::controls::FailCounts;
use super::core::Terms;
use super::fault::{Fault, FaultSet};
use super::http;
use super::leases::Leases;
use super::operations::demo_payment;
use super::outbox::Outbox;
use super::store::{OpenError, Store, StoreChoice, StoreError};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(super) use connections::Died;
pub(super) use load::Load;

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen. Port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where records and payments live.
    pub store: StoreChoice,
    /// What is wrong on purpose.
    pub faults: FaultSet,
    /// How long a claim keeps others out.
    pub lease: Duration,
    /// How long a result is kept, counted from its completion.
    pub retention: Duration,
}

impl Default for Config {
    /// A free port of 127.0.0.1, in memory, without faults; a lease of 30 s and a retention of 24 h.
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            store: StoreChoice::Memory,
            faults: FaultSet::new(),
            lease: Duration::from_secs(30),
            retention: Duration::from_secs(24 * 60 * 60),
        }
    }
}

/// A server could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Somebody else listens there.
    #[error("{0} is in use by another program; stop that program, or listen on port 0 to take a free port")]
    PortTaken(SocketAddr),
    /// Listening failed for another reason.
    #[error("cannot listen on {addr}: {source}; choose an address of this machine and a port that you may use")]
    Listen {
        /// Where it should have listened.
        addr: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The store was opened and then could not be used.
    #[error("the store was opened and then failed: {0}")]
    Prepare(String),
    /// Lease or retention is shorter than a millisecond.
    #[error("{0} must be at least 1 ms")]
    TooShort(&'static str),
    /// Opening the store came to no end.
    #[error("opening the store was interrupted: {0}")]
    Interrupted(String),
}

/// A running server. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct Server {
    addr: SocketAddr,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    #[cfg(test)]
    pub(super) app: Arc<App>,
}

/// Opens the store, takes the port and begins to serve.
///
/// # Errors
/// [`StartError`], which names what is in the way and what to do about it.
pub async fn start(config: Config) -> Result<Server, StartError> {
    let terms = terms(&config)?;
    let Config { listen, store, faults, .. } = config;
    let opened = tokio::task::spawn_blocking(move || store.open());
    let store = opened.await.map_err(|error| StartError::Interrupted(error.to_string()))??;
    let listener = TcpListener::bind(listen).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => StartError::PortTaken(listen),
        _ => StartError::Listen { addr: listen, source },
    })?;
    let addr = listener.local_addr().map_err(|source| StartError::Listen { addr: listen, source })?;
    prepare(&store).await?;
    let (clock, fail_counts) = (Arc::new(Clock::start()), Arc::new(FailCounts::default()));
    let (leases, outbox, load) = (Arc::new(Leases::default()), Arc::new(Outbox::default()), Load::default());
    let app = Arc::new(App { store, clock, faults, terms, fail_counts, leases, outbox, load });
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(connections::serve(listener, Arc::clone(&app), http::router(Arc::clone(&app)), stopped));
    Ok(Server {
        addr,
        stop,
        serving,
        #[cfg(test)]
        app,
    })
}

/// Puts into the store what every tenant has from the start.
async fn prepare(store: &Arc<dyn Store>) -> Result<(), StartError> {
    for tenant in http::TENANTS {
        // A conflict says that it is there already.
        let _ = store.commit(vec![demo_payment(tenant)]).await.map_err(|StoreError(why)| StartError::Prepare(why))?;
    }
    Ok(())
}

/// The terms that the server keeps, which are those it promises.
fn terms(config: &Config) -> Result<Terms, StartError> {
    let Config { mut lease, mut retention, faults, .. } = *config;
    if lease.as_millis() == 0 {
        return Err(StartError::TooShort("the lease"));
    }
    if retention.as_millis() == 0 {
        return Err(StartError::TooShort("the retention"));
    }
    if faults.contains(Fault::RetentionBelowContract) {
        retention /= 2;
    }
    if faults.contains(Fault::OrphanedClaimWedge) {
        lease = retention;
    }
    Ok(Terms { lease, retention })
}

impl Server {
    /// Where the server listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Stops accepting, lets work in flight finish for up to 5 s, interrupts the rest (its keys are released), and ends.
    pub async fn stop(mut self) {
        // There is no receiver any more when the server has ended by itself, which is as good.
        let _ = self.stop.send(true);
        self.wait().await;
    }

    /// Waits until the server has ended, which it does only when it is stopped.
    pub async fn wait(&mut self) {
        if !self.serving.is_finished() {
            let _ = (&mut self.serving).await;
        }
    }
}
