//! Ctrl-C and SIGTERM.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use super::Exit;
use crate::drive::Interrupter;

/// Which signal ended the run, if one did.
#[derive(Debug, Clone, Default)]
pub(super) struct Ended(Arc<AtomicU8>);

impl Ended {
    /// The exit code of the signal that came.
    pub(super) fn exit(&self) -> Option<Exit> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            130 => Some(Exit::Interrupted),
            _ => Some(Exit::Terminated),
        }
    }
}

/// Interrupts at the first signal, and ends the process at the second one.
pub(super) fn watch(interrupter: Arc<Interrupter>) -> Ended {
    let ended = Ended::default();
    let first = ended.clone();
    tokio::spawn(async move {
        let code = next().await;
        first.0.store(code.code(), Ordering::Relaxed);
        interrupter.interrupt();
        let code = next().await;
        eprintln!("stopped at once by a second signal; proxies on a Toxiproxy of your own may be left");
        std::process::exit(code.code().into());
    });
    ended
}

/// Waits for Ctrl-C or SIGTERM.
#[cfg(unix)]
pub(super) async fn next() -> Exit {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        // Without signal handlers the default action of the system ends the process, which is all that is asked.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => Exit::Interrupted,
        _ = terminate.recv() => Exit::Terminated,
    }
}

/// Waits for Ctrl-C.
#[cfg(not(unix))]
pub(super) async fn next() -> Exit {
    match tokio::signal::ctrl_c().await {
        Ok(()) => Exit::Interrupted,
        Err(_) => std::future::pending().await,
    }
}
