//! What happened on each connection of a proxy: when, how many bytes each way, how far the exchange came, and who ended
//! it how. This is the evidence that a fault has hit where it was meant to.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::scan::Speech;
use crate::chaos::Stream;

/// Ended connections that are remembered, the oldest forgotten first.
const REMEMBERED: usize = 1024;

/// One direction, as counted at the sockets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    /// Bytes read from the source.
    pub(super) read: u64,
    /// Bytes handed to the system for the destination.
    pub(super) written: u64,
    first: Option<Instant>,
    last: Option<Instant>,
    /// TLS records with application data that were handed over whole.
    pub(super) records: u64,
}

impl Flow {
    pub(super) fn add(&mut self, read: u64, written: u64, now: Instant) {
        self.read += read;
        self.written += written;
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    fn to_json(self, since: Instant) -> Value {
        json!({
            "read": self.read, "written": self.written, "records": self.records,
            "first_us": self.first.map(|at| micros(since, at)), "last_us": self.last.map(|at| micros(since, at)),
        })
    }
}

/// How one socket of a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketEnd {
    /// The peer closed it.
    PeerClosed,
    /// The peer reset it, or it broke.
    PeerReset,
    /// The proxy closed it.
    Closed,
    /// The proxy reset it.
    Reset,
}

impl SocketEnd {
    fn as_str(self) -> &'static str {
        match self {
            Self::PeerClosed => "peer-closed",
            Self::PeerReset => "peer-reset",
            Self::Closed => "closed",
            Self::Reset => "reset",
        }
    }
}

/// What is known of one connection.
#[derive(Debug)]
pub(super) struct Entry {
    number: u64,
    accepted: Instant,
    pub(super) dialled: Option<Instant>,
    pub(super) up: Flow,
    pub(super) down: Flow,
    pub(super) speech: Speech,
    /// Requests whose last byte was handed to the server.
    pub(super) requests: u64,
    /// Answers of which a byte was handed to the client.
    pub(super) begun: u64,
    /// Answers that were handed to the client whole.
    pub(super) answers: u64,
    /// Answers that the server gave whole, to the client or to nobody.
    pub(super) drained: u64,
    /// The trigger whose gate is closed.
    pub(super) held: Option<String>,
    /// Triggers that have hit, in order.
    pub(super) fired: Vec<String>,
    /// What came of requests that were sent a second time.
    pub(super) replays: Vec<Value>,
    /// The first thing that began the end.
    cause: Option<String>,
    pub(super) client: Option<SocketEnd>,
    pub(super) server: Option<SocketEnd>,
    pub(super) ended: Option<Instant>,
}

impl Entry {
    /// Notes why the connection ends, unless something was faster.
    pub(super) fn because(&mut self, cause: impl Into<String>) {
        self.cause.get_or_insert_with(|| cause.into());
    }

    fn to_json(&self, since: Instant) -> Value {
        let at = |instant: Option<Instant>| instant.map(|instant| micros(since, instant));
        json!({
            "number": self.number,
            "speech": self.speech.as_str(),
            "accepted_us": micros(since, self.accepted),
            "dialled_us": at(self.dialled),
            "ended_us": at(self.ended),
            "upstream": self.up.to_json(since),
            "downstream": self.down.to_json(since),
            "requests": self.requests,
            "answers_begun": self.begun,
            "answers": self.answers,
            "answers_drained": self.drained,
            "held": self.held,
            "fired": self.fired,
            "replays": self.replays,
            "cause": self.cause,
            "client": self.client.map(SocketEnd::as_str),
            "server": self.server.map(SocketEnd::as_str),
        })
    }
}

fn micros(since: Instant, at: Instant) -> u64 {
    u64::try_from(at.saturating_duration_since(since).as_micros()).unwrap_or(u64::MAX)
}

/// The page of one connection, written by its task and read by the API.
#[derive(Clone, Debug)]
pub(super) struct Page {
    entry: Arc<Mutex<Entry>>,
    news: watch::Sender<u64>,
}

impl Page {
    pub(super) fn write(&self) -> MutexGuard<'_, Entry> {
        self.entry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes those who wait for something to happen.
    pub(super) fn tell(&self) {
        self.news.send_modify(|count| *count = count.wrapping_add(1));
    }
}

/// What a caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    Accepted,
    Dialled,
    Request,
    AnswerBegun,
    Answer,
    /// The server has given a whole answer, whoever got it.
    Drained,
    Held,
    Fired,
    Replayed,
    Ended,
}

impl Until {
    pub(super) const ALL: [(&'static str, Self); 10] = [
        ("accepted", Self::Accepted),
        ("dialled", Self::Dialled),
        ("request", Self::Request),
        ("answer-begun", Self::AnswerBegun),
        ("answer", Self::Answer),
        ("drained", Self::Drained),
        ("held", Self::Held),
        ("fired", Self::Fired),
        ("replayed", Self::Replayed),
        ("ended", Self::Ended),
    ];

    fn count(self, entry: &Entry) -> u64 {
        match self {
            Self::Accepted => 1,
            Self::Dialled => entry.dialled.is_some().into(),
            Self::Request => entry.requests,
            Self::AnswerBegun => entry.begun,
            Self::Answer => entry.answers,
            Self::Drained => entry.drained,
            Self::Held => entry.held.is_some().into(),
            Self::Fired => entry.fired.len() as u64,
            Self::Replayed => entry.replays.len() as u64,
            Self::Ended => entry.ended.is_some().into(),
        }
    }
}

/// The pages of one proxy.
#[derive(Debug)]
pub(super) struct Ledger {
    since: Instant,
    pages: Mutex<Pages>,
    news: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Pages {
    all: BTreeMap<u64, Page>,
    /// The ended ones, in the order in which they will be forgotten.
    over: VecDeque<u64>,
}

impl Ledger {
    /// Instants are told in microseconds since `since`.
    pub(super) fn new(since: Instant) -> Self {
        Self { since, pages: Mutex::default(), news: watch::Sender::new(0) }
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the page of a new connection.
    pub(super) fn open(&self, number: u64, accepted: Instant) -> Page {
        let entry = Entry {
            number,
            accepted,
            dialled: None,
            up: Flow::default(),
            down: Flow::default(),
            speech: Speech::Unknown,
            requests: 0,
            begun: 0,
            answers: 0,
            drained: 0,
            held: None,
            fired: vec![],
            replays: vec![],
            cause: None,
            client: None,
            server: None,
            ended: None,
        };
        let page = Page { entry: Arc::new(Mutex::new(entry)), news: self.news.clone() };
        self.pages().all.insert(number, page.clone());
        page.tell();
        page
    }

    /// The connection is over; its page will be forgotten one day.
    pub(super) fn close(&self, number: u64) {
        let mut pages = self.pages();
        let Some(page) = pages.all.get(&number).cloned() else { return };
        page.write().ended.get_or_insert_with(Instant::now);
        pages.over.push_back(number);
        if pages.over.len() > REMEMBERED {
            let oldest = pages.over.pop_front();
            oldest.and_then(|number| pages.all.remove(&number));
        }
        drop(pages);
        page.tell();
    }

    pub(super) fn to_json(&self) -> Value {
        self.pages().all.values().map(|page| page.write().to_json(self.since)).collect()
    }

    pub(super) fn page_json(&self, number: u64) -> Option<Value> {
        let page = self.pages().all.get(&number).cloned()?;
        let entry = page.write();
        Some(entry.to_json(self.since))
    }

    /// Waits until something has happened `count` times on that connection, or on any later than `after`. Never ends
    /// if it never happens.
    pub(super) async fn wait(&self, until: Until, count: u64, number: Option<u64>, after: u64) -> Value {
        let mut news = self.news.subscribe();
        loop {
            let found = self.pages().all.range(after.saturating_add(1)..).find_map(|(this, page)| {
                let entry = page.write();
                let fits = number.is_none_or(|number| number == *this) && until.count(&entry) >= count;
                fits.then(|| entry.to_json(self.since))
            });
            if let Some(found) = found {
                return found;
            }
            if news.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Bytes read and written on connections that are over and were not counted before are the metrics' business; this
    /// gives those of one connection.
    pub(super) fn totals(&self, number: u64) -> [(Stream, u64, u64); 2] {
        let page = self.pages().all.get(&number).cloned();
        let flows = page.map(|page| {
            let entry = page.write();
            (entry.up, entry.down)
        });
        let (up, down) = flows.unwrap_or_default();
        [(Stream::Upstream, up.read, up.written), (Stream::Downstream, down.read, down.written)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waiting_ends_when_it_has_happened() {
        let ledger = Ledger::new(Instant::now());
        let page = ledger.open(1, Instant::now());
        let wait = ledger.wait(Until::Request, 2, None, 0);
        let happen = async {
            page.write().requests = 1;
            page.tell();
            tokio::task::yield_now().await;
            page.write().requests = 2;
            page.tell();
        };
        let (found, ()) = tokio::join!(wait, happen);
        assert_eq!(found["requests"], 2);
        assert_eq!(ledger.wait(Until::Accepted, 1, Some(1), 0).await["number"], 1);
        let later = ledger.wait(Until::Accepted, 1, None, 1);
        let (found, _) = tokio::join!(later, async { ledger.open(2, Instant::now()) });
        assert_eq!(found["number"], 2);
    }

    #[test]
    fn the_first_cause_counts_and_old_pages_are_forgotten() {
        let ledger = Ledger::new(Instant::now());
        let page = ledger.open(0, Instant::now());
        page.write().because("first");
        page.write().because("second");
        assert_eq!(ledger.page_json(0).map(|entry| entry["cause"].clone()), Some(json!("first")));
        for number in 1..=REMEMBERED as u64 {
            ledger.open(number, Instant::now());
        }
        for number in 0..=REMEMBERED as u64 {
            ledger.close(number);
        }
        assert_eq!(ledger.page_json(0), None);
        assert_eq!(ledger.to_json().as_array().map(Vec::len), Some(REMEMBERED));
    }
}
