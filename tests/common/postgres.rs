//! A PostgreSQL server of the test's own, where PostgreSQL is installed.

use super::process::on_path;
use super::{Need, Skip};
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Names the folder of the programs; without it they are looked for on the PATH and where Debian puts them.
const BIN: &str = "IDEMPROOF_POSTGRES_BIN";
const DEBIAN: &str = "/usr/lib/postgresql";

const READY_WITHIN: Duration = Duration::from_secs(60);
const STOPPED_WITHIN: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);
/// A free port can be taken by somebody else between finding and using it; then another one is tried.
const TRIES: usize = 3;
/// PostgreSQL does not run as root; then it runs as nobody.
const NOBODY: u32 = 65_534;

/// A cluster in a temporary folder, with its server on a loopback port; stopped and removed when dropped.
pub(crate) struct Postgres {
    bin: PathBuf,
    folder: TempDir,
    port: u16,
    as_nobody: bool,
    server: Option<Child>,
}

/// Creates a cluster with the user `tester`, who needs no password, and starts its server.
///
/// # Panics
/// When [`BIN`] names no folder of PostgreSQL, or the server does not start.
pub(crate) fn start() -> Need<Postgres> {
    let Some(bin) = programs() else {
        return Need::Skipped(Skip {
            what: "PostgreSQL".to_owned(),
            why: format!("no initdb and postgres on the PATH or below {DEBIAN}; set {BIN} to their folder"),
        });
    };
    let folder = TempDir::new().expect("a temporary folder");
    let as_nobody = fs::metadata(folder.path()).expect("the temporary folder").uid() == 0;
    if as_nobody {
        chown(folder.path(), Some(NOBODY), Some(NOBODY)).expect("root may give its folder away");
    }
    let mut postgres = Postgres { bin, folder, port: 0, as_nobody, server: None };
    let init = ["-D", "data", "-U", "tester", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync"];
    postgres.run("initdb", &init);
    for _ in 0..TRIES {
        postgres.port = free_port();
        if postgres.try_start() {
            return Need::Ready(postgres);
        }
    }
    panic!("PostgreSQL ({}) did not start; it printed:\n{}", postgres.bin.display(), postgres.log());
}

impl Postgres {
    /// Where the server listens.
    pub(crate) fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The URL of a database of this name at some address, which may be that of a proxy.
    pub(crate) fn url_at(addr: SocketAddr, database: &str) -> String {
        format!("postgres://tester@{addr}/{database}")
    }

    /// The URL of a database of this name.
    pub(crate) fn url(&self, database: &str) -> String {
        Self::url_at(self.addr(), database)
    }

    /// Creates a database and tells its URL.
    pub(crate) fn create(&self, database: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE \"{database}\""));
        self.url(database)
    }

    /// Runs SQL in a database and tells what it prints, one row in a line.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        let port = self.port.to_string();
        let to = ["-h", "127.0.0.1", "-p", &port, "-U", "tester", "-d", database];
        self.run("psql", &[&to[..], &["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql]].concat())
    }

    /// Ends the server as a crash would: nothing is finished, connections are cut. What was committed is there at the
    /// next start.
    pub(crate) fn crash(&mut self) {
        self.end("QUIT");
    }

    /// Starts the server again on its port.
    ///
    /// # Panics
    /// When it does not start.
    pub(crate) fn start_again(&mut self) {
        assert!(self.try_start(), "PostgreSQL did not start again; it printed:\n{}", self.log());
    }

    /// What the server has printed so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", &self.bin)
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
        if self.as_nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) -> String {
        let output =
            self.command(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{program} {arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn try_start(&mut self) -> bool {
        let log = self.folder.path().join("log");
        let out = File::options().create(true).append(true).open(&log).expect("a log file");
        let err = out.try_clone().expect("the same file");
        let port = self.port.to_string();
        // The cluster is thrown away, so nothing waits for the disk. A crash of the server alone loses nothing by that.
        let settings = ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off"];
        let mut command = self.command("postgres");
        command.args(["-D", "data", "-p", &port]).args(settings).stdout(out).stderr(err);
        self.server = Some(command.spawn().expect("postgres can be run"));
        let deadline = Instant::now() + READY_WITHIN;
        while Instant::now() < deadline {
            if self.has_ended() {
                self.server = None;
                return false;
            }
            let asked = self.command("pg_isready").args(["-q", "-h", "127.0.0.1", "-p", &port]).status();
            if asked.is_ok_and(|status| status.success()) {
                return true;
            }
            thread::sleep(POLL);
        }
        false
    }

    fn has_ended(&mut self) -> bool {
        self.server.as_mut().is_none_or(|server| !matches!(server.try_wait(), Ok(None)))
    }

    /// Sends a signal to the server, which stops its children, and waits for its end.
    fn end(&mut self, signal: &str) {
        // Once the child has been waited for, its id may belong to somebody else and must not be signalled.
        if self.has_ended() {
            return;
        }
        if let Some(server) = &self.server {
            let id = server.id().to_string();
            let _ = Command::new("/bin/sh").args(["-c", "kill -s \"$1\" \"$2\"", "sh", signal, &id]).status();
        }
        let deadline = Instant::now() + STOPPED_WITHIN;
        while !self.has_ended() {
            if Instant::now() >= deadline {
                let Some(server) = &mut self.server else { return };
                let _ = server.kill();
                let _ = server.wait();
            }
            thread::sleep(POLL);
        }
        self.server = None;
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // "Fast": clients are cut off, and nobody is waited for.
        self.end("INT");
    }
}

fn programs() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(BIN) {
        let named = PathBuf::from(named);
        assert!(complete(&named), "{BIN} is {}, where initdb, postgres and psql are not", named.display());
        return Some(named);
    }
    let path = std::env::var_os("PATH");
    // Of a link on the PATH, the folder that it leads to: the programs look for each other there.
    let found = on_path("postgres", path.as_deref()).and_then(|file| fs::canonicalize(file).ok());
    if let Some(folder) = found.as_deref().and_then(Path::parent).filter(|folder| complete(folder)) {
        return Some(folder.to_owned());
    }
    // One folder for each version; any of them will do.
    let versions = fs::read_dir(DEBIAN).ok()?.flatten().map(|version| version.path().join("bin"));
    versions.filter(|bin| complete(bin)).max()
}

fn complete(bin: &Path) -> bool {
    ["initdb", "postgres", "psql", "pg_isready"].iter().all(|program| {
        fs::metadata(bin.join(program)).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    })
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port on the loopback");
    listener.local_addr().expect("its address").port()
}
