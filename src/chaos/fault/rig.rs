//! Performs a recipe on a proxy of the attempt's own.

use std::time::Duration;

use super::{Move, Recipe};
use crate::chaos::{ChaosError, Connection, Dial, Proxy, ToxicHandle, TriggerHandle, Until};

/// A proxy with a recipe. Everything on it goes when the proxy is deleted.
#[derive(Debug)]
pub struct Rig {
    proxy: Proxy,
    recipe: Recipe,
    extensions: bool,
    asleep: Option<ToxicHandle>,
    toxics: Vec<ToxicHandle>,
    triggers: Vec<TriggerHandle>,
    /// What had passed before the request.
    base: Option<Connection>,
}

impl Rig {
    /// A rig for one attempt. `extensions` says whether the proxy keeps a ledger.
    pub fn new(proxy: Proxy, recipe: Recipe, extensions: bool) -> Self {
        Self { proxy, recipe, extensions, asleep: None, toxics: vec![], triggers: vec![], base: None }
    }

    /// The proxy.
    pub fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// The recipe.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Does what comes before the connection.
    ///
    /// # Errors
    /// When the proxy does not do as told: then the attempt is inconclusive.
    pub async fn before(&mut self) -> Result<(), ChaosError> {
        self.perform(self.recipe.before.clone()).await
    }

    /// Arms, after the connection is there and primed. When this returns, no later byte escapes.
    ///
    /// # Errors
    /// As for [`before`](Self::before).
    pub async fn arm(&mut self) -> Result<(), ChaosError> {
        self.base = self.connection().await?;
        self.perform(self.recipe.arm.clone()).await
    }

    /// Does what comes after the part of the request before the split. The part must have left: it is waited for at
    /// the proxy where there is a ledger.
    ///
    /// # Errors
    /// As for [`before`](Self::before).
    pub async fn at_split(&mut self) -> Result<(), ChaosError> {
        self.perform(self.recipe.at_split.clone()).await
    }

    /// Does what comes after the request was written.
    ///
    /// # Errors
    /// As for [`before`](Self::before).
    pub async fn after(&mut self) -> Result<(), ChaosError> {
        self.perform(self.recipe.after.clone()).await
    }

    /// Lets go what a [`Fault::Hold`](super::Fault::Hold) holds.
    ///
    /// # Errors
    /// As for [`before`](Self::before).
    pub async fn release(&mut self) -> Result<(), ChaosError> {
        for trigger in &self.triggers {
            trigger.release().await?;
        }
        for toxic in self.toxics.drain(..) {
            toxic.remove().await?;
        }
        Ok(())
    }

    /// What the ledger says of the attempt's connection: `None` without a ledger or a connection. Waits until
    /// the connection is over, at most so long.
    ///
    /// # Errors
    /// As for [`before`](Self::before).
    pub async fn ledger(&self, patience: Duration) -> Result<Option<Connection>, ChaosError> {
        if !self.extensions {
            return Ok(None);
        }
        match self.proxy.wait(Until::Ended, 1, 0, patience).await? {
            Some(ended) => Ok(Some(ended)),
            None => self.connection().await,
        }
    }

    /// What had passed on the connection before the request.
    pub fn base(&self) -> Option<&Connection> {
        self.base.as_ref()
    }

    /// Deletes the proxy with everything on it.
    ///
    /// # Errors
    /// What went wrong with the call.
    pub async fn delete(self) -> Result<(), ChaosError> {
        self.proxy.delete().await
    }

    async fn connection(&self) -> Result<Option<Connection>, ChaosError> {
        if !self.extensions {
            return Ok(None);
        }
        Ok(self.proxy.connections().await?.pop())
    }

    async fn perform(&mut self, moves: Vec<Move>) -> Result<(), ChaosError> {
        for one in moves {
            match one {
                Move::Add(stream, toxic) => {
                    let handle = self.proxy.add(stream, toxic).await?;
                    self.toxics.push(handle);
                }
                Move::Asleep(stream, toxic) => self.asleep = Some(self.proxy.add_asleep(stream, toxic).await?),
                Move::Wake => {
                    if let Some(asleep) = &self.asleep {
                        asleep.wake().await?;
                    }
                }
                Move::Trigger(trigger) => {
                    let handle = self.proxy.trigger(&trigger).await?;
                    self.triggers.push(handle);
                }
                Move::Enabled(enabled) => self.proxy.set_enabled(enabled).await?,
                Move::DialRefused => self.proxy.dial(Dial::Refuse).await?,
                Move::Sleep(time) => tokio::time::sleep(time).await,
            }
        }
        Ok(())
    }
}
