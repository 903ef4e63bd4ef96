//! The proxies of the server, by name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::body::{Fields, Refusal};
use super::common::Common;
use super::proxy::Proxy;

/// Proxies at a time.
const MAX_PROXIES: usize = 4096;

/// All proxies. Reading never waits for a change that is under way.
#[derive(Debug)]
pub(super) struct Registry {
    common: Arc<Common>,
    proxies: Mutex<BTreeMap<String, Arc<Proxy>>>,
    /// Held while proxies are created, replaced and deleted.
    changing: tokio::sync::Mutex<()>,
}

/// What a proxy is created from.
struct Blueprint {
    name: String,
    listen: String,
    upstream: String,
    enabled: bool,
}

impl Blueprint {
    /// `place` completes the message about a missing field.
    fn read(body: &Fields, place: &str) -> Result<Self, Refusal> {
        let (name, upstream) = (body.text("name")?.unwrap_or_default(), body.text("upstream")?.unwrap_or_default());
        let listen = body.text("listen")?.unwrap_or_default();
        let enabled = body.boolean("enabled")?.unwrap_or(true);
        for (field, value) in [("name", &name), ("upstream", &upstream)] {
            if value.is_empty() {
                return Err(Refusal::new(400, format!("missing required field: {field}{place}")));
            }
        }
        if name.contains('/') {
            return Err(Refusal::new(400, "invalid proxy name: a name with `/` cannot be addressed"));
        }
        Ok(Self { name, listen, upstream, enabled })
    }

    async fn build(self, common: &Arc<Common>) -> Result<(String, Arc<Proxy>), Refusal> {
        let proxy = Proxy::new(self.name.clone(), self.listen, self.upstream, common);
        if self.enabled {
            proxy.start().await?;
        }
        Ok((self.name, proxy))
    }
}

impl Registry {
    pub(super) fn new(common: Arc<Common>) -> Self {
        Self { common, proxies: Mutex::default(), changing: tokio::sync::Mutex::default() }
    }

    pub(super) fn common(&self) -> &Common {
        &self.common
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Proxy>>> {
        self.proxies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> Vec<Arc<Proxy>> {
        self.map().values().cloned().collect()
    }

    pub(super) fn get(&self, name: &str) -> Result<Arc<Proxy>, Refusal> {
        self.map().get(name).cloned().ok_or_else(|| Refusal::new(404, "proxy not found"))
    }

    pub(super) fn to_json(&self) -> Value {
        Value::Object(self.map().iter().map(|(name, proxy)| (name.clone(), proxy.to_json())).collect())
    }

    fn check_room(&self) -> Result<(), Refusal> {
        if self.map().len() < MAX_PROXIES {
            return Ok(());
        }
        Err(Refusal::new(400, format!("too many proxies: this server has room for {MAX_PROXIES}")))
    }

    pub(super) async fn create(&self, body: &Fields) -> Result<Value, Refusal> {
        let blueprint = Blueprint::read(body, "")?;
        let _changing = self.changing.lock().await;
        if self.get(&blueprint.name).is_ok() {
            return Err(Refusal::new(409, "proxy already exists"));
        }
        self.check_room()?;
        let (name, proxy) = blueprint.build(&self.common).await?;
        let answer = proxy.to_json();
        self.map().insert(name, proxy);
        Ok(answer)
    }

    /// Creates or replaces several proxies in order, up to the first that fails. Gives those that stand (`None` when
    /// nothing was tried) and the failure.
    pub(super) async fn populate(&self, bodies: &[Fields]) -> (Option<Vec<Value>>, Option<Refusal>) {
        let read = |(body, place): (&Fields, usize)| Blueprint::read(body, &format!(" at proxy {place}"));
        let blueprints: Vec<Blueprint> = match bodies.iter().zip(1..).map(read).collect() {
            Ok(blueprints) => blueprints,
            Err(refusal) => return (None, Some(refusal)),
        };
        let _changing = self.changing.lock().await;
        let mut standing = None;
        for blueprint in blueprints {
            match self.put(blueprint).await {
                Ok(answer) => standing.get_or_insert_with(Vec::new).push(answer),
                Err(refusal) => return (standing, Some(refusal)),
            }
        }
        (standing, None)
    }

    async fn put(&self, blueprint: Blueprint) -> Result<Value, Refusal> {
        match self.get(&blueprint.name) {
            Ok(existing) if !existing.differs(&blueprint.listen, &blueprint.upstream).await? => {
                return Ok(existing.to_json());
            }
            Ok(existing) => existing.stop().await?,
            Err(_) => self.check_room()?,
        }
        let (name, proxy) = blueprint.build(&self.common).await?;
        let answer = proxy.to_json();
        self.map().insert(name, proxy);
        Ok(answer)
    }

    pub(super) async fn delete(&self, name: &str) -> Result<(), Refusal> {
        let _changing = self.changing.lock().await;
        let proxy = self.get(name)?;
        self.map().remove(name);
        proxy.stop().await
    }

    /// Opens every proxy and removes every toxic and trigger.
    pub(super) async fn reset(&self) -> Result<(), Refusal> {
        for proxy in self.all() {
            proxy.start().await?;
            proxy.clear_toxics().await?;
            proxy.clear_extensions().await?;
        }
        Ok(())
    }

    /// Closes everything.
    pub(super) async fn shut_down(&self) {
        let _changing = self.changing.lock().await;
        let proxies = std::mem::take(&mut *self.map());
        for proxy in proxies.into_values() {
            // A connection that is slow to follow ends by itself when the proxy is gone.
            let _ = proxy.stop().await;
        }
    }
}
