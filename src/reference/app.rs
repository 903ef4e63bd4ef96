//! What all requests of a server share.

use super::clock::Clock;
use super::contract::Contract;
use super::controls::FailCounts;
use super::core::{OwnerToken, Recovery, Terms};
use super::fault::FaultSet;
use super::leases::Leases;
use super::outbox::{self, Outbox};
use super::server::Load;
use super::store::{Effect, KeyId, Store};
use super::work::Work;
use std::sync::Arc;

/// What all requests of one node share. Nodes share everything but their load.
#[derive(Debug)]
pub(super) struct App {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<Clock>,
    pub(super) faults: FaultSet,
    pub(super) contract: Contract,
    pub(super) terms: Terms,
    pub(super) fail_counts: Arc<FailCounts>,
    pub(super) leases: Arc<Leases>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) load: Load,
}

impl App {
    /// The work of one execution.
    pub(super) fn work(&self, held: Option<(KeyId, OwnerToken)>, recovery: Option<Recovery>) -> Arc<Work> {
        let (store, clock) = (Arc::clone(&self.store), Arc::clone(&self.clock));
        Arc::new(Work::new((store, clock), (self.faults, self.terms), held, recovery))
    }

    /// Tells the relay when a commit has put something into the outbox.
    pub(super) fn committed(&self, effects: &[Effect]) {
        if outbox::has_message(effects) {
            self.outbox.wake();
        }
    }
}
