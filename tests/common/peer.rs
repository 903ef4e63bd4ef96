//! The servers in `fixtures/peers/`: published idempotency packages behind one payments API.

use super::process::{Server, on_path};
use super::{Need, Skip};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A peer that runs, or why it cannot.
pub(crate) type PeerOutcome = Need<Peer>;

/// A running peer with a data folder of its own; stopped and cleared away when dropped.
pub(crate) struct Peer {
    // Dropped in this order: the server before the folder it writes to.
    server: Server,
    data: TempDir,
}

impl Peer {
    /// `http://127.0.0.1:PORT`.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}", self.addr())
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// The folder given to the peer as DATA_DIR.
    pub(crate) fn data_dir(&self) -> &Path {
        self.data.path()
    }

    /// What the peer has printed so far.
    pub(crate) fn log(&self) -> String {
        self.server.log()
    }
}

/// Starts the peer `name` with a long retention and waits until it answers.
pub(crate) fn start(name: &str) -> PeerOutcome {
    start_with(name, &[])
}

/// Starts the peer `name` with further environment variables, such as `("RETENTION_S", "3")`.
///
/// # Panics
/// When the peer does not exist, or is installed and does not answer.
pub(crate) fn start_with(name: &str, env: &[(&str, &str)]) -> PeerOutcome {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/peers").join(name);
    assert!(folder.join("start.sh").is_file(), "there is no peer {name:?} in fixtures/peers");
    match installed(&folder, std::env::var_os("PATH").as_deref()) {
        Err(why) => Need::Skipped(Skip { what: format!("peer {name}"), why }),
        Ok(()) => match launch(&folder, env) {
            Ok(peer) => Need::Ready(peer),
            Err(trouble) => panic!("peer {name} {trouble}"),
        },
    }
}

/// Whether the packages of the peer in `folder` are installed exactly as locked, else why not.
pub(crate) fn installed(folder: &Path, path: Option<&std::ffi::OsStr>) -> Result<(), String> {
    let (lock, stamp) = if folder.join("package-lock.json").is_file() {
        if on_path("node", path).is_none() {
            return Err("node is not on the PATH".to_owned());
        }
        ("package-lock.json", "node_modules/.installed.lock")
    } else {
        ("requirements.lock.txt", ".venv/.installed.lock")
    };
    let install = || format!("run {}", shown(&folder.join("install.sh")).display());
    match (fs::read(folder.join(lock)), fs::read(folder.join(stamp))) {
        (Err(error), _) => Err(format!("{lock} cannot be read: {error}")),
        (Ok(_), Err(_)) => Err(format!("its packages are not installed; {}", install())),
        (Ok(wanted), Ok(found)) if wanted != found => {
            Err(format!("its packages are not those of {lock}; {}", install()))
        }
        _ => Ok(()),
    }
}

/// Starts the peer in `folder`, which is installed.
pub(crate) fn launch(folder: &Path, env: &[(&str, &str)]) -> Result<Peer, String> {
    let data = TempDir::new().map_err(|error| format!("has no data folder: {error}"))?;
    let server = Server::start(&data.path().join("peer.log"), "/payments?reference=x", |port| {
        // Through bash, which reads the script, so that it matters to nobody whether the file is open elsewhere.
        let mut command = Command::new("bash");
        command
            .arg(folder.join("start.sh"))
            .env("RETENTION_S", "86400")
            .env("LEASE_S", "30")
            .envs(env.iter().copied())
            .env("PORT", port.to_string())
            .env("DATA_DIR", data.path());
        command
    })?;
    Ok(Peer { server, data })
}

/// The path as seen from the repository, for messages.
fn shown(path: &Path) -> PathBuf {
    path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap_or(path).to_owned()
}
