//! Attempts as exact bytes: what no HTTP library would write.
//!
//! The request is written here; its answer is read by the same library as all others, which believes that it has
//! written a request of its own.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    sync::watch,
};

use super::{
    attempt::Sent,
    call::Call,
    clock::Clock,
    exchange::{Received, Talk, image},
    interrupt::Deadline,
    meter::{Meter, Metered},
    wire::{Duplex, Line},
};
use crate::{
    history::{Attempt, Cut, End, FaultRecord, Witness},
    suite::{NetworkFault, Wire, WireBody},
    target::KeyPolicy,
    text::{Var, Vars},
};

/// How long a trickling body pauses.
const PAUSE: Duration = Duration::from_millis(700);
/// How long 100 (Continue) is waited for; after that the body is sent without it (RFC 9110 section 10.1.1).
const CONTINUE: Duration = Duration::from_secs(1);

/// The lines that a wire attempt has of its own, rendered.
#[derive(Debug)]
pub(super) struct Lines {
    key: Option<Vec<String>>,
    trailer: Vec<String>,
}

/// Renders the lines.
///
/// # Errors
/// When a placeholder has no value.
pub(super) fn lines(
    wire: &Wire,
    policy: &KeyPolicy,
    key: &str,
    other: &str,
    field: Option<&str>,
) -> Result<Lines, String> {
    let text = |name: &str, value: &str| (name.to_owned(), Var::Text(value.to_owned()));
    let fresh = crate::schedule::key_field(key, policy.syntax).map_err(|error| error.to_string())?;
    let vars = Vars::from([
        text("name", policy.header.as_str()),
        text("NAME", &policy.header.as_str().to_ascii_uppercase()),
        text("field", field.unwrap_or(&fresh)),
        text("key", key),
        text("other", other),
    ]);
    let render = |lines: &[crate::text::Template]| {
        lines.iter().map(|line| line.render(&vars).map_err(|error| error.to_string())).collect::<Result<Vec<_>, _>>()
    };
    Ok(Lines { key: wire.key_lines.as_deref().map(render).transpose()?, trailer: render(&wire.trailer)? })
}

impl Lines {
    /// The values of the key lines; `None` without any line of that kind.
    pub(super) fn values(&self) -> Option<String> {
        let values: Vec<_> =
            self.key.as_ref()?.iter().map(|line| line.split_once(':').map_or("", |(_, v)| v)).collect();
        (!values.is_empty()).then(|| values.join(","))
    }

    /// For people.
    pub(super) fn described(&self, body: WireBody) -> String {
        let body = match body {
            WireBody::Whole => None,
            WireBody::Chunked => Some("body in chunks"),
            WireBody::ChunkedCut => Some("body in chunks without the last one"),
            WireBody::Trickle => Some("half of the body, a pause, the rest"),
            WireBody::Expect => Some("Expect: 100-continue, then the body"),
            WireBody::ExpectAbandoned => Some("Expect: 100-continue, then no body"),
            WireBody::Pipelined => Some("the request twice on one connection"),
        };
        let quoted = |lines: &[String]| lines.iter().map(|line| format!("{line:?}")).collect::<Vec<_>>().join(", ");
        let key = self.key.as_ref().map(|lines| format!("key lines {}", quoted(lines)));
        let trailer = (!self.trailer.is_empty()).then(|| format!("trailer {}", quoted(&self.trailer)));
        [key, trailer, body.map(str::to_owned)].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Bytes(Vec<u8>),
    Pause,
    AwaitContinue,
    Close,
}

/// What is written, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Script(Vec<Part>);

impl Script {
    /// The script of a call.
    ///
    /// # Errors
    /// When the HTTP library refuses the request that it is made from.
    pub(super) async fn of(call: &Call, body: WireBody, lines: &Lines) -> Result<Self, String> {
        let (bytes, head) = image(call.request(None), call.payload.len()).await?;
        Ok(Self::from_image(&bytes, head, body, lines))
    }

    fn from_image(bytes: &[u8], head: usize, body: WireBody, lines: &Lines) -> Self {
        use Part::{AwaitContinue, Bytes, Close, Pause};
        let payload = &bytes[head..];
        // The last CR LF ends the head; what is added comes before it.
        let mut start = bytes[..head - 2].to_vec();
        let chunked = matches!(body, WireBody::Chunked | WireBody::ChunkedCut);
        if chunked {
            start = without(&start, b"content-length:");
            start.extend_from_slice(b"transfer-encoding: chunked\r\n");
        }
        if matches!(body, WireBody::Expect | WireBody::ExpectAbandoned) {
            start.extend_from_slice(b"expect: 100-continue\r\n");
        }
        for line in lines.key.iter().flatten() {
            start.extend_from_slice(line.as_bytes());
            start.extend_from_slice(b"\r\n");
        }
        start.extend_from_slice(b"\r\n");
        let with = |start: &[u8], rest: &[u8]| Bytes([start, rest].concat());
        let half = payload.len() / 2;
        Self(match body {
            WireBody::Whole => vec![with(&start, payload)],
            WireBody::Chunked => {
                let mut rest = chunks(payload);
                rest.extend_from_slice(b"0\r\n");
                for line in &lines.trailer {
                    rest.extend_from_slice(line.as_bytes());
                    rest.extend_from_slice(b"\r\n");
                }
                rest.extend_from_slice(b"\r\n");
                vec![with(&start, &rest)]
            }
            WireBody::ChunkedCut => vec![with(&start, &chunks(payload)), Close],
            WireBody::Trickle => vec![with(&start, &payload[..half]), Pause, Bytes(payload[half..].to_vec())],
            WireBody::Expect => vec![Bytes(start), AwaitContinue, Bytes(payload.to_vec())],
            WireBody::ExpectAbandoned => vec![Bytes(start), AwaitContinue, Close],
            WireBody::Pipelined => {
                let whole = [&start, payload].concat();
                vec![Bytes([whole.as_slice(), &whole].concat())]
            }
        })
    }

    /// Whether it ends before its request does.
    pub(super) fn cuts(&self) -> bool {
        self.0.contains(&Part::Close)
    }

    /// What is known of the cut.
    pub(super) fn witness(&self, attempt: &Attempt) -> FaultRecord {
        let first = self.first();
        let witness = if attempt.bytes_out >= first {
            Witness::Witnessed(format!("{first} bytes were written, and the connection was closed"))
        } else {
            Witness::NotWitnessed(format!("only {} of {first} bytes could be written", attempt.bytes_out))
        };
        FaultRecord { fault: NetworkFault::CutRequestBody, recipe: "written as exact bytes".to_owned(), witness }
    }

    /// The bytes up to the first pause.
    fn first(&self) -> u64 {
        match self.0.first() {
            Some(Part::Bytes(bytes)) => bytes.len() as u64,
            _ => 0,
        }
    }
}

/// Two chunks, without the last one.
fn chunks(payload: &[u8]) -> Vec<u8> {
    let (first, second) = payload.split_at(payload.len() / 2);
    let mut bytes = Vec::new();
    for part in [first, second].into_iter().filter(|part| !part.is_empty()) {
        bytes.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
        bytes.extend_from_slice(part);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// The head without the lines of this name.
fn without(head: &[u8], name: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        if !line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) {
            kept.extend_from_slice(line);
        }
    }
    kept
}

/// Writes the script and reads the answer.
pub(super) async fn perform(
    line: Line,
    script: &Script,
    call: &Call,
    left: Option<watch::Sender<bool>>,
    clock: Clock,
    deadline: &Deadline,
) -> Sent {
    let Line { mut io, meter, below, peer } = line;
    meter.set(Some(script.first()), left);
    let mut early = Vec::new();
    let written = deadline.within(write(&mut io, &script.0, &mut early)).await;
    let closed = matches!(written, Some(Ok(true)));
    if closed || written.is_none() {
        drop(io);
        let cut = Cut { reset: false, said: "the connection was closed on purpose".to_owned() };
        let end = if closed { End::Lost(cut) } else { End::TimedOut };
        return Sent { end, reading: meter.read(), received: Received::default() };
    }
    // A server may refuse before it has read everything: a failed write is no reason not to read.
    let io: Box<dyn Duplex> = Box::new(Deaf { io, early, written: false, reader: None });
    let line = Line { io: Metered::new(io, Meter::new(clock)), meter: meter.clone(), below, peer };
    match Talk::on(line).await {
        Ok(mut talk) => {
            let (end, received) = talk.exchange(call.request(None), deadline).await;
            Sent { end, reading: meter.read(), received }
        }
        Err(why) => Sent::not(why),
    }
}

/// Writes part after part. Returns whether the connection is to be closed now.
async fn write(
    io: &mut (impl AsyncRead + AsyncWrite + Unpin),
    parts: &[Part],
    early: &mut Vec<u8>,
) -> io::Result<bool> {
    for part in parts {
        match part {
            Part::Bytes(bytes) => {
                io.write_all(bytes).await?;
                io.flush().await?;
            }
            Part::Pause => tokio::time::sleep(PAUSE).await,
            Part::AwaitContinue => {
                let mut buffer = [0; 1024];
                if let Ok(read) = tokio::time::timeout(CONTINUE, io.read(&mut buffer)).await {
                    early.extend_from_slice(&buffer[..read?]);
                }
                // A final answer comes in place of the invitation: the body is not wanted.
                if !early.is_empty() && !early.starts_with(b"HTTP/1.1 100") && !parts.contains(&Part::Close) {
                    return Ok(false);
                }
            }
            Part::Close => return Ok(true),
        }
    }
    Ok(false)
}

/// A connection that takes what is written and sends nothing; what has been read early comes first.
///
/// Nothing is read before the library believes that it has written: an answer to no request is an error to it.
struct Deaf {
    io: Metered<Box<dyn Duplex>>,
    early: Vec<u8>,
    written: bool,
    reader: Option<Waker>,
}

impl AsyncRead for Deaf {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.written {
            self.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        if self.early.is_empty() {
            return Pin::new(&mut self.io).poll_read(cx, buf);
        }
        let count = self.early.len().min(buf.remaining());
        buf.put_slice(&self.early[..count]);
        self.early.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Deaf {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.written = true;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    const HEAD: &[u8] = b"POST /p HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\n\r\n";

    fn script(body: WireBody, key: Option<&[&str]>, trailer: &[&str]) -> Vec<String> {
        let own = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let lines = Lines { key: key.map(own), trailer: own(trailer) };
        let bytes = [HEAD, b"abcd"].concat();
        let parts = Script::from_image(&bytes, HEAD.len(), body, &lines).0;
        let text = |part: Part| match part {
            Part::Bytes(bytes) => String::from_utf8(bytes).unwrap(),
            other => format!("{other:?}"),
        };
        parts.into_iter().map(text).collect()
    }

    #[test]
    fn lines_know_the_field_of_the_target_as_it_is_and_in_capitals() {
        let template = |text: &str| crate::text::Template::parse(text).unwrap();
        let wire = Wire {
            key_lines: Some(vec![template("${NAME}: ${field}"), template("${name}: ${other}")]),
            body: WireBody::Whole,
            trailer: Vec::new(),
        };
        let policy = KeyPolicy {
            header: http::HeaderName::from_static("idempotent-key"),
            syntax: crate::target::KeySyntax::Bare,
            ..crate::target::Policy::default().key
        };
        let lines = lines(&wire, &policy, "k1", "k2", None).unwrap();
        assert_eq!(lines.key.unwrap(), ["IDEMPOTENT-KEY: k1", "idempotent-key: k2"]);
    }

    #[test]
    fn exact_bytes_of_every_kind() {
        let start = "POST /p HTTP/1.1\r\nhost: h\r\n";
        let whole = format!("{start}content-length: 4\r\n");
        assert_eq!(
            script(WireBody::Whole, Some(&["K: \"a\0\"", "k: b"]), &[]),
            [format!("{whole}K: \"a\0\"\r\nk: b\r\n\r\nabcd")]
        );
        assert_eq!(
            script(WireBody::Chunked, None, &["k: t"]),
            [format!("{start}transfer-encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\nk: t\r\n\r\n")]
        );
        assert_eq!(
            script(WireBody::ChunkedCut, None, &[]),
            [format!("{start}transfer-encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n"), "Close".into()]
        );
        assert_eq!(script(WireBody::Trickle, None, &[]), [format!("{whole}\r\nab"), "Pause".into(), "cd".into()]);
        assert_eq!(
            script(WireBody::Expect, None, &[]),
            [format!("{whole}expect: 100-continue\r\n\r\n"), "AwaitContinue".into(), "abcd".into()]
        );
        assert_eq!(script(WireBody::ExpectAbandoned, None, &[])[1..], ["AwaitContinue", "Close"]);
        assert_eq!(script(WireBody::Pipelined, None, &[]), [format!("{whole}\r\nabcd{whole}\r\nabcd")]);
    }
}
