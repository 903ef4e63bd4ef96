//! A proxy made by a client, and the toxics on it.

use std::net::SocketAddr;

use reqwest::Method;
use serde_json::{Value, json};

use super::http::{same, toxic_body};
use super::{ChaosError, Client};
use crate::chaos::{Stream, Toxic};

/// One of our proxies. It stays until [`delete`](Self::delete) or [`Client::cleanup`]; dropping it deletes nothing.
#[derive(Debug)]
pub struct Proxy {
    client: Client,
    name: String,
    upstream: String,
    addr: SocketAddr,
}

impl Proxy {
    pub(super) fn new(client: Client, name: String, upstream: String, addr: SocketAddr) -> Self {
        Self { client, name, upstream, addr }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// The address a client dials.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The name on the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the proxy leads to, as seen by Toxiproxy.
    pub fn upstream(&self) -> &str {
        &self.upstream
    }

    /// Adds a toxic behind the others of its stream. When this returns, no later byte escapes it, on open connections
    /// too.
    ///
    /// # Errors
    /// What went wrong with the call; [`ChaosError::Differs`] when the server made something else.
    pub async fn add(&self, stream: Stream, toxic: Toxic) -> Result<ToxicHandle, ChaosError> {
        self.add_with(stream, toxic, true).await
    }

    /// Adds a toxic that does nothing until [`ToxicHandle::wake`]. A sleeping [`Toxic::ResetPeer`] has a use of its
    /// own: every connection opened while it is there ends in a reset, whatever ends it.
    ///
    /// # Errors
    /// As for [`add`](Self::add).
    pub async fn add_asleep(&self, stream: Stream, toxic: Toxic) -> Result<ToxicHandle, ChaosError> {
        self.add_with(stream, toxic, false).await
    }

    async fn add_with(&self, stream: Stream, toxic: Toxic, awake: bool) -> Result<ToxicHandle, ChaosError> {
        let name = format!("{}_{stream}_{}", toxic.type_name(), self.client.next_number());
        let path = format!("/proxies/{}/toxics", self.name);
        let body = toxic_body(&name, stream, &toxic, awake.into());
        let answer = self.client.api().json(Method::POST, &path, Some(&body)).await?;
        check(&format!("POST {path}"), &body, &answer)?;
        let (client, path) = (self.client.clone(), format!("{path}/{name}"));
        Ok(ToxicHandle { client, path, name, stream, type_name: toxic.type_name() })
    }

    /// Opens or closes the proxy. Closing it cuts every connection at once and refuses new ones.
    ///
    /// # Errors
    /// What went wrong with the call.
    pub async fn set_enabled(&self, enabled: bool) -> Result<(), ChaosError> {
        let path = format!("/proxies/{}", self.name);
        // POST, because PATCH of a proxy came with 2.6.0.
        let body = json!({"enabled": enabled});
        let answer = self.client.api().json(Method::POST, &path, Some(&body)).await?;
        same(&format!("POST {path}"), "enabled", &Value::Bool(enabled), &answer)
    }

    /// Deletes the proxy and cuts its connections. It being gone already is fine.
    ///
    /// # Errors
    /// What went wrong with the call; [`Client::cleanup`] tries again then.
    pub async fn delete(self) -> Result<(), ChaosError> {
        self.client.delete_proxy(&self.name).await.map(drop)
    }
}

/// A toxic on one of our proxies. It stays when this is dropped.
#[derive(Debug)]
pub struct ToxicHandle {
    client: Client,
    path: String,
    name: String,
    stream: Stream,
    type_name: &'static str,
}

impl ToxicHandle {
    /// The name on the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Changes the attributes. What a toxic has counted so far stays counted.
    ///
    /// # Errors
    /// [`ChaosError::TypeChange`] for another type; otherwise what went wrong with the call.
    pub async fn update(&self, toxic: Toxic) -> Result<(), ChaosError> {
        if toxic.type_name() != self.type_name {
            return Err(ChaosError::TypeChange { old: self.type_name, new: toxic.type_name() });
        }
        self.patch(json!({"attributes": toxic.attributes()})).await
    }

    /// Makes a toxic that was added asleep work, on open connections too.
    ///
    /// # Errors
    /// What went wrong with the call.
    pub async fn wake(&self) -> Result<(), ChaosError> {
        self.patch(json!({"toxicity": 1})).await
    }

    async fn patch(&self, body: Value) -> Result<(), ChaosError> {
        let api = self.client.api();
        let answer = match api.json(Method::PATCH, &self.path, Some(&body)).await {
            // Servers before 2.6.0 know only POST.
            Err(ChaosError::Refused { status: 405, .. }) => api.json(Method::POST, &self.path, Some(&body)).await?,
            answer => answer?,
        };
        let call = format!("PATCH {}", self.path);
        check(&call, &body, &answer)?;
        same(&call, "stream", &json!(self.stream.as_str()), &answer)?;
        same(&call, "type", &json!(self.type_name), &answer)
    }

    /// Removes the toxic; what it holds is let go. Removing a [`Toxic::Timeout`] closes the connections it lost bytes
    /// of.
    ///
    /// # Errors
    /// What went wrong with the call.
    pub async fn remove(self) -> Result<(), ChaosError> {
        self.client.api().text(Method::DELETE, &self.path).await.map(drop)
    }
}

/// Everything that was sent must have come back.
fn check(call: &str, sent: &Value, answer: &Value) -> Result<(), ChaosError> {
    let members = sent.as_object().into_iter().flatten();
    members.into_iter().try_for_each(|(field, asked)| same(call, field, asked, answer))
}
