//! One proxied connection: two sockets, a [`Link`] for each direction, and one task that serves both.
//!
//! The task looks at control messages first and never waits for anything else alone, so a change of toxics is
//! applied at once even when a peer does not read, and its sender knows that no later byte escapes it.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::{Buf, BufMut, BytesMut};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::Sleep;

use super::definition::Definition;
use super::link::{Change, Link};
use super::stage::{Chunk, Item};
use crate::chaos::Stream;

/// Largest read, as in Toxiproxy.
const CHUNK: usize = 32 * 1024;
/// Turns before the task lets others run.
const TURNS: usize = 32;

/// A message to a live connection. The sender waits until every clone of `done` is dropped.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) order: Order,
    pub(super) done: mpsc::Sender<()>,
}

/// What a connection is told to do.
#[derive(Clone, Debug)]
pub(super) enum Order {
    Change(Stream, Change),
    Close,
}

/// One direction at work.
#[derive(Debug)]
struct Side {
    link: Link,
    buffer: BytesMut,
}

impl Side {
    fn new(toxics: &[Definition], now: Instant) -> Self {
        Self { link: Link::new(toxics, now), buffer: BytesMut::new() }
    }

    /// Moves what can be moved from `source` to `dest`. An ended direction closes its destination fully.
    /// Gives whether anything happened, and when a toxic wants to be asked again.
    fn turn(
        &mut self,
        cx: &mut Context<'_>,
        now: Instant,
        source: &Option<TcpStream>,
        dest: &mut Option<TcpStream>,
    ) -> (bool, Option<Instant>) {
        let mut moved = false;
        let wake = self.link.pump(now);
        while let Some(item) = self.link.output().front_mut() {
            let (Item::Data(chunk), Some(socket)) = (item, dest.as_ref()) else {
                if self.link.wants_reset() {
                    for socket in source.iter().chain(dest.iter()) {
                        // A socket that is already broken needs no reset.
                        let _ = socket.set_zero_linger();
                    }
                }
                *dest = None;
                self.link.output().clear();
                moved = true;
                break;
            };
            match write(cx, socket, &chunk.bytes) {
                Poll::Pending => break,
                Poll::Ready(Ok(written)) => {
                    moved = true;
                    chunk.bytes.advance(written);
                    if chunk.bytes.is_empty() {
                        self.link.output().pop_front();
                    }
                }
                Poll::Ready(Err(_)) => {
                    *dest = None;
                    self.link.push(Item::End);
                    self.link.output().clear();
                    moved = true;
                    break;
                }
            }
        }
        if self.link.wants_input() {
            let read = source.as_ref().map_or(Poll::Ready(Ok(0)), |socket| read(cx, socket, &mut self.buffer));
            match read {
                Poll::Pending => {}
                // A reset of the peer is passed on like an orderly end, as Toxiproxy does.
                Poll::Ready(Ok(0) | Err(_)) => {
                    self.link.push(Item::End);
                    moved = true;
                }
                Poll::Ready(Ok(_)) => {
                    let bytes = self.buffer.split().freeze();
                    self.link.push(Item::Data(Chunk { bytes, stamp: Instant::now() }));
                    moved = true;
                }
            }
        }
        (moved, wake)
    }
}

fn write(cx: &mut Context<'_>, socket: &TcpStream, bytes: &[u8]) -> Poll<io::Result<usize>> {
    loop {
        std::task::ready!(socket.poll_write_ready(cx))?;
        match socket.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return Poll::Ready(done),
        }
    }
}

fn read(cx: &mut Context<'_>, socket: &TcpStream, buffer: &mut BytesMut) -> Poll<io::Result<usize>> {
    // Small chunks share a block, so that many of them in a latency do not hold a block each.
    if buffer.capacity() < CHUNK / 8 {
        buffer.reserve(CHUNK);
    }
    loop {
        std::task::ready!(socket.poll_read_ready(cx))?;
        match socket.try_read_buf(&mut (&mut *buffer).limit(CHUNK)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return Poll::Ready(done),
        }
    }
}

/// A connection from the client's connect to the end of both sockets.
#[derive(Debug)]
pub(super) struct Connection {
    client: Option<TcpStream>,
    server: Option<TcpStream>,
    up: Side,
    down: Side,
    control: mpsc::UnboundedReceiver<Control>,
}

impl Connection {
    pub(super) fn new(
        client: TcpStream,
        upstream_toxics: &[Definition],
        downstream_toxics: &[Definition],
        control: mpsc::UnboundedReceiver<Control>,
    ) -> Self {
        let now = Instant::now();
        let (up, down) = (Side::new(upstream_toxics, now), Side::new(downstream_toxics, now));
        Self { client: Some(client), server: None, up, down, control }
    }

    /// Dials the upstream and serves until both sockets are closed or the proxy says so.
    pub(super) async fn run(mut self, upstream: String) {
        let Some(server) = self.dial(upstream).await else { return };
        for socket in self.client.iter().chain([&server]) {
            // Without this a small write may wait for an acknowledgement; the proxy still works.
            let _ = socket.set_nodelay(true);
            if self.up.link.has_reset() || self.down.link.has_reset() {
                let _ = socket.set_zero_linger();
            }
        }
        self.server = Some(server);
        let now = Instant::now();
        self.up.link.start(now);
        self.down.link.start(now);
        let mut timer = Box::pin(tokio::time::sleep(std::time::Duration::ZERO));
        poll_fn(|cx| self.poll(cx, timer.as_mut())).await;
    }

    async fn dial(&mut self, upstream: String) -> Option<TcpStream> {
        let mut dialled = std::pin::pin!(TcpStream::connect(upstream));
        loop {
            tokio::select! {
                biased;
                message = self.control.recv() => {
                    if !self.obey(message) {
                        return None;
                    }
                }
                result = &mut dialled => return result.ok(),
            }
        }
    }

    /// Follows an order; false when the connection is over. The order counts as done only after that.
    fn obey(&mut self, message: Option<Control>) -> bool {
        let Some(Control { order, done }) = message else { return self.close() };
        let goes_on = match order {
            Order::Change(stream, change) => {
                let side = if stream == Stream::Upstream { &mut self.up } else { &mut self.down };
                side.link.change(change, Instant::now());
                true
            }
            Order::Close => self.close(),
        };
        drop(done);
        goes_on
    }

    fn close(&mut self) -> bool {
        self.client = None;
        self.server = None;
        false
    }

    fn poll(&mut self, cx: &mut Context<'_>, mut timer: Pin<&mut Sleep>) -> Poll<()> {
        for _ in 0..TURNS {
            while let Poll::Ready(message) = self.control.poll_recv(cx) {
                if !self.obey(message) {
                    return Poll::Ready(());
                }
            }
            let now = Instant::now();
            let (moved_up, wake_up) = self.up.turn(cx, now, &self.client, &mut self.server);
            let (moved_down, wake_down) = self.down.turn(cx, now, &self.server, &mut self.client);
            if self.client.is_none() && self.server.is_none() {
                return Poll::Ready(());
            }
            if moved_up || moved_down {
                continue;
            }
            let Some(wake) = [wake_up, wake_down].into_iter().flatten().min() else { return Poll::Pending };
            let wake = tokio::time::Instant::from_std(wake);
            if timer.deadline() != wake {
                timer.as_mut().reset(wake);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
