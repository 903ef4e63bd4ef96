//! One proxy: its addresses, its toxics, its listener and its live connections.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

use super::body::{Fields, Refusal};
use super::common::Common;
use super::connection::{Connection, Control, Order, Setting};
use super::definition::Definition;
use super::dial::Dial;
use super::ledger::Ledger;
use super::link::Change;
use super::listen::Resolved;
use super::metrics::Labels;
use super::rng::Rng;
use super::trigger::Trigger;
use crate::chaos::Stream;

/// How long a change may wait for the live connections.
const BARRIER: Duration = Duration::from_secs(2);
/// Connections of one proxy at a time; further clients wait in the backlog.
const MAX_CONNECTIONS: usize = 4096;
/// Toxics of one proxy.
const MAX_TOXICS: usize = 256;
/// Pause after a failed accept, which means that file descriptors are short.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// A proxy of the server.
#[derive(Debug)]
pub(super) struct Proxy {
    name: String,
    state: Mutex<State>,
    /// The running listener. Held over every start and stop, so that these happen one after the other.
    listener: tokio::sync::Mutex<Option<Listener>>,
    ledger: Ledger,
    common: Arc<Common>,
}

#[derive(Debug)]
struct State {
    listen: String,
    upstream: String,
    enabled: bool,
    upstream_toxics: Vec<Definition>,
    downstream_toxics: Vec<Definition>,
    instances: u64,
    triggers: Arc<[Arc<Trigger>]>,
    dial: Dial,
    connections: HashMap<u64, mpsc::UnboundedSender<Control>>,
    accepted: u64,
}

impl State {
    fn toxics(&self) -> impl Iterator<Item = &Definition> {
        self.upstream_toxics.iter().chain(&self.downstream_toxics)
    }

    fn toxics_of(&mut self, stream: Stream) -> &mut Vec<Definition> {
        match stream {
            Stream::Upstream => &mut self.upstream_toxics,
            Stream::Downstream => &mut self.downstream_toxics,
        }
    }

    fn find(&self, name: &str) -> Result<&Definition, Refusal> {
        self.toxics().find(|toxic| toxic.name == name).ok_or_else(|| Refusal::new(404, "toxic not found"))
    }

    /// Tells every live connection. The barrier ends when all have followed or are gone.
    fn tell(&self, order: Order) -> Barrier {
        tell_all(self.connections.values(), &order)
    }
}

fn tell_all<'a>(connections: impl IntoIterator<Item = &'a mpsc::UnboundedSender<Control>>, order: &Order) -> Barrier {
    let (done, followed) = mpsc::channel(1);
    for connection in connections {
        // A connection that is just ending needs no order.
        let _ = connection.send(Control { order: order.clone(), done: done.clone() });
    }
    Barrier(followed)
}

/// Waits for the live connections to follow an order.
#[derive(Debug)]
struct Barrier(mpsc::Receiver<()>);

impl Barrier {
    async fn wait(mut self) -> Result<(), Refusal> {
        let late = |_| Refusal::new(503, "live connections did not follow the change within 2 seconds");
        tokio::time::timeout(BARRIER, self.0.recv()).await.map(drop).map_err(late)
    }
}

#[derive(Debug)]
struct Listener {
    /// Dropped to stop accepting.
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(super) fn new(name: String, listen: String, upstream: String, common: &Arc<Common>) -> Arc<Self> {
        let state = State {
            listen,
            upstream,
            enabled: false,
            upstream_toxics: vec![],
            downstream_toxics: vec![],
            instances: 0,
            triggers: Arc::default(),
            dial: Dial::default(),
            connections: HashMap::new(),
            accepted: 0,
        };
        Arc::new(Self {
            name,
            state: Mutex::new(state),
            listener: tokio::sync::Mutex::new(None),
            ledger: Ledger::new(common.since),
            common: Arc::clone(common),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn to_json(&self) -> Value {
        let state = self.state();
        json!({
            "name": self.name,
            "listen": state.listen,
            "upstream": state.upstream,
            "enabled": state.enabled,
            "toxics": state.toxics().map(Definition::to_json).collect::<Vec<_>>(),
        })
    }

    /// Opens the port if it is not open.
    pub(super) async fn start(self: &Arc<Self>) -> Result<(), Refusal> {
        let mut running = self.listener.lock().await;
        self.open(&mut running).await
    }

    async fn open(self: &Arc<Self>, running: &mut Option<Listener>) -> Result<(), Refusal> {
        if running.is_some() {
            return Ok(());
        }
        let listen = self.state().listen.clone();
        let failed = |text| Refusal::new(500, text);
        let resolved = Resolved::from_text(&listen).await.map_err(|why| failed(format!("listen tcp: {why}")))?;
        let listener = resolved.bind().await.map_err(failed)?;
        let bound = listener.local_addr().map_err(|error| failed(error.to_string()))?;
        {
            let mut state = self.state();
            state.listen = bound.to_string();
            state.enabled = true;
        }
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(accept(listener, Arc::downgrade(self), stopped));
        *running = Some(Listener { stop, task });
        Ok(())
    }

    /// Closes the port and then every connection, at once.
    pub(super) async fn stop(&self) -> Result<(), Refusal> {
        let mut running = self.listener.lock().await;
        self.close(&mut running).await
    }

    async fn close(&self, running: &mut Option<Listener>) -> Result<(), Refusal> {
        let Some(Listener { stop, task }) = running.take() else { return Ok(()) };
        self.state().enabled = false;
        drop(stop);
        // The task only ends by being stopped; the port is closed when it has.
        let _ = task.await;
        let barrier = self.state().tell(Order::Close);
        barrier.wait().await
    }

    /// Whether other addresses mean another proxy: the listen address is compared after resolution.
    pub(super) async fn differs(&self, listen: &str, upstream: &str) -> Result<bool, Refusal> {
        let resolved = Resolved::from_text(listen).await.map_err(|why| Refusal::new(500, why))?.text();
        let state = self.state();
        Ok(state.listen != resolved || state.upstream != upstream)
    }

    /// Changes addresses and whether the port is open. Live connections stay when nothing differs.
    pub(super) async fn update(self: &Arc<Self>, body: &Fields) -> Result<(), Refusal> {
        let mut running = self.listener.lock().await;
        // The name cannot be changed, but it must be a text.
        body.text("name")?;
        let (listen, upstream, enabled) = {
            let state = self.state();
            (
                body.text("listen")?.unwrap_or_else(|| state.listen.clone()),
                body.text("upstream")?.unwrap_or_else(|| state.upstream.clone()),
                body.boolean("enabled")?.unwrap_or(state.enabled),
            )
        };
        if self.differs(&listen, &upstream).await? {
            self.close(&mut running).await?;
            let mut state = self.state();
            state.listen = listen;
            state.upstream = upstream;
        }
        if enabled { self.open(&mut running).await } else { self.close(&mut running).await }
    }

    pub(super) fn toxics_json(&self) -> Value {
        self.state().toxics().map(Definition::to_json).collect()
    }

    pub(super) fn toxic_json(&self, name: &str) -> Result<Value, Refusal> {
        self.state().find(name).map(Definition::to_json)
    }

    /// Adds a toxic; when this returns, no later byte escapes it.
    pub(super) async fn add_toxic(&self, body: &Fields) -> Result<Value, Refusal> {
        let (answer, barrier) = {
            let mut state = self.state();
            let toxic = Definition::create(state.instances, body)?;
            if state.find(&toxic.name).is_ok() {
                return Err(Refusal::new(409, "toxic already exists"));
            }
            if state.toxics().count() >= MAX_TOXICS {
                return Err(Refusal::new(400, format!("too many toxics: a proxy has room for {MAX_TOXICS}")));
            }
            state.instances += 1;
            state.toxics_of(toxic.stream).push(toxic.clone());
            (toxic.to_json(), state.tell(Order::Change(toxic.stream, Change::Add(toxic))))
        };
        barrier.wait().await.map(|()| answer)
    }

    pub(super) async fn update_toxic(&self, name: &str, body: &Fields) -> Result<Value, Refusal> {
        let (answer, barrier) = {
            let mut state = self.state();
            let toxic = state.find(name)?.update(body)?;
            if let Some(old) = state.toxics_of(toxic.stream).iter_mut().find(|old| old.instance == toxic.instance) {
                *old = toxic.clone();
            }
            (toxic.to_json(), state.tell(Order::Change(toxic.stream, Change::Update(toxic))))
        };
        barrier.wait().await.map(|()| answer)
    }

    pub(super) async fn remove_toxic(&self, name: &str) -> Result<(), Refusal> {
        let barrier = {
            let mut state = self.state();
            let (stream, instance) = state.find(name).map(|toxic| (toxic.stream, toxic.instance))?;
            state.toxics_of(stream).retain(|toxic| toxic.instance != instance);
            state.tell(Order::Change(stream, Change::Remove(instance)))
        };
        barrier.wait().await
    }

    /// Removes every toxic.
    pub(super) async fn clear_toxics(&self) -> Result<(), Refusal> {
        loop {
            let Some(name) = self.state().toxics().next().map(|toxic| toxic.name.clone()) else { return Ok(()) };
            match self.remove_toxic(&name).await {
                // Somebody else was faster.
                Err(Refusal { status: 404, .. }) | Ok(()) => {}
                Err(refusal) => return Err(refusal),
            }
        }
    }

    /// Puts a new connection on the list, with the toxics and triggers of this very moment.
    fn admit(self: &Arc<Self>, client: tokio::net::TcpStream) -> (Listed, Connection) {
        let (sender, control) = mpsc::unbounded_channel();
        let mut state = self.state();
        state.accepted += 1;
        let number = state.accepted;
        state.connections.insert(number, sender);
        let setting = Setting {
            number,
            upstream: state.upstream.clone(),
            dial: state.dial,
            upstream_toxics: state.upstream_toxics.clone(),
            downstream_toxics: state.downstream_toxics.clone(),
            triggers: Arc::clone(&state.triggers),
            seed: Rng::seeded(self.common.seed_for(&self.name)).fork(number).bits(),
        };
        let label = |stream| Labels {
            stream,
            proxy: self.name.clone(),
            listener: state.listen.clone(),
            upstream: state.upstream.clone(),
        };
        let labels = [label(Stream::Upstream), label(Stream::Downstream)];
        drop(state);
        let page = self.ledger.open(number, Instant::now());
        (Listed { proxy: Arc::downgrade(self), number, labels }, Connection::new(client, setting, page, control))
    }
}

/// Takes its connection off the list when dropped, and counts it.
#[derive(Debug)]
struct Listed {
    proxy: Weak<Proxy>,
    number: u64,
    labels: [Labels; 2],
}

impl Drop for Listed {
    fn drop(&mut self) {
        let Some(proxy) = self.proxy.upgrade() else { return };
        proxy.state().connections.remove(&self.number);
        for (stream, received, sent) in proxy.ledger.totals(self.number) {
            let labels = self.labels.iter().find(|labels| labels.stream == stream);
            if let Some(labels) = labels.cloned() {
                proxy.common.metrics.count(labels, received, sent);
            }
        }
        proxy.ledger.close(self.number);
    }
}

/// Accepts until told to stop. Dialling is left to the connection, so that a slow upstream holds nobody up.
async fn accept(listener: TcpListener, proxy: Weak<Proxy>, mut stopped: oneshot::Receiver<()>) {
    let own_room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let Some(room) = proxy.upgrade().map(|proxy| Arc::clone(&proxy.common.room)) else { return };
    loop {
        let accepted = async {
            let places = (Arc::clone(&own_room).acquire_owned().await, Arc::clone(&room).acquire_owned().await);
            (places, listener.accept().await)
        };
        let (places, accepted) = tokio::select! {
            biased;
            _ = &mut stopped => return,
            accepted = accepted => accepted,
        };
        match (accepted, proxy.upgrade()) {
            (_, None) => return,
            (Ok((client, _)), Some(proxy)) => {
                let (listed, connection) = proxy.admit(client);
                tokio::spawn(async move {
                    connection.run().await;
                    drop((listed, places));
                });
            }
            (Err(_), Some(_)) => {
                tokio::select! {
                    _ = &mut stopped => return,
                    () = tokio::time::sleep(ACCEPT_PAUSE) => {}
                }
            }
        }
    }
}

mod extensions;
#[cfg(test)]
mod tests;
