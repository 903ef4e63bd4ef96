//! A few lines of HTTP/1.1 on one short-lived connection: enough to see whether a server answers, and what.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(5);
const LONGEST_ANSWER: u64 = 1 << 20;

/// An answer, its head and body as text.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Gets `path` from the server at `addr`.
pub(crate) fn get(addr: SocketAddr, path: &str) -> io::Result<Answer> {
    exchange(addr, &format!("GET {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n"))
}

/// Posts `json` to `path` with the given further headers.
pub(crate) fn post(addr: SocketAddr, path: &str, headers: &[(&str, &str)], json: &str) -> io::Result<Answer> {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = json.len();
    exchange(
        addr,
        &format!(
            "POST {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n{headers}\r\n{json}"
        ),
    )
}

fn exchange(addr: SocketAddr, request: &str) -> io::Result<Answer> {
    let mut stream = TcpStream::connect_timeout(&addr, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    stream.take(LONGEST_ANSWER).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let garbage = || io::Error::new(io::ErrorKind::InvalidData, format!("not an HTTP answer: {text:?}"));
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(garbage)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(garbage)?;
    Ok(Answer { status, head: head.to_owned(), body: body.to_owned() })
}
