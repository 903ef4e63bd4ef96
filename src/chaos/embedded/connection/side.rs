//! One direction of a connection at work: from a socket through the toxics and past the triggers into the other socket.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;

use super::Setting;
use crate::chaos::Stream;
use crate::chaos::embedded::ledger::{Page, SocketEnd};
use crate::chaos::embedded::link::Link;
use crate::chaos::embedded::rng::Rng;
use crate::chaos::embedded::scan::Speech;
use crate::chaos::embedded::stage::{Chunk, Item};
use crate::chaos::embedded::tap::{Tap, Unanswered};
use crate::chaos::embedded::trigger::Trigger;

/// Largest read, as in Toxiproxy.
const CHUNK: usize = 32 * 1024;

/// One direction at work.
#[derive(Debug)]
pub(super) struct Side {
    stream: Stream,
    pub(super) link: Link,
    pub(super) tap: Tap,
    buffer: BytesMut,
}

/// What a turn has done.
#[derive(Default)]
pub(super) struct Turn {
    pub(super) moved: bool,
    /// When a toxic wants to be asked again.
    pub(super) wake: Option<Instant>,
    /// The trigger that has hit.
    pub(super) hit: Option<Arc<Trigger>>,
}

impl Side {
    pub(super) fn new(stream: Stream, setting: &Setting, now: Instant) -> Self {
        let (toxics, salt) = match stream {
            Stream::Upstream => (&setting.upstream_toxics, 1),
            Stream::Downstream => (&setting.downstream_toxics, 2),
        };
        let link = Link::new(toxics, now, Rng::seeded(setting.seed).fork(salt));
        Self { stream, link, tap: Tap::new(stream, setting.number, &setting.triggers), buffer: BytesMut::new() }
    }

    /// Moves what can be moved from `source` to `dest`, up to the first trigger that hits. An ended direction closes
    /// its destination fully.
    pub(super) fn turn(
        &mut self,
        cx: &mut Context<'_>,
        now: Instant,
        (source, dest): (&mut Option<TcpStream>, &mut Option<TcpStream>),
        (page, unanswered): (&Page, &mut Unanswered),
    ) -> Turn {
        let mut turn = Turn { wake: self.link.pump(now), ..Turn::default() };
        let (mut read_bytes, mut written_bytes) = (0, 0);
        loop {
            if let Some(hit) = self.tap.due(page, unanswered) {
                turn.moved = true;
                turn.hit = Some(hit);
                break;
            }
            if self.tap.is_held(page) {
                break;
            }
            let Some(item) = self.link.output().front_mut() else { break };
            let (Item::Data(chunk), Some(socket)) = (item, dest.as_mut()) else {
                self.end(source, dest, page, unanswered);
                turn.moved = true;
                break;
            };
            if chunk.bytes.is_empty() {
                self.link.output().pop_front();
                continue;
            }
            self.tap.scan(&chunk.bytes, unanswered);
            // A boundary at the very beginning comes before any byte.
            let allowed = self.tap.allowed(chunk.bytes.len());
            if allowed == 0 {
                turn.moved = true;
                continue;
            }
            match write(cx, socket, chunk.bytes.get(..allowed).unwrap_or_default()) {
                Poll::Pending => break,
                Poll::Ready(Ok(written)) => {
                    turn.moved = true;
                    written_bytes += written as u64;
                    self.tap.wrote(chunk.bytes.get(..written).unwrap_or_default(), page);
                    chunk.bytes.advance(written);
                    if chunk.bytes.is_empty() {
                        self.link.output().pop_front();
                    }
                }
                Poll::Ready(Err(_)) => {
                    *dest = None;
                    note_end(page, self.stream, SocketEnd::PeerReset, "broke off");
                    self.link.push(Item::End);
                    self.link.output().clear();
                    turn.moved = true;
                    break;
                }
            }
        }
        if turn.hit.is_none() && self.link.wants_input() {
            let read = source.as_mut().map_or(Poll::Ready(Ok(0)), |socket| read(cx, socket, &mut self.buffer));
            match read {
                Poll::Pending => {}
                // A reset of the peer is passed on like an orderly end, as Toxiproxy does.
                Poll::Ready(ended @ (Ok(0) | Err(_))) => {
                    let other = if self.stream == Stream::Upstream { Stream::Downstream } else { Stream::Upstream };
                    match ended {
                        _ if source.is_none() => {}
                        Ok(_) => note_end(page, other, SocketEnd::PeerClosed, "closed the connection"),
                        Err(_) => note_end(page, other, SocketEnd::PeerReset, "reset the connection"),
                    }
                    self.link.push(Item::End);
                    turn.moved = true;
                }
                Poll::Ready(Ok(count)) => {
                    read_bytes += count as u64;
                    let bytes = self.buffer.split().freeze();
                    self.link.push(Item::Data(Chunk { bytes, stamp: Instant::now() }));
                    turn.moved = true;
                }
            }
        }
        if read_bytes + written_bytes > 0 {
            let mut entry = page.write();
            let flow = if self.stream == Stream::Upstream { &mut entry.up } else { &mut entry.down };
            flow.add(read_bytes, written_bytes, now);
            if entry.speech == Speech::Unknown && self.stream == Stream::Upstream {
                entry.speech = self.tap.speech();
            }
        }
        turn
    }

    /// The end has come out of the chain, or there is nowhere left to write to.
    fn end(
        &mut self,
        source: &Option<TcpStream>,
        dest: &mut Option<TcpStream>,
        page: &Page,
        unanswered: &mut Unanswered,
    ) {
        self.tap.finish(page, unanswered);
        if let Some(toxic) = self.link.ended_by() {
            page.write().because(format!("toxic {toxic}"));
        }
        let how = if self.link.wants_reset() { SocketEnd::Reset } else { SocketEnd::Closed };
        if how == SocketEnd::Reset {
            for socket in source.iter().chain(dest.iter()) {
                // A socket that is already broken needs no reset.
                let _ = socket.set_zero_linger();
            }
        }
        if dest.take().is_some() {
            let mut entry = page.write();
            let end = if self.stream == Stream::Upstream { &mut entry.server } else { &mut entry.client };
            end.get_or_insert(how);
        }
        self.link.output().clear();
    }
}

/// Notes how the peer behind the destination of `stream` has ended its socket.
pub(super) fn note_end(page: &Page, stream: Stream, end: SocketEnd, what: &str) {
    let mut entry = page.write();
    let (who, seen) = match stream {
        Stream::Upstream => ("server", &mut entry.server),
        Stream::Downstream => ("client", &mut entry.client),
    };
    seen.get_or_insert(end);
    entry.because(format!("the {who} {what}"));
}

fn write(cx: &mut Context<'_>, socket: &mut TcpStream, bytes: &[u8]) -> Poll<io::Result<usize>> {
    Pin::new(socket).poll_write(cx, bytes)
}

fn read(cx: &mut Context<'_>, socket: &mut TcpStream, buffer: &mut BytesMut) -> Poll<io::Result<usize>> {
    // Small chunks share a block, so that many of them in a latency do not hold a block each.
    if buffer.capacity() < CHUNK / 8 {
        buffer.reserve(CHUNK);
    }
    // Polled as what `AsyncRead` gives, which knows that a short read has emptied the socket.
    let mut limited = buffer.limit(CHUNK);
    pin!(socket.read_buf(&mut limited)).poll(cx)
}
