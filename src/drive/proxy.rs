//! One proxy in front of one attempt: the only file that speaks to the fault proxy.

use std::{fmt, net::SocketAddr};

use super::driver::Inner;
use crate::chaos::{self, Check, Stream, Toxic};

/// What a proxy is told to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recipe {
    /// Close the connection when so many bytes have passed towards the server.
    LimitUp(u64),
    /// Close the connection when so many bytes have passed towards the client; 0 lets none through.
    LimitDown(u64),
    /// Let nothing through towards the client, and close the connection after so many milliseconds.
    TimeoutDown(u32),
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LimitUp(bytes) => write!(f, "limit_data upstream bytes={bytes}"),
            Self::LimitDown(bytes) => write!(f, "limit_data downstream bytes={bytes}"),
            Self::TimeoutDown(ms) => write!(f, "timeout downstream timeout={ms}"),
        }
    }
}

/// A proxy of one attempt's own.
pub(super) struct OwnProxy(chaos::Proxy);

impl OwnProxy {
    /// Makes a fresh proxy that forwards to `upstream`.
    ///
    /// # Errors
    /// When there is no fault proxy, or it refuses; the text says why.
    pub(super) async fn create(driver: &Inner, label: &str, upstream: SocketAddr) -> Result<Self, String> {
        let client = driver.chaos.as_ref().ok_or("there is no fault proxy in this run")?;
        client.create_proxy(label, &upstream.to_string()).await.map(Self).map_err(|error| error.to_string())
    }

    /// Where to connect to.
    pub(super) fn addr(&self) -> SocketAddr {
        self.0.addr()
    }

    /// Arms the proxy: no later byte escapes.
    ///
    /// # Errors
    /// When the proxy refuses; the text says why.
    pub(super) async fn arm(&self, recipe: Recipe) -> Result<(), String> {
        let (stream, toxic) = match recipe {
            Recipe::LimitUp(bytes) => (Stream::Upstream, Toxic::LimitData { bytes }),
            Recipe::LimitDown(bytes) => (Stream::Downstream, Toxic::LimitData { bytes }),
            Recipe::TimeoutDown(timeout_ms) => (Stream::Downstream, Toxic::Timeout { timeout_ms }),
        };
        self.0.add(stream, toxic).await.map(drop).map_err(|error| error.to_string())
    }

    /// Removes the proxy. A failure is not the attempt's: whoever made the client removes what is left at the end.
    pub(super) async fn delete(self) {
        let _ = self.0.delete().await;
    }
}

/// Whether the fault proxy passes exactly as many bytes as it is told and then closes. Tried once per run.
///
/// # Errors
/// When it does not, or that could not be tried; the text says which.
pub(super) async fn passes_exactly(driver: &Inner) -> Result<(), String> {
    let try_it = || async {
        let client = driver.chaos.as_ref().ok_or("there is no fault proxy in this run")?;
        let test = client.self_test().await.map_err(|error| format!("the fault proxy's self-test failed: {error}"))?;
        match test.limit_exact {
            Check::Holds => Ok(()),
            Check::Fails(why) => Err(format!("the fault proxy does not cut at the exact byte: {why}")),
        }
    };
    driver.exact.get_or_init(try_it).await.clone()
}
