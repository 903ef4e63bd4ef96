//! The driver: what all cases of a run share.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{sync::OnceCell, time::Instant};
use tokio_rustls::TlsConnector;
use url::Url;

use super::{
    call::Marks,
    clock::Clock,
    interrupt::{Deadline, Interrupt},
    manners::Manners,
    wire::{self, Line},
};
use crate::{chaos, target::Target};

/// Performs schedules against one target. Clones share connections' settings, budget and clock.
#[derive(Clone)]
pub struct Driver {
    pub(super) inner: Arc<Inner>,
}

/// What a driver needs beyond the target.
pub struct Options {
    /// The id of the run: part of every key's name, of every reference and of two header fields.
    pub run: String,
    /// The fault proxy. Without one, attempts with a network fault are not sent.
    pub chaos: Option<chaos::Client>,
    /// The wish to stop.
    pub interrupt: Interrupt,
}

/// Why a target cannot be driven.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The id of the run has characters that a header field cannot hold.
    #[error("the run id `{0}` cannot stand in a header field: use letters, digits and `-`")]
    RunId(String),
    /// The platform's trust for TLS is not to be had.
    #[error("TLS cannot be set up: {0}; install the system's CA certificates")]
    Tls(String),
    /// A node cannot be connected to.
    #[error("{node} cannot be reached: {why}; check that the target runs and that its base URL is right")]
    Unreachable {
        /// Scheme, host and port of the node.
        node: String,
        /// What the last try said.
        why: String,
    },
    /// The run was interrupted.
    #[error("interrupted")]
    Interrupted,
}

pub(super) struct Inner {
    pub(super) target: Arc<Target>,
    pub(super) run: String,
    pub(super) marks: Marks,
    pub(super) clock: Clock,
    pub(super) chaos: Option<chaos::Client>,
    /// Whether the fault proxy passes exactly as many bytes as it is told, once that has been tried.
    pub(super) exact: OnceCell<Result<(), String>>,
    pub(super) interrupt: Interrupt,
    pub(super) manners: Manners,
    tls: Option<TlsConnector>,
    /// Operations whose effect probe is not to be believed, and why.
    distrusted: Mutex<BTreeMap<String, String>>,
    /// The address by which each node was reached last.
    reached: Mutex<Vec<Option<SocketAddr>>>,
}

impl Driver {
    /// A driver for a target.
    ///
    /// # Errors
    /// When the run id cannot stand in a header field, or TLS cannot be set up for an `https` node.
    pub async fn new(target: Arc<Target>, options: Options) -> Result<Self, DriveError> {
        let tls = if target.nodes.iter().any(|node| node.scheme() == "https") {
            // The platform's certificates are read from disk.
            let made = tokio::task::spawn_blocking(wire::tls).await;
            let made = made.map_err(|error| DriveError::Tls(error.to_string()))?;
            Some(made.map_err(|error| DriveError::Tls(error.to_string()))?)
        } else {
            None
        };
        Self::with_tls(target, options, tls)
    }

    /// As [`new`](Self::new), with the trust of `tls`.
    pub(super) fn with_tls(
        target: Arc<Target>,
        options: Options,
        tls: Option<TlsConnector>,
    ) -> Result<Self, DriveError> {
        let Options { run, chaos, interrupt } = options;
        let marks = Marks::of(&run).ok_or_else(|| DriveError::RunId(run.clone()))?;
        let manners = Manners::new(&target.limits, interrupt.clone());
        let reached = Mutex::new(vec![None; target.nodes.len()]);
        let inner = Inner {
            target,
            run,
            marks,
            clock: Clock::start(),
            chaos,
            exact: OnceCell::new(),
            interrupt,
            manners,
            tls,
            distrusted: Mutex::default(),
            reached,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Believes the effect probe of an operation no more: every further count of it fails with `why`.
    pub fn distrust_probe(&self, operation: &str, why: &str) {
        let mut distrusted = self.inner.distrusted.lock().unwrap_or_else(PoisonError::into_inner);
        distrusted.insert(operation.to_owned(), why.to_owned());
    }

    /// Whether every node can be connected to (TCP, and TLS for `https`). Tries again until `wait` is over; sends
    /// no request.
    ///
    /// # Errors
    /// When a node could not be reached in all that time, or an interrupt came.
    pub async fn reach(&self, wait: Duration) -> Result<(), DriveError> {
        let end = Instant::now() + wait;
        for (index, node) in self.inner.target.nodes.iter().enumerate() {
            let mut pause = Duration::from_millis(50);
            loop {
                let deadline = Deadline::after(
                    self.inner.target.limits.timeout.duration().min(wait.max(Duration::from_secs(1))),
                    &self.inner.interrupt,
                );
                let why = match deadline.within(self.inner.open(index, node, None)).await {
                    Some(Ok(_)) => break,
                    Some(Err(why)) => why,
                    None => "no connection in time".to_owned(),
                };
                if Instant::now() + pause >= end {
                    return Err(DriveError::Unreachable { node: shown(node), why });
                }
                if !self.inner.interrupt.sleep(pause).await {
                    return Err(DriveError::Interrupted);
                }
                pause = (pause * 2).min(Duration::from_millis(500));
            }
        }
        Ok(())
    }
}

impl Inner {
    /// Why the effect probe of an operation is not to be believed, if it is not.
    pub(super) fn distrusted(&self, operation: &str) -> Option<String> {
        self.distrusted.lock().unwrap_or_else(PoisonError::into_inner).get(operation).cloned()
    }

    /// Opens a connection to a node, through the proxy `via` if there is one.
    ///
    /// # Errors
    /// When there is none to be had; the text says why.
    pub(super) async fn open(&self, index: usize, node: &Url, via: Option<SocketAddr>) -> Result<Line, String> {
        let line = wire::open(node, via, self.tls.as_ref(), self.clock).await?;
        if via.is_none()
            && let Some(reached) = self.reached.lock().unwrap_or_else(PoisonError::into_inner).get_mut(index)
        {
            *reached = Some(line.peer);
        }
        Ok(line)
    }

    /// The numeric address that a proxy in front of the node forwards to: the one that was reached last, so that a
    /// name with several addresses cannot lead to another program.
    ///
    /// # Errors
    /// When the name does not resolve.
    pub(super) async fn upstream(&self, index: usize, node: &Url) -> Result<SocketAddr, String> {
        let known = self.reached.lock().unwrap_or_else(PoisonError::into_inner).get(index).copied().flatten();
        match known {
            Some(address) => Ok(address),
            None => wire::addresses(node).await?.first().copied().ok_or_else(|| "the node has no address".to_owned()),
        }
    }

    /// The text without the target's secrets.
    pub(super) fn clean(&self, text: &str) -> String {
        self.target.redactor.redact(text)
    }
}

/// A node for messages: no path, no user, no password.
fn shown(node: &Url) -> String {
    let port = node.port_or_known_default().map_or_else(String::new, |port| format!(":{port}"));
    format!("{}://{}{port}", node.scheme(), node.host_str().unwrap_or_default())
}
