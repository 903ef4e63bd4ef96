//! A client that sends one request on one connection and says what came back, if anything did.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Longer than any answer of the server may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn replayed(&self) -> bool {
        self.head.to_lowercase().contains("\r\nidempotent-replayed: true")
    }

    /// The last part of the type of a problem, with its status.
    pub(crate) fn problem(&self) -> (u16, String) {
        let kind = self.json()["type"].as_str().unwrap_or_default().to_owned();
        (self.status, kind.trim_start_matches("/problems/").to_owned())
    }
}

/// Sends a request; nothing comes back when the connection ends without an answer.
pub(crate) fn send(addr: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Option<Reply> {
    let mut head =
        format!("{method} {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    let mut stream = TcpStream::connect(addr).ok()?;
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout can be set");
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).ok()?;
    let mut bytes = Vec::new();
    // A reset after the answer is as good as its end; what counts is what arrived.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Reply { status, head: head.to_owned(), body: body.to_owned() })
}

/// Sends a keyed request.
pub(crate) fn keyed(
    addr: SocketAddr,
    method: &str,
    path: &str,
    key: &str,
    body: &str,
    headers: &[(&str, &str)],
) -> Option<Reply> {
    let key = format!("\"{key}\"");
    send(addr, method, path, &[&[("Idempotency-Key", key.as_str())], headers].concat(), body)
}

/// The body of a payment.
pub(crate) fn payment(reference: &str) -> String {
    format!(r#"{{"amount":100,"currency":"TRY","reference":"{reference}"}}"#)
}

/// Makes a payment.
pub(crate) fn pay(addr: SocketAddr, key: &str, reference: &str, headers: &[(&str, &str)]) -> Option<Reply> {
    keyed(addr, "POST", "/payments", key, &payment(reference), headers)
}

/// Does something in a thread of its own.
pub(crate) fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    thread::spawn(work)
}

/// How many rows a list has.
pub(crate) fn count(addr: SocketAddr, list: &str, reference: &str) -> usize {
    let reply = send(addr, "GET", &format!("{list}?reference={reference}"), &[], "").expect("an answer");
    reply.json()["items"].as_array().unwrap_or_else(|| panic!("no list: {reply:?}")).len()
}

/// Moves the clock forward.
pub(crate) fn advance(addr: SocketAddr, seconds: u32) {
    let reply = send(addr, "POST", "/test/clock", &[], &format!("{{\"seconds\":{seconds}}}"));
    assert_eq!(reply.expect("an answer").status, 200);
}

/// Looks again and again until something is so.
///
/// # Panics
/// When it never comes to be so.
pub(crate) fn until(what: &str, so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(40);
    while !so() {
        assert!(Instant::now() < deadline, "it never came to be so: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
