//! One proxied connection: two sockets, a [`Side`] for each direction, and one task that serves both.
//!
//! The task looks at control messages first and never waits for anything else alone, so a change of toxics is
//! applied at once even when a peer does not read, and its sender knows that no later byte escapes it.

mod side;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Sleep;

use super::definition::Definition;
use super::dial::Dial;
use super::leave::{self, Answering};
use super::ledger::{Page, SocketEnd};
use super::link::Change;
use super::tap::Unanswered;
use super::trigger::{Cut, Deed, Ending, Trigger};
use crate::chaos::Stream;
use side::{Side, note_end};

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
    Triggers(Arc<[Arc<Trigger>]>),
    Cut(Cut),
    Close,
}

/// What a connection starts with.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) number: u64,
    pub(super) upstream: String,
    pub(super) dial: Dial,
    pub(super) upstream_toxics: Vec<Definition>,
    pub(super) downstream_toxics: Vec<Definition>,
    pub(super) triggers: Arc<[Arc<Trigger>]>,
    /// Where the randomness of this connection comes from.
    pub(super) seed: u64,
}

/// Waits until the client has left. Bytes that it has sent stay where they are.
async fn hang_up(client: &Option<TcpStream>) {
    let Some(client) = client else { return };
    while client.ready(tokio::io::Interest::READABLE).await.is_ok_and(|ready| !ready.is_read_closed()) {
        // Unread bytes keep it readable, so that only time can tell.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A second connection to the upstream that takes the place of the first.
type Redial = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;

/// A connection from the client's connect to the end of both sockets.
pub(super) struct Connection {
    client: Option<TcpStream>,
    server: Option<TcpStream>,
    up: Side,
    down: Side,
    unanswered: Unanswered,
    page: Page,
    upstream: String,
    dial: Dial,
    control: mpsc::UnboundedReceiver<Control>,
    /// A cut that waits for its time.
    cutting: Option<(Instant, Cut)>,
    redial: Option<Redial>,
    /// Requests that are sent a second time, and servers that are left to finish.
    aside: JoinSet<()>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("upstream", &self.upstream).finish_non_exhaustive()
    }
}

/// What has ended a connection.
#[derive(Clone, Copy)]
enum Over {
    /// Both sockets are closed.
    Closed,
    Cut(Cut),
}

impl Connection {
    pub(super) fn new(
        client: TcpStream,
        setting: Setting,
        page: Page,
        control: mpsc::UnboundedReceiver<Control>,
    ) -> Self {
        let now = Instant::now();
        Self {
            client: Some(client),
            server: None,
            up: Side::new(Stream::Upstream, &setting, now),
            down: Side::new(Stream::Downstream, &setting, now),
            unanswered: Unanswered::new(),
            page,
            upstream: setting.upstream,
            dial: setting.dial,
            control,
            cutting: None,
            redial: None,
            aside: JoinSet::new(),
        }
    }

    /// Dials the upstream and serves until both sockets are closed or the proxy says so.
    pub(super) async fn run(mut self) {
        let Some(server) = self.connect().await else { return };
        for socket in self.client.iter().chain([&server]) {
            // Without this a small write may wait for an acknowledgement; the proxy still works.
            let _ = socket.set_nodelay(true);
            if self.up.link.has_reset() || self.down.link.has_reset() {
                let _ = socket.set_zero_linger();
            }
        }
        self.server = Some(server);
        let now = Instant::now();
        self.page.write().dialled = Some(now);
        self.page.tell();
        self.up.link.start(now);
        self.down.link.start(now);
        let mut timer = Box::pin(tokio::time::sleep(Duration::ZERO));
        let over = poll_fn(|cx| self.poll(cx, timer.as_mut())).await;
        self.leave(over).await;
    }

    async fn connect(&mut self) -> Option<TcpStream> {
        let mut dialled = std::pin::pin!(self.dial.connect(self.upstream.clone()));
        let watched = self.dial.may_wait_for_ever();
        loop {
            tokio::select! {
                biased;
                message = self.control.recv() => {
                    let Control { order, done } = message?;
                    let now = Instant::now();
                    match order {
                        Order::Change(Stream::Upstream, change) => self.up.link.change(change, now),
                        Order::Change(Stream::Downstream, change) => self.down.link.change(change, now),
                        Order::Triggers(triggers) => {
                            self.up.tap.arm(&triggers);
                            self.down.tap.arm(&triggers);
                        }
                        Order::Close => {
                            self.close();
                            return None;
                        }
                        Order::Cut(cut) => {
                            self.page.write().because("killed");
                            if let Some(client) = self.client.take() {
                                leave::client(client, cut, &self.page).await;
                            }
                            return None;
                        }
                    }
                    drop(done);
                }
                () = hang_up(&self.client), if watched => {
                    note_end(&self.page, Stream::Downstream, SocketEnd::PeerClosed, "closed the connection");
                    return None;
                }
                result = &mut dialled => {
                    match result {
                        Ok(server) => return Some(server),
                        Err(error) => {
                            let mut entry = self.page.write();
                            entry.because(format!("the upstream cannot be reached: {error}"));
                            entry.client = Some(SocketEnd::Closed);
                            return None;
                        }
                    }
                }
            }
        }
    }

    /// Follows an order. The order counts as done only after that.
    fn obey(&mut self, message: Option<Control>) -> Option<Over> {
        let Some(Control { order, done }) = message else {
            self.close();
            return Some(Over::Closed);
        };
        let over = match order {
            Order::Change(stream, change) => {
                let side = if stream == Stream::Upstream { &mut self.up } else { &mut self.down };
                side.link.change(change, Instant::now());
                None
            }
            Order::Triggers(triggers) => {
                self.up.tap.arm(&triggers);
                self.down.tap.arm(&triggers);
                None
            }
            Order::Cut(cut) => {
                self.page.write().because("killed");
                Some(Over::Cut(cut))
            }
            Order::Close => {
                self.close();
                Some(Over::Closed)
            }
        };
        drop(done);
        over
    }

    fn close(&mut self) {
        let ends = (self.client.take().is_some(), self.server.take().is_some());
        let mut entry = self.page.write();
        entry.because("the proxy was closed");
        if ends.0 {
            entry.client.get_or_insert(SocketEnd::Closed);
        }
        if ends.1 {
            entry.server.get_or_insert(SocketEnd::Closed);
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>, mut timer: Pin<&mut Sleep>) -> Poll<Over> {
        for _ in 0..TURNS {
            while let Poll::Ready(message) = self.control.poll_recv(cx) {
                if let Some(over) = self.obey(message) {
                    return Poll::Ready(over);
                }
            }
            if let Some(redial) = &mut self.redial {
                match std::task::ready!(redial.as_mut().poll(cx)) {
                    Ok(server) => self.server = Some(server),
                    Err(error) => self.page.write().because(format!("the request was not sent again: {error}")),
                }
                self.redial = None;
                self.page.write().replays.push(json!({"sent": self.server.is_some(), "answer": "second"}));
                self.page.tell();
            }
            let now = Instant::now();
            if let Some((_, cut)) = self.cutting.filter(|(at, _)| *at <= now) {
                return Poll::Ready(Over::Cut(cut));
            }
            let known = (&self.page, &mut self.unanswered);
            let up = self.up.turn(cx, now, (&mut self.client, &mut self.server), known);
            if let Some(hit) = up.hit {
                self.hit(hit, Stream::Upstream, now);
                continue;
            }
            let known = (&self.page, &mut self.unanswered);
            let down = self.down.turn(cx, now, (&mut self.server, &mut self.client), known);
            if let Some(hit) = down.hit {
                self.hit(hit, Stream::Downstream, now);
                continue;
            }
            if self.client.is_none() && self.server.is_none() {
                return Poll::Ready(Over::Closed);
            }
            if up.moved || down.moved {
                continue;
            }
            let cutting = self.cutting.map(|(at, _)| at);
            let Some(wake) = [up.wake, down.wake, cutting].into_iter().flatten().min() else { return Poll::Pending };
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

    /// Does what the trigger says.
    fn hit(&mut self, trigger: Arc<Trigger>, stream: Stream, now: Instant) {
        let tap = if stream == Stream::Upstream { &mut self.up.tap } else { &mut self.down.tap };
        match trigger.deed {
            Deed::Cut(cut, delay) => {
                tap.close_gate(Arc::clone(&trigger));
                if self.cutting.is_none() {
                    self.cutting = Some((now + delay, cut));
                    self.page.write().because(format!("trigger {}", trigger.name));
                }
            }
            Deed::Hold => {
                tap.close_gate(Arc::clone(&trigger));
                self.page.write().held = Some(trigger.name.clone());
            }
            Deed::Replay { second, server } => self.replay(second, server),
        }
        self.page.write().fired.push(trigger.name.clone());
        self.page.tell();
    }

    fn replay(&mut self, second: bool, ending: Ending) {
        let Some(request) = self.up.tap.captured() else {
            let why = "the request was not seen from its start, or is longer than 1 MiB";
            self.page.write().replays.push(json!({"sent": false, "why": why}));
            return;
        };
        let (page, upstream) = (self.page.clone(), self.upstream.clone());
        let asked = self.unanswered.back().map(|asked| asked.as_ref().clone());
        if !second {
            self.aside.spawn(async move {
                let outcome = leave::resend_for_nobody(upstream, request, asked).await;
                page.write().replays.push(outcome);
                page.tell();
            });
            return;
        }
        if let Some(first) = self.server.take() {
            let cut = Cut { client: Ending::Close, server: ending, delivered: false, patience: leave::ANSWER };
            self.aside.spawn(async move {
                leave::server(first, cut, &page, asked.as_ref(), Answering::fresh()).await;
            });
        }
        self.down.tap.renew();
        self.redial = Some(Box::pin(leave::resend(upstream, request)));
    }

    /// Ends both sides as the cut says, and waits for what goes on aside. An order to close ends that at once.
    async fn leave(self, over: Over) {
        let Self { client, server, unanswered, page, mut control, mut aside, mut down, .. } = self;
        let inside = down.link.drain();
        let rest = async {
            if let Over::Cut(cut) = over {
                let asked = unanswered.front().map(Arc::as_ref);
                let client = async {
                    if let Some(socket) = client {
                        leave::client(socket, cut, &page).await;
                    }
                };
                let answering = down.tap.look_on(inside, asked);
                let server = async {
                    if let Some(socket) = server {
                        leave::server(socket, cut, &page, asked, answering).await;
                    }
                };
                tokio::join!(client, server);
            }
            while aside.join_next().await.is_some() {}
        };
        let mut rest = std::pin::pin!(rest);
        loop {
            tokio::select! {
                biased;
                message = control.recv() => match message {
                    None | Some(Control { order: Order::Close, .. }) => return,
                    // A connection that is ending has followed every change.
                    Some(_) => {}
                },
                () = &mut rest => return,
            }
        }
    }
}
