//! A trigger: a point in an exchange, which exchanges it means, and what happens there. Toxiproxy has none of this.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::body::{Fields, Refusal};
use super::scan::Request;
use crate::chaos::Stream;

/// Longest delay and longest wait for a server, in milliseconds.
const LONGEST_MS: i64 = 600_000;

/// Where in an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    RequestHead,
    RequestBody,
    RequestEnd,
    ResponseStart,
    ResponseHead,
    ResponseBody,
    ResponseEnd,
    RequestRecord,
    ResponseRecord,
}

impl Point {
    const ALL: [(&'static str, Self); 9] = [
        ("request-head", Self::RequestHead),
        ("request-body", Self::RequestBody),
        ("request-end", Self::RequestEnd),
        ("response-start", Self::ResponseStart),
        ("response-head", Self::ResponseHead),
        ("response-body", Self::ResponseBody),
        ("response-end", Self::ResponseEnd),
        ("request-record", Self::RequestRecord),
        ("response-record", Self::ResponseRecord),
    ];

    /// The direction whose bytes it lies in.
    pub(super) fn stream(self) -> Stream {
        match self {
            Self::RequestHead | Self::RequestBody | Self::RequestEnd | Self::RequestRecord => Stream::Upstream,
            _ => Stream::Downstream,
        }
    }

    fn is_record(self) -> bool {
        matches!(self, Self::RequestRecord | Self::ResponseRecord)
    }

    fn is_body(self) -> bool {
        matches!(self, Self::RequestBody | Self::ResponseBody)
    }
}

/// How one side of a cut connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// In order, at once.
    Close,
    /// By a reset.
    Reset,
    /// For a client: it hears nothing more, and the connection stays until it leaves.
    Silent,
    /// For a server: it is left alone until it has given its answer, which nobody gets.
    Keep,
}

impl Ending {
    const ALL: [(&'static str, Self); 4] =
        [("close", Self::Close), ("reset", Self::Reset), ("silent", Self::Silent), ("keep", Self::Keep)];

    pub(super) fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, ending)| *ending == self).map_or("", |(name, _)| name)
    }

    /// Reads the endings of both sides; an orderly one is the default.
    pub(super) fn read_both(body: &Fields) -> Result<(Self, Self), Refusal> {
        let client = choice(body, "client", &Self::ALL)?.unwrap_or(Self::Close);
        let server = choice(body, "server", &Self::ALL)?.unwrap_or(Self::Close);
        if client == Self::Keep || server == Self::Silent {
            return Err(invalid("a client can be silent, and a server can be left with keep; not the other way round"));
        }
        Ok((client, server))
    }
}

/// How a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) client: Ending,
    pub(super) server: Ending,
    /// A reset waits until the peer's system has confirmed every byte.
    pub(super) delivered: bool,
    /// How long a server that is left alone may take.
    pub(super) patience: Duration,
}

/// What happens at the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// The connection is cut, after a delay.
    Cut(Cut, Duration),
    /// Nothing more passes in this direction until the trigger is released or removed.
    Hold,
    /// The request is sent once more on a new connection. The client gets the second answer, or the first.
    Replay { second: bool, server: Ending },
}

/// A trigger of a proxy, shared by its connections.
#[derive(Debug)]
pub(super) struct Trigger {
    pub(super) name: String,
    pub(super) point: Point,
    /// Bytes behind the head, or before the end; records since arming.
    pub(super) bytes: u64,
    pub(super) from_end: bool,
    pub(super) records: u64,
    pub(super) deed: Deed,
    method: Option<String>,
    path: Option<String>,
    key: Option<String>,
    request: Option<u64>,
    connection: Option<u64>,
    times: u64,
    fired: AtomicU64,
    released: AtomicBool,
}

fn invalid(why: impl std::fmt::Display) -> Refusal {
    Refusal::new(400, format!("invalid trigger: {why}"))
}

/// One of several words.
pub(super) fn choice<T: Copy>(body: &Fields, field: &str, words: &[(&str, T)]) -> Result<Option<T>, Refusal> {
    let Some(given) = body.text(field)? else { return Ok(None) };
    let found = words.iter().find(|(word, _)| *word == given).map(|(_, value)| *value);
    let all = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    found.map(Some).ok_or_else(|| invalid(format!("{field} is {given:?}; it can be {}", all())))
}

/// A number from 0 up.
pub(super) fn natural(body: &Fields, field: &str) -> Result<Option<u64>, Refusal> {
    let Some(given) = body.integer(field)? else { return Ok(None) };
    u64::try_from(given).map(Some).map_err(|_| invalid(format!("{field} is {given}; it must be at least 0")))
}

fn span(body: &Fields, field: &str) -> Result<Option<Duration>, Refusal> {
    let Some(given) = natural(body, field)? else { return Ok(None) };
    if given > LONGEST_MS as u64 {
        return Err(invalid(format!("{field} is {given}; it can be at most {LONGEST_MS} ms")));
    }
    Ok(Some(Duration::from_millis(given)))
}

impl Trigger {
    /// Reads the body of a creation. `number` makes a name where none is given.
    pub(super) fn create(number: u64, body: &Fields) -> Result<Self, Refusal> {
        #[derive(Clone, Copy, PartialEq)]
        enum Kind {
            Cut,
            Hold,
            Replay,
        }
        let name = body.text("name")?.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("trigger-{number}"));
        if name.contains('/') {
            return Err(invalid("a name with `/` cannot be addressed"));
        }
        let point = choice(body, "at", &Point::ALL)?.ok_or_else(|| invalid("`at` is missing"))?;
        let kinds = [("cut", Kind::Cut), ("hold", Kind::Hold), ("replay", Kind::Replay)];
        let kind = choice(body, "do", &kinds)?.unwrap_or(Kind::Cut);
        let (client, server) = Ending::read_both(body)?;
        let delivered = body.boolean("delivered")?.unwrap_or(false);
        let delay = span(body, "delay")?.unwrap_or_default();
        let patience = span(body, "patience")?.unwrap_or(Duration::from_secs(30));
        let second = choice(body, "answer", &[("first", false), ("second", true)])?.unwrap_or(true);
        let deed = match kind {
            Kind::Cut => Deed::Cut(Cut { client, server, delivered, patience }, delay),
            Kind::Hold => Deed::Hold,
            Kind::Replay if point == Point::RequestEnd => Deed::Replay { second, server },
            Kind::Replay => return Err(invalid("a replay happens at request-end, when the request is whole")),
        };
        let numbers = (natural(body, "bytes")?, natural(body, "records")?);
        let from_end = body.boolean("from_end")?.unwrap_or(false);
        if (numbers.0.is_some() || from_end) && !point.is_body() {
            return Err(invalid("`bytes` and `from_end` belong to request-body and response-body"));
        }
        if numbers.1.is_some() && !point.is_record() {
            return Err(invalid("`records` belongs to request-record and response-record"));
        }
        let (method, path, key) = (body.text("method")?, body.text("path")?, body.text("key")?);
        let (request, connection) = (natural(body, "request")?, natural(body, "connection")?);
        if point.is_record() && (method.is_some() || path.is_some() || key.is_some() || request.is_some()) {
            return Err(invalid("requests inside TLS cannot be told apart: leave out method, path, key and request"));
        }
        Ok(Self {
            name,
            point,
            bytes: numbers.0.unwrap_or(0),
            from_end,
            records: numbers.1.unwrap_or(1),
            deed,
            method,
            path,
            key,
            request,
            connection,
            times: natural(body, "times")?.unwrap_or(1),
            fired: AtomicU64::new(0),
            released: AtomicBool::new(false),
        })
    }

    /// Whether this exchange is meant. `request` is unknown inside TLS.
    pub(super) fn means(&self, connection: u64, request: Option<&Request>) -> bool {
        let fits = |wanted: &Option<String>, got: Option<&str>| wanted.as_deref().is_none_or(|w| got == Some(w));
        let path = request.and_then(|request| request.target.split('?').next());
        self.connection.is_none_or(|wanted| wanted == connection)
            && self.request.is_none_or(|wanted| request.is_some_and(|request| request.number == wanted))
            && fits(&self.method, request.map(|request| request.method.as_str()))
            && fits(&self.path, path)
            && fits(&self.key, request.and_then(|request| request.key.as_deref()))
    }

    /// Takes one of the times it may hit; false when none is left. Connections that come to the point together are
    /// told apart here.
    pub(super) fn claim(&self) -> bool {
        let next = |fired: u64| (self.times == 0 || fired < self.times).then(|| fired + 1);
        !self.is_released() && self.fired.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok()
    }

    pub(super) fn release(&self) {
        self.released.store(true, Ordering::Release);
    }

    pub(super) fn is_released(&self) -> bool {
        self.released.load(Ordering::Acquire)
    }

    pub(super) fn to_json(&self) -> Value {
        let (kind, details) = match self.deed {
            Deed::Cut(cut, delay) => (
                "cut",
                json!({
                    "client": cut.client.as_str(), "server": cut.server.as_str(), "delivered": cut.delivered,
                    "delay": delay.as_millis() as u64, "patience": cut.patience.as_millis() as u64,
                }),
            ),
            Deed::Hold => ("hold", json!({"released": self.is_released()})),
            Deed::Replay { second, server } => {
                ("replay", json!({"answer": if second { "second" } else { "first" }, "server": server.as_str()}))
            }
        };
        let at = Point::ALL.iter().find(|(_, point)| *point == self.point).map_or("", |(name, _)| name);
        let mut answer = json!({
            "name": self.name, "at": at, "do": kind, "times": self.times, "fired": self.fired.load(Ordering::Acquire),
            "bytes": self.bytes, "from_end": self.from_end, "records": self.records,
            "method": self.method, "path": self.path, "key": self.key,
            "request": self.request, "connection": self.connection,
        });
        if let (Some(answer), Value::Object(details)) = (answer.as_object_mut(), details) {
            answer.extend(details);
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn create(body: &str) -> Result<Trigger, Refusal> {
        Trigger::create(1, &Fields::decode(body.as_bytes()).unwrap())
    }

    #[test]
    fn what_cannot_work_is_refused_with_what_can() {
        for (body, says) in [
            ("{}", "`at` is missing"),
            (r#"{"at":"middle"}"#, "it can be request-head, "),
            (r#"{"at":"request-end","client":"keep"}"#, "not the other way round"),
            (r#"{"at":"request-head","bytes":1}"#, "belong to request-body"),
            (r#"{"at":"request-body","records":1}"#, "belongs to request-record"),
            (r#"{"at":"request-record","path":"/"}"#, "cannot be told apart"),
            (r#"{"at":"response-start","do":"replay"}"#, "request is whole"),
            (r#"{"at":"request-end","delay":-1}"#, "at least 0"),
            (r#"{"at":"request-end","delay":99999999}"#, "at most"),
            (r#"{"at":"request-end","name":"a/b"}"#, "cannot be addressed"),
        ] {
            let refusal = create(body).unwrap_err();
            assert!(refusal.status == 400 && refusal.text.contains(says), "{body}: {}", refusal.text);
        }
    }

    #[test]
    fn a_trigger_hits_as_often_as_it_says() {
        let once = create(r#"{"at":"request-end"}"#).unwrap();
        assert_eq!((once.claim(), once.claim(), once.to_json()["fired"].clone()), (true, false, json!(1)));
        let always = create(r#"{"at":"request-end","times":0}"#).unwrap();
        assert!((0..100).all(|_| always.claim()));
        always.release();
        assert!(!always.claim());
    }

    #[test]
    fn exchanges_are_told_apart() {
        let trigger =
            create(r#"{"at":"request-end","method":"POST","path":"/p","key":"k","request":2,"connection":3}"#);
        let trigger = trigger.unwrap();
        let request = Request { number: 2, method: "POST".into(), target: "/p?x=1".into(), key: Some("k".into()) };
        assert!(trigger.means(3, Some(&request)));
        assert!(!trigger.means(4, Some(&request)));
        assert!(!trigger.means(3, None));
        for other in [
            Request { number: 1, ..request.clone() },
            Request { method: "GET".into(), ..request.clone() },
            Request { target: "/q".into(), ..request.clone() },
            Request { key: None, ..request.clone() },
        ] {
            assert!(!trigger.means(3, Some(&other)), "{other:?}");
        }
    }
}
