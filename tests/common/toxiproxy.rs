//! The real Toxiproxy server, where there is one.

use super::process::{Server, on_path};
use super::{Need, Skip};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// Names the server program; without it `toxiproxy-server` is looked for on the PATH.
const BIN: &str = "IDEMPROOF_TOXIPROXY_BIN";

/// A running Toxiproxy without proxies; stopped when dropped.
pub(crate) struct Toxiproxy {
    server: Server,
    folder: TempDir,
}

impl Toxiproxy {
    /// The URL of its API, `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr())
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// What it has printed so far.
    pub(crate) fn log(&self) -> String {
        self.server.log()
    }
}

/// Starts a Toxiproxy on a free loopback port and waits until its API answers.
///
/// # Panics
/// When `IDEMPROOF_TOXIPROXY_BIN` names no file, or the server does not answer.
pub(crate) fn start() -> Need<Toxiproxy> {
    let Some(program) = program() else {
        return Need::Skipped(Skip {
            what: "Toxiproxy".to_owned(),
            why: format!("no toxiproxy-server on the PATH; set {BIN} to the program"),
        });
    };
    let folder = TempDir::new().expect("a temporary folder");
    let server = Server::start(&folder.path().join("toxiproxy.log"), "/version", |port| {
        let mut command = Command::new(&program);
        command.args(["-host", "127.0.0.1", "-port", &port.to_string()]);
        command
    });
    match server {
        Ok(server) => Need::Ready(Toxiproxy { server, folder }),
        Err(trouble) => panic!("Toxiproxy ({}) {trouble}", program.display()),
    }
}

fn program() -> Option<PathBuf> {
    match std::env::var_os(BIN) {
        Some(named) => {
            let named = PathBuf::from(named);
            assert!(named.is_file(), "{BIN} is {}, which is not a file", named.display());
            Some(named)
        }
        None => on_path("toxiproxy-server", std::env::var_os("PATH").as_deref()),
    }
}
