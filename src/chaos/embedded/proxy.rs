//! One proxy: its addresses, its toxics, its listener and its live connections.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

use super::body::{Fields, Refusal};
use super::connection::{Connection, Control, Order};
use super::definition::Definition;
use super::link::Change;
use super::listen::Resolved;
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
}

#[derive(Debug)]
struct State {
    listen: String,
    upstream: String,
    enabled: bool,
    upstream_toxics: Vec<Definition>,
    downstream_toxics: Vec<Definition>,
    instances: u64,
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
        let (done, followed) = mpsc::channel(1);
        for connection in self.connections.values() {
            // A connection that is just ending needs no order.
            let _ = connection.send(Control { order: order.clone(), done: done.clone() });
        }
        Barrier(followed)
    }
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
    pub(super) fn new(name: String, listen: String, upstream: String) -> Arc<Self> {
        let state = State {
            listen,
            upstream,
            enabled: false,
            upstream_toxics: vec![],
            downstream_toxics: vec![],
            instances: 0,
            connections: HashMap::new(),
            accepted: 0,
        };
        Arc::new(Self { name, state: Mutex::new(state), listener: tokio::sync::Mutex::new(None) })
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

    /// Puts a new connection on the list, with the toxics of this very moment.
    fn admit(self: &Arc<Self>, client: tokio::net::TcpStream) -> (Listed, Connection, String) {
        let (sender, control) = mpsc::unbounded_channel();
        let mut state = self.state();
        state.accepted += 1;
        let id = state.accepted;
        state.connections.insert(id, sender);
        let connection = Connection::new(client, &state.upstream_toxics, &state.downstream_toxics, control);
        (Listed { proxy: Arc::downgrade(self), id }, connection, state.upstream.clone())
    }
}

/// Takes its connection off the list when dropped.
#[derive(Debug)]
struct Listed {
    proxy: Weak<Proxy>,
    id: u64,
}

impl Drop for Listed {
    fn drop(&mut self) {
        if let Some(proxy) = self.proxy.upgrade() {
            proxy.state().connections.remove(&self.id);
        }
    }
}

/// Accepts until told to stop. Dialling is left to the connection, so that a slow upstream holds nobody up.
async fn accept(listener: TcpListener, proxy: Weak<Proxy>, mut stopped: oneshot::Receiver<()>) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let accepted = async {
            let place = Arc::clone(&room).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            biased;
            _ = &mut stopped => return,
            accepted = accepted => accepted,
        };
        match (accepted, proxy.upgrade()) {
            (_, None) => return,
            (Ok((client, _)), Some(proxy)) => {
                let (listed, connection, upstream) = proxy.admit(client);
                tokio::spawn(async move {
                    connection.run(upstream).await;
                    drop((listed, place));
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

#[cfg(test)]
mod tests;
