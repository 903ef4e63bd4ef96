//! Targets that refuse, reset, hang, answer garbage or never end: each run ends in time with the right exit code and
//! with reports of everything that was learnt.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Command, Output},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use serde_json::Value;

/// A server that does one thing to every connection, in threads that end with it.
struct Hostile {
    addr: SocketAddr,
    over: Arc<AtomicBool>,
    listener: Option<JoinHandle<()>>,
}

impl Hostile {
    fn start(serve: fn(TcpStream, &AtomicBool)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let mut served = Vec::new();
            for stream in listener.incoming() {
                if seen.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
                stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
                let seen = Arc::clone(&seen);
                served.push(std::thread::spawn(move || serve(stream, &seen)));
            }
            for thread in served {
                thread.join().unwrap();
            }
        });
        Self { addr, over, listener: Some(thread) }
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.addr);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

/// Reads a request's head and the rest of what is there.
fn request(stream: &mut TcpStream) {
    let mut buffer = [0; 16 * 1024];
    let _ = stream.read(&mut buffer);
}

fn write_until_closed(stream: &mut TcpStream, piece: &[u8], over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) && stream.write_all(piece).is_ok() {}
}

fn run(folder: &Path, addr: SocketAddr, arguments: &[&str]) -> Output {
    let target = format!(
        "target: hostile\nbase_url: http://{addr}\noperations:\n  create:\n    request: POST /payments\n    \
         json: {{ amount: 1, reference: \"${{reference}}\" }}\n    \
         effects: {{ get: \"/payments?reference=${{reference}}\", count: \"$.items[*]\" }}\n\
         limits: {{ timeout: 300ms }}\n"
    );
    std::fs::write(folder.join("target.yaml"), target).unwrap();
    Command::new(env!("CARGO_BIN_EXE_idemproof"))
        .args(["run", "--target", "target.yaml", "--wait-for-target", "1s"])
        .args(arguments)
        .current_dir(folder)
        .env("CI", "true")
        .env_remove("TOXIPROXY_URL")
        .output()
        .unwrap()
}

/// Runs a few cases against the server: none of them may pass or fail, and everything must be on record.
fn says_nothing(name: &str, serve: fn(TcpStream, &AtomicBool)) {
    let folder = tempfile::tempdir().unwrap();
    let server = Hostile::start(serve);
    let output = run(
        folder.path(),
        server.addr,
        &["--fail-on", "inconclusive", "replay/sequential-retries", "replay/two-keys-are-two-intents"],
    );
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(3), "{name}: {said}");
    assert!(!said.contains("panicked"), "{name}: {said}");
    let report: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("reports/report.json")).unwrap()).unwrap();
    let cases = report["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2, "{name}");
    for case in cases {
        assert_eq!(case["verdict"], "inconclusive", "{name}: {case:#}");
        assert!(!case["reason"]["remedy"].as_str().unwrap().is_empty());
        assert!(!case["history"]["attempts"].as_array().unwrap().is_empty(), "{name}: what was sent is on record");
    }
}

#[test]
fn accepts_and_never_answers() {
    says_nothing("silent", |mut stream, _| {
        request(&mut stream);
        let _ = stream.read(&mut [0; 1]);
    });
}

#[test]
fn closes_at_once() {
    says_nothing("closes", |_, _| {});
}

#[test]
fn answers_garbage() {
    says_nothing("garbage", |mut stream, _| {
        request(&mut stream);
        let _ = stream.write_all(b"\x00\xffSSH-2.0-nonsense\r\n\r\n");
    });
}

#[test]
fn never_ends_its_body() {
    says_nothing("endless body", |mut stream, over| {
        request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n\r\n");
        write_until_closed(&mut stream, &[b'x'; 64 * 1024], over);
    });
}

#[test]
fn never_ends_its_head() {
    says_nothing("endless head", |mut stream, over| {
        request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 201 Created\r\n");
        write_until_closed(&mut stream, b"X-Filler: 0123456789012345678901234567890123456789\r\n", over);
    });
}

#[test]
fn answers_100_for_ever() {
    says_nothing("1xx", |mut stream, over| {
        request(&mut stream);
        write_until_closed(&mut stream, b"HTTP/1.1 100 Continue\r\n\r\n", over);
    });
}

#[test]
fn answers_always_503() {
    says_nothing("503", |mut stream, _| {
        request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    });
}

#[test]
fn sends_everything_elsewhere() {
    says_nothing("redirect", |mut stream, _| {
        request(&mut stream);
        let _ = stream.write_all(
            b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        );
    });
}

#[test]
fn a_target_that_is_not_there_is_a_usage_error() {
    let folder = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = run(folder.path(), free, &["replay"]);
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot be reached"), "{said}");
}
