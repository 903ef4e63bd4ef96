//! What only the embedded server can do: act at a point of an exchange instead of after a number of bytes.

use std::time::Duration;

use serde_json::{Map, Value, json};

/// A point of an exchange. Those of messages need HTTP/1.1 in plain text, those of records TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    /// Behind the head of the request.
    RequestHead,
    /// So many bytes into the body of the request, as sent.
    RequestBody(u64),
    /// So many bytes before the end of a request whose length its head tells.
    RequestBodyBeforeEnd(u64),
    /// Behind the last byte of the request.
    RequestEnd,
    /// Before the first byte of the answer. Interim answers pass.
    ResponseStart,
    /// Behind the head of the answer.
    ResponseHead,
    /// So many bytes into the body of the answer, as sent.
    ResponseBody(u64),
    /// So many bytes before the end of an answer whose length its head tells.
    ResponseBodyBeforeEnd(u64),
    /// Behind the last byte of the answer.
    ResponseEnd,
    /// Behind so many records with application data towards the server, counted from arming; 0 before the next one.
    RequestRecord(u64),
    /// The same towards the client.
    ResponseRecord(u64),
}

/// How one side of a cut connection ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ending {
    /// In order.
    #[default]
    Close,
    /// By a reset.
    Reset,
}

impl Ending {
    /// The name in the API and in suites.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Close => "close",
            Self::Reset => "reset",
        }
    }
}

/// What becomes of the client's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientSide {
    /// It ends.
    Ends(Ending),
    /// It hears nothing more; the connection stays until it leaves.
    Silent,
}

/// What becomes of the server's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerSide {
    /// It ends.
    Ends(Ending),
    /// It is left alone until it has answered; nobody gets the answer.
    Kept,
}

/// What happens at the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deed {
    /// The connection is cut.
    Cut {
        /// The client's side.
        client: ClientSide,
        /// The server's side.
        server: ServerSide,
        /// A reset waits until the peer's system has confirmed every byte sent before.
        delivered: bool,
        /// How long after the point. At most 10 minutes.
        delay: Duration,
    },
    /// Nothing more passes in the direction of the point until the trigger is released.
    Hold,
    /// The request is sent once more on a new connection, as a retrying gateway does. Only at
    /// [`Point::RequestEnd`].
    Resend {
        /// Whether the client gets the second answer, and not the first.
        second: bool,
        /// What becomes of the first connection when the client gets the second answer.
        first_server: ServerSide,
    },
}

/// A point, what happens there, and for which exchanges.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Trigger {
    /// Where.
    pub at: Point,
    /// What.
    pub deed: Deed,
    /// Only requests with this `Idempotency-Key`, as sent.
    pub key: Option<String>,
    /// Only requests with this method.
    pub method: Option<String>,
    /// Only requests to this path, without its query.
    pub path: Option<String>,
    /// Only this request of a connection, from 1.
    pub request: Option<u32>,
    /// Only this connection of the proxy, from 1.
    pub connection: Option<u64>,
    /// How often it hits, over all connections; 0 for always.
    pub times: u32,
}

impl Trigger {
    /// A trigger that hits once, whatever the exchange.
    pub fn new(at: Point, deed: Deed) -> Self {
        Self { at, deed, key: None, method: None, path: None, request: None, connection: None, times: 1 }
    }

    /// A cut that ends both sides in the same way, at once.
    pub fn cut(at: Point, ending: Ending) -> Self {
        let (client, server) = (ClientSide::Ends(ending), ServerSide::Ends(ending));
        Self::new(at, Deed::Cut { client, server, delivered: ending == Ending::Reset, delay: Duration::ZERO })
    }

    /// The body as the API reads it.
    pub(crate) fn body(&self, name: &str) -> Value {
        let (at, place) = match self.at {
            Point::RequestHead => ("request-head", json!({})),
            Point::RequestBody(bytes) => ("request-body", json!({"bytes": bytes})),
            Point::RequestBodyBeforeEnd(bytes) => ("request-body", json!({"bytes": bytes, "from_end": true})),
            Point::RequestEnd => ("request-end", json!({})),
            Point::ResponseStart => ("response-start", json!({})),
            Point::ResponseHead => ("response-head", json!({})),
            Point::ResponseBody(bytes) => ("response-body", json!({"bytes": bytes})),
            Point::ResponseBodyBeforeEnd(bytes) => ("response-body", json!({"bytes": bytes, "from_end": true})),
            Point::ResponseEnd => ("response-end", json!({})),
            Point::RequestRecord(records) => ("request-record", json!({"records": records})),
            Point::ResponseRecord(records) => ("response-record", json!({"records": records})),
        };
        let deed = match self.deed {
            Deed::Cut { client, server, delivered, delay } => json!({
                "do": "cut", "client": client.as_str(), "server": server.as_str(), "delivered": delivered,
                "delay": delay.as_millis() as u64,
            }),
            Deed::Hold => json!({"do": "hold"}),
            Deed::Resend { second, first_server } => json!({
                "do": "replay", "answer": if second { "second" } else { "first" }, "server": first_server.as_str(),
            }),
        };
        let mut body: Map<String, Value> = Map::new();
        body.insert("name".to_owned(), name.into());
        body.insert("at".to_owned(), at.into());
        body.insert("times".to_owned(), self.times.into());
        for (field, value) in [
            ("key", self.key.clone().map(Value::from)),
            ("method", self.method.clone().map(Value::from)),
            ("path", self.path.clone().map(Value::from)),
            ("request", self.request.map(Value::from)),
            ("connection", self.connection.map(Value::from)),
        ] {
            if let Some(value) = value {
                body.insert(field.to_owned(), value);
            }
        }
        for part in [place, deed] {
            if let Value::Object(part) = part {
                body.extend(part);
            }
        }
        Value::Object(body)
    }
}

impl ClientSide {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ends(ending) => ending.as_str(),
            Self::Silent => "silent",
        }
    }
}

impl ServerSide {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ends(ending) => ending.as_str(),
            Self::Kept => "keep",
        }
    }
}

impl std::fmt::Display for Trigger {
    /// As it is sent, without a name.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("trigger")?;
        for (field, value) in self.body("").as_object().into_iter().flatten() {
            match value {
                Value::String(text) if text.is_empty() => {}
                Value::String(text) => write!(f, " {field}={text}")?,
                value => write!(f, " {field}={value}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_is_written_as_the_api_reads_it() {
        let trigger = Trigger { key: Some("k".to_owned()), ..Trigger::cut(Point::RequestBody(4), Ending::Reset) };
        let expected = json!({
            "name": "n", "at": "request-body", "bytes": 4, "do": "cut", "client": "reset", "server": "reset",
            "delivered": true, "delay": 0, "times": 1, "key": "k",
        });
        assert_eq!(trigger.body("n"), expected);
        let hold = Trigger::new(Point::ResponseStart, Deed::Hold);
        assert_eq!(hold.to_string(), "trigger at=response-start times=1 do=hold");
    }
}
