//! Starting and stopping a server: one node, or several over one store behind a common port.

mod connections;
mod front;
mod load;

use super::app::App;
use super::clock::Clock;
use super::contract::{Contract, Crash};
use super::controls::FailCounts;
use super::core::Terms;
use super::fault::{self, Fault, FaultSet};
use super::http;
use super::leases::Leases;
use super::operations::demo_payment;
use super::outbox::Outbox;
use super::store::{OpenError, Store, StoreChoice, StoreError};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use connections::LAST_CALL;

pub(super) use connections::Died;
pub(super) use load::Load;

/// The most nodes of one server.
pub const MOST_NODES: u16 = 16;

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen. Port 0 takes a free one. With several nodes this is the port that sends each connection to the
    /// next node; the nodes themselves take the ports that follow, or free ones.
    pub listen: SocketAddr,
    /// How many nodes there are, 1 to [`MOST_NODES`], all in this process.
    pub nodes: u16,
    /// Where records and payments live.
    pub store: StoreChoice,
    /// What is wrong on purpose.
    pub faults: FaultSet,
    /// What it promises about keys.
    pub contract: Contract,
}

impl Default for Config {
    /// A free port of 127.0.0.1, in memory, without faults, with the contract of the draft.
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            nodes: 1,
            store: StoreChoice::Memory,
            faults: FaultSet::new(),
            contract: Contract::default(),
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
    /// There are no nodes or too many of them, or their ports would lie beyond the last port.
    #[error("{0} nodes at {1} cannot be; choose 1 to {MOST_NODES} nodes and a port that leaves room for theirs")]
    Nodes(u16, SocketAddr),
    /// Lease or retention is shorter than a millisecond.
    #[error("{0} must be at least 1 ms")]
    TooShort(&'static str),
}

/// A running server. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct Server {
    addr: SocketAddr,
    nodes: Vec<SocketAddr>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    #[cfg(test)]
    pub(super) app: Arc<App>,
}

/// Opens the store, takes the ports and begins to serve.
///
/// # Errors
/// [`StartError`], which names what is in the way and what to do about it.
pub async fn start(config: Config) -> Result<Server, StartError> {
    let terms = terms(&config)?;
    let Config { listen, nodes, store, faults, contract } = config;
    let (front, listeners) = bind(listen, nodes).await?;
    let shared = store.open().await?;
    prepare(&shared).await?;
    let (clock, fail_counts) = (Arc::new(Clock::start()), Arc::new(FailCounts::default()));
    let (leases, outbox) = (Arc::new(Leases::default()), Arc::new(Outbox::default()));
    let mut apps = Vec::new();
    for n in 0..listeners.len() {
        // Nodes share what is in memory. A file or a database is opened by each of them, as by processes of their own.
        let shared = Arc::clone(&shared);
        let store = if n == 0 || store == StoreChoice::Memory { shared } else { store.open().await? };
        let store = fault::broken(store, faults, n);
        let (clock, fail_counts) = (Arc::clone(&clock), Arc::clone(&fail_counts));
        let contract = contract.clone();
        let (leases, outbox, load) = (Arc::clone(&leases), Arc::clone(&outbox), Load::default());
        apps.push(Arc::new(App { store, clock, faults, contract, terms, fail_counts, leases, outbox, load }));
    }
    let place =
        |listener: &TcpListener| listener.local_addr().map_err(|source| StartError::Listen { addr: listen, source });
    let nodes = listeners.iter().map(place).collect::<Result<Vec<_>, _>>()?;
    let addr = front.as_ref().or(listeners.first()).map_or(Ok(listen), place)?;
    let (stop, stopped) = watch::channel(false);
    #[cfg(test)]
    let app = Arc::clone(&apps[0]);
    let serving = tokio::spawn(serve(front, nodes.clone(), listeners, apps, stopped));
    Ok(Server {
        addr,
        nodes,
        stop,
        serving,
        #[cfg(test)]
        app,
    })
}

/// Takes the ports: one for each node, and one in front of them when there are several.
async fn bind(listen: SocketAddr, nodes: u16) -> Result<(Option<TcpListener>, Vec<TcpListener>), StartError> {
    let beyond = listen.port() != 0 && listen.port().checked_add(nodes).is_none();
    if nodes == 0 || nodes > MOST_NODES || (nodes > 1 && beyond) {
        return Err(StartError::Nodes(nodes, listen));
    }
    let listener = async |addr: SocketAddr| {
        TcpListener::bind(addr).await.map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => StartError::PortTaken(addr),
            _ => StartError::Listen { addr, source },
        })
    };
    let first = listener(listen).await?;
    if nodes == 1 {
        return Ok((None, vec![first]));
    }
    let mut listeners = Vec::new();
    for n in 1..=nodes {
        let port = if listen.port() == 0 { 0 } else { listen.port() + n };
        listeners.push(listener((listen.ip(), port).into()).await?);
    }
    Ok((Some(first), listeners))
}

/// Serves with all nodes until all of them have wound down.
async fn serve(
    front: Option<TcpListener>,
    places: Vec<SocketAddr>,
    listeners: Vec<TcpListener>,
    apps: Vec<Arc<App>>,
    stop: watch::Receiver<bool>,
) {
    // What is dropped at the end is stopped at the end: leases are kept while the nodes wind down.
    let mut housekeeping = JoinSet::new();
    if let Some(app) = apps.first() {
        housekeeping.spawn(connections::sweep(Arc::clone(app)));
        housekeeping.spawn(Arc::clone(&app.leases).keep_renewing(Arc::clone(&app.clock), app.terms));
        housekeeping.spawn(Arc::clone(&app.outbox).relay(Arc::clone(&app.store)));
    }
    let mut in_front = JoinSet::new();
    if let Some(front) = front {
        in_front.spawn(front::serve(front, places, stop.clone()));
    }
    let mut nodes = JoinSet::new();
    for (listener, app) in listeners.into_iter().zip(apps) {
        let router = http::router(Arc::clone(&app));
        nodes.spawn(connections::serve(listener, app, router, stop.clone()));
    }
    while nodes.join_next().await.is_some() {}
    // The last answers are on their way through the front.
    let _ = timeout(LAST_CALL, in_front.join_next()).await;
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
    let Config { faults, .. } = *config;
    let Contract { mut lease, mut retention, .. } = config.contract;
    if lease.as_millis() == 0 {
        return Err(StartError::TooShort("the lease"));
    }
    if retention.as_millis() == 0 {
        return Err(StartError::TooShort("the retention"));
    }
    if config.contract.crash == Crash::Hold {
        lease = retention;
    }
    if faults.contains(Fault::RetentionBelowContract) {
        retention /= 2;
    }
    if faults.contains(Fault::OrphanedClaimWedge) {
        lease = retention;
    }
    if faults.contains(Fault::LeaseShorterThanHandler) {
        lease /= 2;
    }
    Ok(Terms { lease, retention })
}

impl Server {
    /// Where the server listens: its only node, or the port in front of its nodes.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Where each node listens.
    #[must_use]
    pub fn nodes(&self) -> &[SocketAddr] {
        &self.nodes
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
