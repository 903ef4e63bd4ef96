//! Finds the boundaries in one direction of a byte stream: HTTP/1 messages in plain text, records in TLS. It looks at
//! bytes and never changes them; what it does not understand is opaque from then on.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::chaos::Stream;

/// Longest message head that is understood.
const MAX_HEAD: usize = 64 * 1024;
/// The content type of a TLS record that carries data of the application (and, in TLS 1.3, the end of the handshake).
const APPLICATION_DATA: u8 = 23;

/// What is known of a request from its head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    /// Its place on the connection, from 1.
    pub(super) number: u64,
    pub(super) method: String,
    /// The target as sent, with its query.
    pub(super) target: String,
    /// The value of `Idempotency-Key`.
    pub(super) key: Option<String>,
}

/// A boundary. It lies before the byte at its offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// A message begins. Interim answers (1xx) are no messages.
    Start,
    /// The head of a message is over. `end` is the offset of its end, where the head tells.
    Head { request: Option<Arc<Request>>, end: Option<u64> },
    /// A message is over.
    End,
    /// A TLS record with application data begins.
    RecordStart,
    /// It is over.
    RecordEnd,
}

/// What a stream speaks, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speech {
    Unknown,
    Http,
    Tls,
    Opaque,
}

impl Speech {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Http => "http/1",
            Self::Tls => "tls",
            Self::Opaque => "opaque",
        }
    }
}

#[derive(Debug)]
enum State {
    /// Nothing has been seen yet.
    Fresh,
    /// Between two HTTP messages.
    Idle,
    Head {
        bytes: Vec<u8>,
        interim: bool,
    },
    /// So many bytes of the body are still to come.
    Body(u64),
    /// The line with the size of a chunk.
    ChunkSize {
        line: Vec<u8>,
    },
    /// So many bytes of a chunk, with its line end, are still to come.
    Chunk(u64),
    /// Fields after the last chunk; `empty` while the line has no byte.
    Trailer {
        empty: bool,
    },
    UntilClose,
    RecordHead(Vec<u8>),
    Record {
        left: u64,
        data: bool,
    },
    Opaque,
}

/// The boundaries of one direction.
#[derive(Debug)]
pub(super) struct Scanner {
    stream: Stream,
    state: State,
    /// Bytes seen.
    offset: u64,
    requests: u64,
}

/// How the body of a message ends.
enum Length {
    Known(u64),
    Chunked,
    UntilClose,
    /// What follows is no HTTP/1.
    Other,
}

impl Scanner {
    pub(super) fn new(stream: Stream) -> Self {
        Self { stream, state: State::Fresh, offset: 0, requests: 0 }
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Counts from that offset, as if so many bytes had been seen.
    pub(super) fn go_on_from(&mut self, offset: u64) {
        self.offset = offset;
    }

    pub(super) fn speech(&self) -> Speech {
        match self.state {
            State::Fresh => Speech::Unknown,
            State::RecordHead(_) | State::Record { .. } => Speech::Tls,
            State::Opaque => Speech::Opaque,
            _ => Speech::Http,
        }
    }

    /// Looks at the next bytes. `answered` is the request that the next answer belongs to.
    pub(super) fn feed(&mut self, bytes: &[u8], answered: Option<&Request>, marks: &mut VecDeque<(u64, Mark)>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let used = self.step(rest, answered, marks);
            rest = rest.get(used..).unwrap_or_default();
        }
    }

    /// The stream has ended: a message that lasts until then is over.
    pub(super) fn finish(&mut self, marks: &mut VecDeque<(u64, Mark)>) {
        if matches!(self.state, State::UntilClose) {
            marks.push_back((self.offset, Mark::End));
            self.state = State::Opaque;
        }
    }

    /// Takes some of the bytes, at least one, and gives how many.
    fn step(&mut self, bytes: &[u8], answered: Option<&Request>, marks: &mut VecDeque<(u64, Mark)>) -> usize {
        let first = bytes.first().copied().unwrap_or_default();
        let (used, next) = match &mut self.state {
            State::Opaque | State::UntilClose => {
                self.offset += bytes.len() as u64;
                return bytes.len();
            }
            State::Fresh if matches!(first, 20..=24) => (0, Some(State::RecordHead(Vec::with_capacity(5)))),
            State::Fresh => (0, Some(State::Idle)),
            // Line ends between messages are allowed.
            State::Idle if matches!(first, b'\r' | b'\n') => (1, None),
            State::Idle => {
                let plausible = match self.stream {
                    Stream::Upstream => first.is_ascii_uppercase(),
                    Stream::Downstream => first == b'H',
                };
                let interim = self.stream == Stream::Downstream && bytes.get(9) == Some(&b'1');
                if plausible && !interim {
                    marks.push_back((self.offset, Mark::Start));
                }
                (0, Some(if plausible { State::Head { bytes: Vec::new(), interim } } else { State::Opaque }))
            }
            State::Head { bytes: head, .. } => {
                let before = head.len();
                // The end may lie across two reads.
                let from = before.saturating_sub(3);
                head.extend_from_slice(
                    bytes.get(..bytes.len().min(MAX_HEAD + 4 - before.min(MAX_HEAD))).unwrap_or(bytes),
                );
                match head_end(head, from) {
                    Some(end) => {
                        head.truncate(end);
                        self.offset += (end - before) as u64;
                        self.end_of_head(answered, marks);
                        return end - before;
                    }
                    None if head.len() > MAX_HEAD => (bytes.len(), Some(State::Opaque)),
                    None => (head.len() - before, None),
                }
            }
            State::Body(left) => {
                let used = (*left).min(bytes.len() as u64);
                *left -= used;
                let over = *left == 0;
                if over {
                    marks.push_back((self.offset + used, Mark::End));
                }
                (used as usize, over.then_some(State::Idle))
            }
            State::ChunkSize { line } => {
                let end = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
                let used = end.unwrap_or(bytes.len());
                line.extend_from_slice(bytes.get(..used.min(1024)).unwrap_or_default());
                let next = match end {
                    _ if line.len() > 1024 => Some(State::Opaque),
                    None => None,
                    Some(_) => Some(match chunk_size(line) {
                        Some(0) => State::Trailer { empty: true },
                        // The two bytes are the line end behind the data.
                        Some(size) => State::Chunk(size.saturating_add(2)),
                        None => State::Opaque,
                    }),
                };
                (used, next)
            }
            State::Chunk(left) => {
                let used = (*left).min(bytes.len() as u64);
                *left -= used;
                (used as usize, (*left == 0).then(|| State::ChunkSize { line: Vec::new() }))
            }
            State::Trailer { empty } => match first {
                b'\n' if *empty => {
                    marks.push_back((self.offset + 1, Mark::End));
                    (1, Some(State::Idle))
                }
                b'\n' => (1, Some(State::Trailer { empty: true })),
                b'\r' => (1, None),
                _ => (1, Some(State::Trailer { empty: false })),
            },
            State::RecordHead(head) => {
                if head.is_empty() && first == APPLICATION_DATA {
                    marks.push_back((self.offset, Mark::RecordStart));
                }
                head.push(first);
                let next = match head.as_slice() {
                    [kind, _, _, high, low] => Some(State::Record {
                        left: u64::from(u16::from_be_bytes([*high, *low])),
                        data: *kind == APPLICATION_DATA,
                    }),
                    [kind] if !matches!(kind, 20..=24) => Some(State::Opaque),
                    _ => None,
                };
                if matches!(next, Some(State::Record { left: 0, .. })) {
                    (1, Some(State::RecordHead(Vec::with_capacity(5))))
                } else {
                    (1, next)
                }
            }
            State::Record { left, data } => {
                let used = (*left).min(bytes.len() as u64);
                *left -= used;
                let over = *left == 0;
                if over && *data {
                    marks.push_back((self.offset + used, Mark::RecordEnd));
                }
                (used as usize, over.then(|| State::RecordHead(Vec::with_capacity(5))))
            }
        };
        self.offset += used as u64;
        if let Some(next) = next {
            self.state = next;
        }
        used
    }

    /// The head in the state is whole and ends at the offset.
    fn end_of_head(&mut self, answered: Option<&Request>, marks: &mut VecDeque<(u64, Mark)>) {
        let State::Head { bytes, interim } = std::mem::replace(&mut self.state, State::Opaque) else { return };
        let Some((request, length)) = read_head(&bytes, self.stream, answered, self.requests + 1) else { return };
        if interim && matches!(length, Length::Known(0)) {
            self.state = State::Idle;
            return;
        }
        if request.is_some() {
            self.requests += 1;
        }
        let end = if let Length::Known(length) = length { self.offset.checked_add(length) } else { None };
        if !matches!(length, Length::Other) {
            marks.push_back((self.offset, Mark::Head { request: request.map(Arc::new), end }));
        }
        self.state = match length {
            Length::Known(0) => {
                marks.push_back((self.offset, Mark::End));
                State::Idle
            }
            Length::Known(length) => State::Body(length),
            Length::Chunked => State::ChunkSize { line: Vec::new() },
            Length::UntilClose => State::UntilClose,
            Length::Other => State::Opaque,
        };
    }
}

/// Where the empty line that ends a head is over.
fn head_end(head: &[u8], from: usize) -> Option<usize> {
    let tail = head.get(from..)?;
    let crlf = tail.windows(4).position(|four| four == b"\r\n\r\n").map(|at| from + at + 4);
    let lf = tail.windows(2).position(|two| two == b"\n\n").map(|at| from + at + 2);
    crlf.into_iter().chain(lf).min()
}

fn chunk_size(line: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(line).ok()?.split(';').next()?.trim();
    u64::from_str_radix(text, 16).ok()
}

/// Reads a head: for a request what it is, and how its body ends.
fn read_head(
    head: &[u8],
    stream: Stream,
    answered: Option<&Request>,
    number: u64,
) -> Option<(Option<Request>, Length)> {
    let mut lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let first = std::str::from_utf8(lines.next()?).ok()?;
    let (mut length, mut chunked, mut key) = (None, false, None);
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"content-length") {
            length = Some(std::str::from_utf8(value).ok()?.parse::<u64>().ok()?);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            chunked |= value.to_ascii_lowercase().ends_with(b"chunked");
        } else if name.eq_ignore_ascii_case(b"idempotency-key") {
            key = Some(String::from_utf8_lossy(value).into_owned());
        }
    }
    match stream {
        Stream::Upstream => {
            let mut words = first.split(' ');
            let (method, target, version) = (words.next()?, words.next()?, words.next()?);
            let request = Request { number, method: method.to_owned(), target: target.to_owned(), key };
            let length = match (method, version.starts_with("HTTP/1."), chunked) {
                // Of HTTP/2 with prior knowledge, or a tunnel.
                (_, false, _) | ("CONNECT", ..) => Length::Other,
                (_, _, true) => Length::Chunked,
                _ => Length::Known(length.unwrap_or(0)),
            };
            Some((Some(request), length))
        }
        Stream::Downstream => {
            let status: u16 = first.strip_prefix("HTTP/1.")?.get(2..5)?.parse().ok()?;
            let empty =
                answered.is_some_and(|request| request.method == "HEAD") || matches!(status, 100..=199 | 204 | 304);
            let length = match (status, empty, chunked, length) {
                (101, ..) => Length::Other,
                (_, true, ..) => Length::Known(0),
                (_, _, true, _) => Length::Chunked,
                (_, _, _, Some(length)) => Length::Known(length),
                _ => Length::UntilClose,
            };
            Some((None, length))
        }
    }
}

#[cfg(test)]
mod tests;
