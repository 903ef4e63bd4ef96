//! A client of the Toxiproxy HTTP API that believes nothing it has not read back.

mod error;
mod extensions;
mod http;
mod owner;
mod proxy;
mod self_test;
mod version;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reqwest::Method;
use serde_json::{Value, json};

pub use error::ChaosError;
pub use extensions::{Connection, Dial, Flow, Replay, SocketEnd, TriggerHandle, Until};
pub use owner::Guard;
pub use proxy::{Proxy, ToxicHandle};
pub use self_test::{Check, SelfTest};
pub use version::Version;

use http::Api;

/// Makes a [`Client`] for a Toxiproxy that does not run beside us, for example in a container.
#[derive(Clone, Debug)]
pub struct Builder {
    api_url: String,
    run_id: String,
    listen_host: String,
    dial_host: Option<String>,
    own_host: IpAddr,
}

impl Builder {
    /// The host that proxies listen on, as seen by Toxiproxy. Default `127.0.0.1`; `0.0.0.0` in a container.
    pub fn listen_host(mut self, host: &str) -> Self {
        host.clone_into(&mut self.listen_host);
        self
    }

    /// The host at which we reach the proxies. Default: where they listen, or the host of the API if that is every
    /// address.
    pub fn dial_host(mut self, host: &str) -> Self {
        self.dial_host = Some(host.to_owned());
        self
    }

    /// The address at which Toxiproxy reaches this machine; the self-test puts its echo server there. Default
    /// `127.0.0.1`.
    pub fn own_host(mut self, host: IpAddr) -> Self {
        self.own_host = host;
        self
    }

    /// Makes the client. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ChaosError::BadUrl`] when the URL is not the address of an API, [`ChaosError::BadRunId`] when the run id
    /// cannot be part of a proxy name.
    pub fn build(self) -> Result<Client, ChaosError> {
        let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if self.run_id.is_empty() || self.run_id.len() > 64 || !self.run_id.chars().all(named) {
            return Err(ChaosError::BadRunId { given: self.run_id });
        }
        let api = Api::new(&self.api_url)?;
        let made = Mutex::new(BTreeSet::new());
        Ok(Client { shared: Arc::new(Shared { api, settings: self, made, count: AtomicU64::new(0) }) })
    }
}

/// A client of one Toxiproxy for one run. Cheap to clone; clones share the list of proxies made.
///
/// It touches only proxies it made itself, named `idemproof-<run id>-<label>-<n>`, and never resets the server.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    api: Api,
    settings: Builder,
    /// Names of proxies that were asked for and are not known to be gone.
    made: Mutex<BTreeSet<String>>,
    count: AtomicU64,
}

impl Client {
    /// A client of the Toxiproxy at `api_url`, given as `http://host:port` or `host:port`. The run id becomes part of
    /// proxy names: at most 64 letters, digits, `-`, `_` and `.`.
    ///
    /// # Errors
    /// As for [`Builder::build`].
    pub fn new(api_url: impl AsRef<str>, run_id: &str) -> Result<Self, ChaosError> {
        Self::builder(api_url, run_id).build()
    }

    /// The same with more settings.
    pub fn builder(api_url: impl AsRef<str>, run_id: &str) -> Builder {
        Builder {
            api_url: api_url.as_ref().to_owned(),
            run_id: run_id.to_owned(),
            listen_host: Ipv4Addr::LOCALHOST.to_string(),
            dial_host: None,
            own_host: Ipv4Addr::LOCALHOST.into(),
        }
    }

    fn api(&self) -> &Api {
        &self.shared.api
    }

    fn made(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.shared.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_number(&self) -> u64 {
        self.shared.count.fetch_add(1, Ordering::Relaxed)
    }

    /// Asks for the version of the server and checks that it is recent enough.
    ///
    /// # Errors
    /// [`ChaosError::TooOld`] below 2.2.0, which lacks `reset_peer`; otherwise what went wrong with the call.
    pub async fn version(&self) -> Result<Version, ChaosError> {
        let body = self.api().text(Method::GET, "/version").await?;
        let nonsense = || ChaosError::Nonsense { call: "GET /version".to_owned(), why: "no version in it".to_owned() };
        let version = Version::find(&body).ok_or_else(nonsense)?;
        if version.is_too_old() { Err(ChaosError::TooOld { found: version }) } else { Ok(version) }
    }

    /// Makes a proxy to `upstream` (`host:port`, as seen by Toxiproxy) on a free port. The label, for people reading
    /// lists of proxies, keeps its letters, digits and `-`, up to 40 of them.
    ///
    /// # Errors
    /// What went wrong with the call. A proxy whose creation was not answered is still removed by
    /// [`cleanup`](Self::cleanup).
    pub async fn create_proxy(&self, label: &str, upstream: &str) -> Result<Proxy, ChaosError> {
        let settings = &self.shared.settings;
        let label: String = label.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect();
        let name = format!("idemproof-{}-{label}-{}", settings.run_id, self.next_number());
        let listen_host = &settings.listen_host;
        let listen = match listen_host.parse::<IpAddr>() {
            Ok(ip) => SocketAddr::new(ip, 0).to_string(),
            Err(_) => format!("{listen_host}:0"),
        };
        let body = json!({"name": name, "listen": listen, "upstream": upstream, "enabled": true});
        self.made().insert(name.clone());
        let answer = match self.api().json(Method::POST, "/proxies", Some(&body)).await {
            // A clear refusal means that nothing was made, or that the proxy of this name is somebody else's.
            Err(error @ ChaosError::Refused { .. }) if !error.is_wedged() => {
                self.made().remove(&name);
                return Err(error);
            }
            answer => answer?,
        };
        let call = "POST /proxies";
        http::same(call, "name", &json!(name), &answer)?;
        http::same(call, "upstream", &json!(upstream), &answer)?;
        http::same(call, "enabled", &Value::Bool(true), &answer)?;
        let bound = answer.get("listen").and_then(Value::as_str).and_then(|text| text.parse::<SocketAddr>().ok());
        let bound = bound.filter(|bound| bound.port() != 0).ok_or_else(|| ChaosError::Nonsense {
            call: call.to_owned(),
            why: "the proxy has no `listen` of the form ip:port".to_owned(),
        })?;
        let addr = self.dial_addr(bound).await?;
        Ok(Proxy::new(self.clone(), name, upstream.to_owned(), addr))
    }

    /// Where we reach a proxy that listens there.
    async fn dial_addr(&self, bound: SocketAddr) -> Result<SocketAddr, ChaosError> {
        let host = match &self.shared.settings.dial_host {
            Some(host) => host.clone(),
            None if bound.ip().is_unspecified() => self.api().host(),
            None => return Ok(bound),
        };
        let unknown = |why: String| ChaosError::DialHost { host: host.clone(), why };
        let lookup = tokio::net::lookup_host((host.trim_matches(['[', ']']), bound.port()));
        let found = tokio::time::timeout(http::LIMIT, lookup).await;
        let mut found =
            found.map_err(|_| unknown("the name service is silent".to_owned()))?.map_err(|e| unknown(e.to_string()))?;
        // A proxy that listens on every IPv4 address is not reached over IPv6.
        let fits = |addr: &SocketAddr| addr.is_ipv4() || bound.is_ipv6();
        found.find(fits).ok_or_else(|| unknown("it has no fitting address".to_owned()))
    }

    /// Deletes every proxy this client made that is still there, and tells how many that were. Goes on after an
    /// error; what could not be deleted stays on the list for another try.
    ///
    /// # Errors
    /// The first error, after all have been tried. A server that stopped answering is not asked again.
    pub async fn cleanup(&self) -> Result<usize, ChaosError> {
        let mut names: Vec<String> = self.made().iter().cloned().collect();
        // The marker goes last: without it, nobody could tell whose the others are.
        names.sort_by_key(|name| self.is_marker(name));
        let mut removed = 0;
        let mut first = None;
        for name in names {
            match self.delete_proxy(&name).await {
                Ok(was_there) => removed += usize::from(was_there && !self.is_marker(&name)),
                Err(error) => {
                    let hopeless = error.is_wedged() || matches!(error, ChaosError::Unreachable { .. });
                    first.get_or_insert(error);
                    if hopeless {
                        break;
                    }
                }
            }
        }
        first.map_or(Ok(removed), Err)
    }

    /// Deletes one of our proxies; false when it was gone already.
    async fn delete_proxy(&self, name: &str) -> Result<bool, ChaosError> {
        let there = match self.api().text(Method::DELETE, &format!("/proxies/{name}")).await {
            Ok(_) => true,
            Err(ChaosError::Refused { status: 404, .. }) => false,
            Err(error) => return Err(error),
        };
        self.made().remove(name);
        Ok(there)
    }
}
