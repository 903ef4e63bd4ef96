//! Child processes that never outlive the test that started them.

use super::http;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const READY_WITHIN: Duration = Duration::from_secs(30);
const STOPPED_WITHIN: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(25);
/// A free port can be taken by somebody else between finding and using it; then another one is tried.
const TRIES: usize = 3;

/// A server in a process group of its own, stopped when dropped.
pub(crate) struct Server {
    child: Child,
    addr: SocketAddr,
    log: PathBuf,
}

impl Server {
    /// Starts what `command` makes for a free loopback port, writing its output to `log`, and waits until `path`
    /// answers 200.
    ///
    /// # Errors
    /// What it printed, when it ended before that or did not answer within 30 s.
    pub(crate) fn start(log: &Path, path: &str, command: impl Fn(u16) -> Command) -> Result<Self, String> {
        let mut trouble = String::new();
        for _ in 0..TRIES {
            let port = free_port().map_err(|error| format!("no free port on the loopback: {error}"))?;
            let mut server =
                Self::spawn(command(port), port, log).map_err(|error| format!("does not start: {error}"))?;
            match server.wait_ready(path) {
                Ok(()) => return Ok(server),
                Err(Unready::Ended(status)) => trouble = format!("ended with {status}"),
                Err(Unready::Silent) => {
                    trouble = format!("did not answer GET {path} within {} s", READY_WITHIN.as_secs());
                    break;
                }
            }
        }
        Err(format!("{trouble}; it printed:\n{}", std::fs::read_to_string(log).unwrap_or_default()))
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What it has printed so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn spawn(mut command: Command, port: u16, log: &Path) -> io::Result<Self> {
        let out = File::create(log)?;
        let err = out.try_clone()?;
        let child = command.process_group(0).stdin(Stdio::null()).stdout(out).stderr(err).spawn()?;
        Ok(Self { child, addr: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), log: log.to_owned() })
    }

    fn wait_ready(&mut self, path: &str) -> Result<(), Unready> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            let answers = http::get(self.addr, path).is_ok_and(|answer| answer.status == 200);
            // Asked after the answer, so that a stranger on the port is not taken for a server of ours that has ended.
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(Unready::Ended(status));
            }
            if answers {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(Unready::Silent);
            }
            thread::sleep(POLL);
        }
    }

    fn signal_group(&self, signal: &str) {
        // The id of the child is the id of its group too. The shell's own `kill`, because the program of that name is
        // not on every machine.
        let _ = Command::new("/bin/sh")
            .args(["-c", "kill -s \"$1\" -- \"-$2\"", "sh", signal, &self.child.id().to_string()])
            .stderr(Stdio::null())
            .status();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Once the child has been waited for, its id may belong to somebody else and must not be signalled.
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        self.signal_group("TERM");
        let deadline = Instant::now() + STOPPED_WITHIN;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() >= deadline {
                self.signal_group("KILL");
                let _ = self.child.wait();
                return;
            }
            thread::sleep(POLL);
        }
    }
}

enum Unready {
    Ended(ExitStatus),
    Silent,
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The file that `program` names on the search path `path`, if there is one.
pub(crate) fn on_path(program: &str, path: Option<&std::ffi::OsStr>) -> Option<PathBuf> {
    std::env::split_paths(path?).map(|folder| folder.join(program)).find(|file| file.is_file())
}
