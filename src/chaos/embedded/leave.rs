//! The end of a connection that was cut on purpose: each side in its own way.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::ledger::{Page, SocketEnd};
use super::scan::{Mark, Request, Scanner};
use super::trigger::{Cut, Ending};
use crate::chaos::Stream;

/// Longest wait for the confirmation of sent bytes, and for a second connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the system is asked whether sent bytes are confirmed.
const ASK: Duration = Duration::from_millis(2);
/// Longest wait for the answer to a request that was sent a second time.
pub(super) const ANSWER: Duration = Duration::from_secs(30);

/// Ends the client's side.
pub(super) async fn client(socket: TcpStream, cut: Cut, page: &Page) {
    let end = match cut.client {
        Ending::Silent | Ending::Keep => swallow(&socket).await,
        Ending::Close => close(&socket),
        Ending::Reset => reset(&socket, cut.delivered, page).await,
    };
    // The page is written after the socket is closed, so that what it says has happened.
    drop(socket);
    page.write().client = Some(end);
    page.tell();
}

/// Looks for the end of an answer in what a server gives.
#[derive(Debug)]
pub(super) struct Answering {
    pub(super) scanner: Scanner,
    pub(super) marks: VecDeque<(u64, Mark)>,
}

impl Answering {
    /// From the beginning of a connection.
    pub(super) fn fresh() -> Self {
        Self { scanner: Scanner::new(Stream::Downstream), marks: VecDeque::new() }
    }

    pub(super) fn feed(&mut self, bytes: &[u8], asked: Option<&Request>) {
        self.scanner.feed(bytes, asked, &mut self.marks);
    }

    fn is_whole(&self) -> bool {
        self.marks.iter().any(|(_, mark)| *mark == Mark::End)
    }
}

/// Ends the server's side. `asked` is the request whose answer is still to come.
pub(super) async fn server(socket: TcpStream, cut: Cut, page: &Page, asked: Option<&Request>, answering: Answering) {
    let end = match cut.server {
        Ending::Silent | Ending::Keep => {
            let read = tokio::time::timeout(cut.patience, answer(&socket, asked, answering)).await.unwrap_or_default();
            let mut entry = page.write();
            entry.down.add(read.bytes, 0, Instant::now());
            entry.drained += u64::from(read.whole);
            read.end.unwrap_or_else(|| close(&socket))
        }
        Ending::Close => close(&socket),
        Ending::Reset => reset(&socket, cut.delivered, page).await,
    };
    drop(socket);
    page.write().server = Some(end);
    page.tell();
}

/// Takes what has come already, so that closing is in order and no reset.
fn close(socket: &TcpStream) -> SocketEnd {
    let mut waste = [0; 16 * 1024];
    // Bounded, for a peer that sends faster than it is read.
    for _ in 0..1024 {
        match socket.try_read(&mut waste) {
            Ok(1..) => {}
            _ => break,
        }
    }
    SocketEnd::Closed
}

async fn reset(socket: &TcpStream, delivered: bool, page: &Page) -> SocketEnd {
    if delivered && !confirmed(socket).await {
        page.write().because("the delivery before the reset was not confirmed");
    }
    // A socket that is already broken needs no reset.
    let _ = socket.set_zero_linger();
    SocketEnd::Reset
}

/// Reads until the peer leaves.
async fn swallow(socket: &TcpStream) -> SocketEnd {
    let mut waste = [0; 16 * 1024];
    loop {
        if socket.readable().await.is_err() {
            return SocketEnd::PeerReset;
        }
        match socket.try_read(&mut waste) {
            Ok(0) => return SocketEnd::PeerClosed,
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return SocketEnd::PeerReset,
            _ => {}
        }
    }
}

/// Waits until the system of the peer has confirmed every byte.
async fn confirmed(socket: &TcpStream) -> bool {
    let (Ok(local), Ok(peer)) = (socket.local_addr(), socket.peer_addr()) else { return false };
    let deadline = Instant::now() + PATIENCE;
    loop {
        match unconfirmed(local, peer) {
            Some(0) => return true,
            Some(_) if Instant::now() < deadline => tokio::time::sleep(ASK).await,
            _ => return false,
        }
    }
}

/// Bytes sent and not yet confirmed, as Linux tells.
fn unconfirmed(local: SocketAddr, peer: SocketAddr) -> Option<u64> {
    let table = std::fs::read_to_string(if local.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" }).ok()?;
    let (local, peer) = (kernel_text(local), kernel_text(peer));
    table.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        if words.next()? != local || words.next()? != peer {
            return None;
        }
        u64::from_str_radix(words.nth(1)?.split(':').next()?, 16).ok()
    })
}

/// An address as the tables of the kernel write it: words in the byte order of the machine.
fn kernel_text(addr: SocketAddr) -> String {
    let octets = match addr {
        SocketAddr::V4(addr) => addr.ip().octets().to_vec(),
        SocketAddr::V6(addr) => addr.ip().octets().to_vec(),
    };
    let word =
        |four: &[u8]| four.try_into().map(u32::from_ne_bytes).map_or(String::new(), |word| format!("{word:08X}"));
    format!("{}:{:04X}", octets.chunks(4).map(word).collect::<String>(), addr.port())
}

/// What a server gave to nobody.
#[derive(Debug, Default)]
struct Read {
    bytes: u64,
    /// A whole answer came.
    whole: bool,
    status: Option<u16>,
    /// How the server ended the connection, if it did.
    end: Option<SocketEnd>,
}

/// Reads one whole answer, or to the end of the connection.
async fn answer(socket: &TcpStream, asked: Option<&Request>, mut answering: Answering) -> Read {
    let mut buffer = vec![0; 16 * 1024];
    let mut head = Vec::new();
    let mut read = Read { whole: answering.is_whole(), ..Read::default() };
    while !read.whole && read.end.is_none() {
        let got = match socket.readable().await {
            Ok(()) => socket.try_read(&mut buffer),
            Err(error) => Err(error),
        };
        match got {
            Ok(0) => {
                answering.scanner.finish(&mut answering.marks);
                read.end = Some(SocketEnd::PeerClosed);
            }
            Ok(count) => {
                let bytes = buffer.get(..count).unwrap_or_default();
                read.bytes += count as u64;
                head.extend_from_slice(bytes.get(..count.min(12usize.saturating_sub(head.len()))).unwrap_or_default());
                answering.feed(bytes, asked);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => read.end = Some(SocketEnd::PeerReset),
        }
        read.whole = answering.is_whole();
    }
    read.status = head.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    read
}

/// Opens a second connection and sends the request on it.
pub(super) async fn resend(upstream: String, request: Vec<u8>) -> io::Result<TcpStream> {
    let late = || io::Error::new(io::ErrorKind::TimedOut, "no second connection within 10 seconds");
    let sent = async {
        let mut socket = TcpStream::connect(upstream).await?;
        socket.set_nodelay(true)?;
        socket.write_all(&request).await?;
        Ok(socket)
    };
    tokio::time::timeout(PATIENCE, sent).await.unwrap_or_else(|_| Err(late()))
}

/// Sends a request a second time and tells what came of it.
pub(super) async fn resend_for_nobody(upstream: String, request: Vec<u8>, asked: Option<Request>) -> Value {
    let socket = match resend(upstream, request).await {
        Ok(socket) => socket,
        Err(error) => return json!({"sent": false, "why": error.to_string()}),
    };
    let read =
        tokio::time::timeout(ANSWER, answer(&socket, asked.as_ref(), Answering::fresh())).await.unwrap_or_default();
    json!({"sent": true, "status": read.status, "bytes": read.bytes, "whole": read.whole})
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tokio::io::AsyncReadExt;

    #[test]
    #[cfg(target_endian = "little")]
    fn addresses_are_found_in_the_tables_of_the_kernel() {
        assert_eq!(kernel_text("127.0.0.1:8080".parse().unwrap()), "0100007F:1F90");
        assert_eq!(kernel_text("[::1]:1".parse().unwrap()), "00000000000000000000000001000000:0001");
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn sent_bytes_are_unconfirmed_until_the_peer_has_them() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut peer, _) = listener.accept().await.unwrap();
        assert!(confirmed(&socket).await);
        // More than the peer's system takes while nobody reads.
        while socket.try_write(&[0; 65536]).is_ok() {}
        let (local, remote) = (socket.local_addr().unwrap(), socket.peer_addr().unwrap());
        assert!(unconfirmed(local, remote).unwrap() > 0);
        let reading = async {
            let mut buffer = vec![0; 65536];
            while peer.read(&mut buffer).await.unwrap() > 0 {}
        };
        tokio::select! {
            () = reading => {}
            confirmed = confirmed(&socket) => assert!(confirmed),
        }
    }
}
