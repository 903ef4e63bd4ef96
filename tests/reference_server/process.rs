//! The server as a process: signals, and files that cannot be used.

use crate::client::{aside, count, keyed, pay, payment, send, until};
use libtest_mimic::{Failed, Trial};
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("SIGTERM lets work in flight finish", || stops("TERM")),
        Trial::test("Ctrl-C lets work in flight finish", || stops("INT")),
        Trial::test("work that does not finish is released", releases),
        Trial::test("a second signal ends it at once", second_signal),
        Trial::test("a killed server goes on where it was", killed),
        Trial::test("a port that is taken is named", port_taken),
        Trial::test("a file that is locked, read-only, corrupt or foreign is named", files),
        Trial::test("a file that breaks in the middle refuses and does not panic", breaks),
        Trial::test("bodies too large and broken HTTP are refused by every node", bad_requests),
    ]
}

/// `idemproof serve`, killed when dropped.
struct Process {
    child: Child,
    addr: SocketAddr,
}

fn command(store: &str, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_idemproof"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--store", store]).args(more);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn serve(store: &str, more: &[&str]) -> Process {
    let mut child = command(store, more).spawn().expect("the program runs");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    let addr = line.split("http://").nth(1).and_then(|rest| rest.split(' ').next()).and_then(|addr| addr.parse().ok());
    Process { child, addr: addr.unwrap_or_else(|| panic!("no address in {line:?}")) }
}

impl Process {
    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("/bin/sh").args(["-c", "kill -s \"$1\" \"$2\"", "sh", signal, &id]).status();
        assert!(sent.expect("a shell").success());
    }

    fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                return status;
            }
            assert!(Instant::now() < deadline, "the server does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn errors(&mut self) -> String {
        let mut text = String::new();
        let _ = self.child.stderr.take().expect("its errors").read_to_string(&mut text);
        text
    }

    fn busy(&self) -> bool {
        send(self.addr, "GET", "/health", &[], "").is_some_and(|reply| reply.json()["owners"] == 1)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn file() -> (TempDir, String) {
    let folder = TempDir::new().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("store.db").display());
    (folder, store)
}

fn stops(signal: &str) -> Result<(), Failed> {
    let (_folder, store) = file();
    let mut server = serve(&store, &["--nodes", "2"]);
    let addr = server.addr;
    let slow = aside(move || pay(addr, "k", "r", &[("X-Test-Delay-Ms", "1500")]).expect("an answer"));
    until("it is at work", || server.busy());
    server.signal(signal);
    assert_eq!(slow.join().expect("no panic").status, 201);
    assert_eq!(server.ended().code(), Some(0));
    assert!(!server.errors().contains("panicked"));
    let server = serve(&store, &[]);
    assert!(pay(server.addr, "k", "r", &[]).expect("an answer").replayed());
    assert_eq!(count(server.addr, "/payments", "r"), 1);
    Ok(())
}

fn releases() -> Result<(), Failed> {
    let (_folder, store) = file();
    let mut server = serve(&store, &[]);
    let addr = server.addr;
    let endless = aside(move || pay(addr, "k", "r", &[("X-Test-Delay-Ms", "60000")]).expect("an answer"));
    until("it is at work", || server.busy());
    server.signal("TERM");
    assert_eq!(endless.join().expect("no panic").problem(), (503, "stopping".into()));
    assert_eq!(server.ended().code(), Some(0));
    let server = serve(&store, &[]);
    let retry = pay(server.addr, "k", "r", &[]).expect("an answer");
    assert_eq!((retry.status, retry.replayed(), count(server.addr, "/payments", "r")), (201, false, 1));
    Ok(())
}

fn second_signal() -> Result<(), Failed> {
    let mut server = serve("memory", &[]);
    let addr = server.addr;
    let endless = aside(move || pay(addr, "k", "r", &[("X-Test-Delay-Ms", "60000")]));
    until("it is at work", || server.busy());
    let begun = Instant::now();
    server.signal("INT");
    until("it no longer listens", || std::net::TcpStream::connect(addr).is_err());
    server.signal("INT");
    assert_eq!(server.ended().code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(4), "the grace for work in flight is 5 s");
    assert_eq!(endless.join().expect("no panic"), None);
    Ok(())
}

fn killed() -> Result<(), Failed> {
    let (_folder, store) = file();
    let body = payment("r");
    let slow = [("X-Test-Provider-Delay-Ms", "4000")];
    let lease = ["--lease", "2s"];
    let server = serve(&store, &lease);
    let addr = server.addr;
    let lost = aside({
        let body = body.clone();
        move || keyed(addr, "POST", "/charges", "k", &body, &slow)
    });
    until("the first phase has committed", || count(addr, "/payments", "r") == 1);
    server.signal("KILL");
    drop(server);
    assert_eq!(lost.join().expect("no panic"), None);
    let server = serve(&store, &lease);
    let charge = || keyed(server.addr, "POST", "/charges", "k", &body, &[]).expect("an answer");
    until("the lease of the dead owner is over", || charge().status == 201);
    assert!(charge().replayed());
    let counts = ["/payments", "/test/provider/charges"].map(|list| count(server.addr, list, "r"));
    assert_eq!(counts, [1, 1]);
    until("the notification has come", || count(server.addr, "/test/notifications", "r") == 1);
    Ok(())
}

/// Runs the program, which must refuse to start, and tells what it says.
fn refusal(mut command: Command) -> String {
    let output = command.output().expect("the program runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.starts_with("error: ") && !errors.contains("panicked"), "{errors}");
    errors
}

fn port_taken() -> Result<(), Failed> {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let addr = taken.local_addr()?.to_string();
    for nodes in ["1", "3"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_idemproof"));
        command.args(["serve", "--listen", &addr, "--nodes", nodes]);
        assert!(refusal(command).contains(&format!("{addr} is in use by another program")));
    }
    // A node's port that is taken is named too.
    let before = taken.local_addr()?.port() - 1;
    let mut command = Command::new(env!("CARGO_BIN_EXE_idemproof"));
    command.args(["serve", "--listen", &format!("127.0.0.1:{before}"), "--nodes", "2"]);
    assert!(refusal(command).contains("is in use by another program"));
    Ok(())
}

fn files() -> Result<(), Failed> {
    let (folder, store) = file();
    let path = folder.path().join("store.db");
    drop(serve(&store, &[]));
    let holder = rusqlite::Connection::open(&path)?;
    holder.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; CREATE TABLE x (y); ")?;
    assert!(refusal(command(&store, &[])).contains("is locked by another process"));
    drop(holder);
    read_only(&folder, &path, &store)?;
    let original = fs::read(&path)?;
    fs::write(&path, vec![7; original.len()])?;
    let _ = fs::remove_file(folder.path().join("store.db-wal"));
    assert!(refusal(command(&store, &[])).contains("is not an SQLite database or is damaged"));
    let foreign = folder.path().join("foreign.db");
    rusqlite::Connection::open(&foreign)?.execute_batch("CREATE TABLE payments (mine)")?;
    assert!(refusal(command(&format!("sqlite:{}", foreign.display()), &[])).contains("belongs to another program"));
    Ok(())
}

/// Root may write anywhere, so as root the program runs as nobody here.
fn read_only(folder: &TempDir, path: &Path, store: &str) -> Result<(), Failed> {
    const NOBODY: u32 = 65_534;
    for file in ["store.db-wal", "store.db-shm"] {
        let _ = fs::remove_file(folder.path().join(file));
    }
    fs::set_permissions(path, Permissions::from_mode(0o444))?;
    fs::set_permissions(folder.path(), Permissions::from_mode(0o555))?;
    let mut command = command(store, &[]);
    if fs::metadata(path)?.uid() == 0 {
        // The program itself may lie where nobody else may look.
        let copy = TempDir::new()?;
        fs::set_permissions(copy.path(), Permissions::from_mode(0o755))?;
        let program = copy.path().join("idemproof");
        fs::copy(env!("CARGO_BIN_EXE_idemproof"), &program)?;
        chown(folder.path(), Some(NOBODY), Some(NOBODY))?;
        command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", store]).uid(NOBODY).gid(NOBODY);
        assert!(refusal(command).contains("is read-only"));
    } else {
        assert!(refusal(command).contains("is read-only"));
    }
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
    fs::set_permissions(path, Permissions::from_mode(0o644))?;
    Ok(())
}

fn breaks() -> Result<(), Failed> {
    let (folder, store) = file();
    let mut server = serve(&store, &[]);
    assert_eq!(pay(server.addr, "k", "r", &[]).expect("an answer").status, 201);
    for file in ["store.db", "store.db-wal"] {
        let mut file = fs::File::options().write(true).open(folder.path().join(file))?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&vec![0x5a; usize::try_from(length)?])?;
    }
    for n in 0..5 {
        let reply = pay(server.addr, &format!("n{n}"), "r", &[]).expect("an answer");
        assert!(reply.status == 201 || reply.problem() == (503, "store-unavailable".into()), "{reply:?}");
    }
    assert_eq!(send(server.addr, "GET", "/health", &[], "").expect("an answer").status, 200);
    server.signal("TERM");
    assert_eq!(server.ended().code(), Some(0));
    assert!(!server.errors().contains("panicked"));
    Ok(())
}

fn bad_requests() -> Result<(), Failed> {
    let mut server = serve("memory", &["--nodes", "2"]);
    for _ in 0..4 {
        let large = format!(r#"{{"pad":"{}"}}"#, "x".repeat(2 * 1024 * 1024));
        let refused = keyed(server.addr, "POST", "/payments", "k", &large, &[]).expect("an answer");
        assert_eq!(refused.problem(), (413, "body-too-large".into()));
        let mut stream = std::net::TcpStream::connect(server.addr)?;
        stream.write_all(b"\0\xff nonsense\r\n\r\n")?;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(pay(server.addr, "k", "r", &[]).expect("an answer").status, 201);
    server.signal("TERM");
    assert_eq!(server.ended().code(), Some(0));
    assert!(!server.errors().contains("panicked"));
    Ok(())
}
