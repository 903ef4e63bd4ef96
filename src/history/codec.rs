//! Histories as JSON Lines: one line about the run, then one line for each history.

use std::io::{self, BufRead, Read, Write};

use serde::{Deserialize, Serialize};

use super::History;

/// The version of the format that this program writes, and the newest one that it reads.
pub const VERSION: u32 = 1;

/// The longest line that is read, in bytes.
pub const LONGEST_LINE: usize = 16 * 1024 * 1024;

/// The first line of a file of histories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format.
    #[serde(rename = "idemproof_history")]
    pub version: u32,
    /// The id of the run.
    pub run: String,
    /// The target's name.
    pub target: String,
    /// The version of idemproof that wrote the file.
    pub idemproof: String,
}

impl Header {
    /// The header of a file that this program writes.
    pub fn new(run: &str, target: &str) -> Self {
        Self {
            version: VERSION,
            run: run.to_owned(),
            target: target.to_owned(),
            idemproof: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// Why a file of histories cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The source failed.
    #[error("line {line}: cannot be read: {source}")]
    Io {
        /// The line, from 1.
        line: u64,
        /// What went wrong.
        source: io::Error,
    },
    /// There is nothing in it.
    #[error("the file is empty: expected a file of histories that `idemproof run` wrote")]
    Empty,
    /// The first line is something else.
    #[error("line {line}: not a file of histories: expected {{\"idemproof_history\":{VERSION},...}}: {problem}")]
    NotHistories {
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// A newer program wrote it.
    #[error("line {line}: format version {found}, and this idemproof reads up to {VERSION}: use a newer idemproof")]
    TooNew {
        /// The line, from 1.
        line: u64,
        /// The version in the file.
        found: u64,
    },
    /// A line is not a history.
    #[error("line {line}: not a history: {problem}")]
    BadLine {
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// A line is longer than any history.
    #[error("line {line}: longer than {} MiB, which no history is: is this the right file?", LONGEST_LINE / 1024 / 1024)]
    TooLong {
        /// The line, from 1.
        line: u64,
    },
}

/// Writes histories, one line each. The caller owns the sink, its errors and its flushing.
#[derive(Debug)]
pub struct Writer<W: Write>(W);

impl<W: Write> Writer<W> {
    /// Begins a file with its header.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn new(sink: W, header: &Header) -> io::Result<Self> {
        let mut writer = Self(sink);
        writer.line(header)?;
        Ok(writer)
    }

    /// Writes one history.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn write(&mut self, history: &History) -> io::Result<()> {
        self.line(history)
    }

    /// Gives the sink back.
    pub fn into_inner(self) -> W {
        self.0
    }

    fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        // One write per line, so that a process that dies leaves whole lines behind.
        self.0.write_all(&line)
    }
}

/// Reads histories one by one, so that a long file needs no more memory than its longest line.
#[derive(Debug)]
pub struct Reader<R: BufRead> {
    source: R,
    line: u64,
    header: Header,
    over: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads and checks the header.
    ///
    /// # Errors
    /// When the source fails, is empty, or is not a file of histories of a known version.
    pub fn new(mut source: R) -> Result<Self, ReadError> {
        let mut line = 0;
        let bytes = next_line(&mut source, &mut line)?.ok_or(ReadError::Empty)?;
        let problem = |error: serde_json::Error| ReadError::NotHistories { line, problem: error.to_string() };
        // The version comes first: a newer header may have other members.
        #[derive(Deserialize)]
        struct Version {
            idemproof_history: u64,
        }
        let Version { idemproof_history: found } = serde_json::from_slice(&bytes).map_err(problem)?;
        if found > u64::from(VERSION) {
            return Err(ReadError::TooNew { line, found });
        }
        if found == 0 {
            return Err(ReadError::NotHistories { line, problem: "there is no version 0".to_owned() });
        }
        let header = serde_json::from_slice(&bytes).map_err(problem)?;
        Ok(Self { source, line, header, over: false })
    }

    /// The first line.
    pub fn header(&self) -> &Header {
        &self.header
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<History, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let next = match next_line(&mut self.source, &mut self.line) {
            Ok(None) => None,
            Ok(Some(bytes)) => Some(
                serde_json::from_slice(&bytes)
                    .map_err(|error| ReadError::BadLine { line: self.line, problem: error.to_string() }),
            ),
            Err(error) => Some(Err(error)),
        };
        self.over = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Reads a whole file of histories.
///
/// # Errors
/// On the first line that cannot be read; the error names it.
pub fn read<R: BufRead>(source: R) -> Result<(Header, Vec<History>), ReadError> {
    let mut reader = Reader::new(source)?;
    let histories = reader.by_ref().collect::<Result<_, _>>()?;
    Ok((reader.header, histories))
}

/// The next line that is not blank, without its end.
fn next_line(source: &mut impl BufRead, line: &mut u64) -> Result<Option<Vec<u8>>, ReadError> {
    loop {
        *line += 1;
        let mut bytes = Vec::new();
        let limit = LONGEST_LINE as u64 + 1;
        let read = source.by_ref().take(limit).read_until(b'\n', &mut bytes);
        read.map_err(|source| ReadError::Io { line: *line, source })?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        if bytes.len() > LONGEST_LINE {
            return Err(ReadError::TooLong { line: *line });
        }
        if !bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Some(bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::{collection::vec, option, prelude::*};

    use super::*;
    use crate::{
        history::*,
        schedule::{CaseId, Encoding, TimeMove},
        suite::{NetworkFault, Window},
        text::Span,
    };

    fn end() -> impl Strategy<Value = End> {
        prop_oneof![
            Just(End::Answered),
            Just(End::TimedOut),
            ".*".prop_map(End::NotSent),
            ".*".prop_map(End::Unreadable),
            (any::<bool>(), ".*").prop_map(|(reset, said)| End::Lost(Cut { reset, said })),
        ]
    }

    fn response() -> impl Strategy<Value = Response> {
        (200u16..600, vec(("[a-z-]{1,9}", ".*"), 0..3), ".*", option::of(".*"), any::<bool>()).prop_map(
            |(status, fields, text, identity, complete)| Response {
                status,
                fields: fields.into_iter().map(|(name, value)| ParsedField { name, value }).collect(),
                body: Body { length: text.len() as u64, sha256: "ab".into(), text, complete },
                identity,
            },
        )
    }

    fn attempt() -> impl Strategy<Value = Attempt> {
        let fault = (any::<bool>(), ".*").prop_map(|(hit, text)| FaultRecord {
            fault: NetworkFault::LoseResponse,
            recipe: text.clone(),
            witness: if hit { Witness::Witnessed(text) } else { Witness::NotWitnessed(text) },
        });
        let names = (".*", option::of(".*"), option::of(".*"), ".*");
        let times = (any::<u64>(), option::of(any::<u64>()), option::of(any::<u64>()), any::<u64>());
        (names, times, end(), option::of(response()), option::of(fault), vec(".*", 0..3)).prop_map(
            |((name, burst, key, text), (opened, first_out, first_in, ended), end, response, fault, hooks)| Attempt {
                name,
                burst,
                resend_of: key.clone(),
                operation: text.clone(),
                tenant: text.clone(),
                node: 1,
                intent: text.clone(),
                key_field: key.clone(),
                key,
                reference: text.clone(),
                role: text.clone(),
                encoding: Encoding::Reordered,
                payload_sha256: text.clone(),
                value_sha256: text.clone(),
                request: text.clone(),
                payload: text,
                timing: Timing { opened, first_out, last_out: first_out, first_in, ended },
                bytes_out: opened,
                bytes_in: ended,
                end,
                response,
                fault,
                hooks,
                wire: None,
            },
        )
    }

    fn history() -> impl Strategy<Value = History> {
        let probe =
            (any::<bool>(), any::<u64>(), ".*", vec(".*", 0..3)).prop_map(|(counted, effects, text, ids)| Probe {
                intent: text.clone(),
                reference: text.clone(),
                tenant: text.clone(),
                purpose: "final".into(),
                began: effects,
                ended: effects,
                result: if counted {
                    ProbeResult::Counted(Count { effects, ids, polls: 2 })
                } else {
                    ProbeResult::Failed(text)
                },
            });
        let control = (0u64..1_000_000, any::<bool>(), option::of(".*")).prop_map(|(ms, past, failed)| Control {
            moved: TimeMove { span: Span::from_millis(ms), by_hook: past, past: past.then_some(Window::Retention) },
            began: ms,
            ended: ms,
            failed,
        });
        let vary = option::of((".*", any::<u64>()));
        (vary, vec(attempt(), 0..4), vec(probe, 0..3), vec(control, 0..3), option::of(".*"), any::<u32>()).prop_map(
            |(vary, attempts, probes, controls, stopped, round)| History {
                case: CaseId { suite: "s".into(), case: "c".into(), operation: "o".into(), vary },
                round,
                attempts,
                probes,
                controls,
                stopped,
            },
        )
    }

    fn written(histories: &[History]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), &Header::new("run", "target")).unwrap();
        histories.iter().for_each(|history| writer.write(history).unwrap());
        writer.into_inner()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_is_read_back(histories in vec(history(), 0..4)) {
            let bytes = written(&histories);
            prop_assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), histories.len() + 1);
            let (header, read) = read(&bytes[..]).unwrap();
            prop_assert_eq!(header, Header::new("run", "target"));
            prop_assert_eq!(read, histories);
        }

        #[test]
        fn bad_bytes_never_panic(histories in vec(history(), 1..3), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut bytes = written(&histories);
            let index = at.index(bytes.len());
            bytes[index] = byte;
            let _ = read(&bytes[..]);
            let _ = read(&bytes[..index]);
            let _ = read(&bytes[index..]);
        }
    }

    #[test]
    fn errors_name_the_line() {
        let header = r#"{"idemproof_history":1,"run":"r","target":"t","idemproof":"0"}"#;
        let of = |text: &str| read(text.as_bytes()).unwrap_err();
        assert!(matches!(of(""), ReadError::Empty));
        assert!(matches!(of("\n\n"), ReadError::Empty));
        assert!(matches!(of("hello"), ReadError::NotHistories { line: 1, .. }));
        assert!(matches!(of(r#"{"idemproof_history":0,"run":"r"}"#), ReadError::NotHistories { line: 1, .. }));
        assert!(matches!(of(r#"{"idemproof_history":2,"new":1}"#), ReadError::TooNew { line: 1, found: 2 }));
        assert!(matches!(of(&format!("{header}\n\n{{\n")), ReadError::BadLine { line: 3, .. }));
        assert_eq!(read(format!("{header}\r\n\n").as_bytes()).unwrap().1, []);
    }

    #[test]
    fn an_endless_line_is_refused_before_it_is_read_whole() {
        struct Endless(usize);
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0 += buffer.len();
                assert!(self.0 < LONGEST_LINE * 2, "reads on and on");
                buffer.fill(b'x');
                Ok(buffer.len())
            }
        }
        let error = read(io::BufReader::new(Endless(0))).unwrap_err();
        assert!(matches!(error, ReadError::TooLong { line: 1 }), "{error}");
    }
}
