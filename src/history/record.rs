//! What is recorded.

use serde::{Deserialize, Serialize};

use crate::{
    schedule::{CaseId, Encoding, TimeMove},
    suite::NetworkFault,
};

/// The tenant of an attempt that carried nobody's credentials.
pub const NOBODY: &str = "(nobody)";

/// Microseconds since the run began, on the monotonic clock of this process.
pub type Micros = u64;

/// Everything that happened in one performance of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Which case.
    pub case: CaseId,
    /// Which repetition of it, from 0.
    pub round: u32,
    /// The attempts, in the order in which they were begun.
    pub attempts: Vec<Attempt>,
    /// The effect counts, in order.
    pub probes: Vec<Probe>,
    /// The movements of time, in order.
    pub controls: Vec<Control>,
    /// Why the performance stopped before its last step, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

/// One HTTP request sent for an intent, and all that came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The name of the plan's attempt; a resend of `until settled` is called `NAME~2`, `NAME~3`, ...
    pub name: String,
    /// The burst that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<String>,
    /// For a resend: the plan's name. The last one sent answers to that name in expectations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resend_of: Option<String>,
    /// The operation.
    pub operation: String,
    /// The tenant.
    pub tenant: String,
    /// The node, by its place in the target file.
    pub node: usize,
    /// What its effects are counted under: the name of the key, or of the attempt if it has none of the case.
    pub intent: String,
    /// The name of the key in the case; `None` without a key and for a raw field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The value of the key header field as sent; `None` if the field was not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_field: Option<String>,
    /// The unique value that its effects are counted under.
    pub reference: String,
    /// The payload's role.
    pub role: String,
    /// How the payload was written.
    pub encoding: Encoding,
    /// The SHA-256 of the payload's bytes, in hexadecimal.
    pub payload_sha256: String,
    /// The SHA-256 of the payload with members sorted and without spaces: equal for equal JSON values.
    pub value_sha256: String,
    /// The request line and payload for people: `POST /payments` and the body, at most 2 KiB.
    pub request: String,
    /// The payload as text for people, at most 2 KiB.
    pub payload: String,
    /// When what happened.
    pub timing: Timing,
    /// Bytes written to the connection.
    pub bytes_out: u64,
    /// Bytes read from the connection.
    pub bytes_in: u64,
    /// How it ended.
    pub end: End,
    /// What came back, as far as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Response>,
    /// What the network was made to do to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<FaultRecord>,
    /// What the handler was made to do: `slow 300ms`, `fail before`, `die after`, ...
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
    /// For an attempt that was written as exact bytes: what is unlike others about them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<String>,
}

/// The instants of an attempt. Taken before a write and after a read, so that an error only widens the interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// Before the connection was opened.
    pub opened: Micros,
    /// Before the first byte of the request was written. `None` if none was.
    pub first_out: Option<Micros>,
    /// After the last byte of the request was written. `None` if it was not.
    pub last_out: Option<Micros>,
    /// When the first byte of the answer had been read.
    pub first_in: Option<Micros>,
    /// When it had ended.
    pub ended: Micros,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// With a whole answer.
    Answered,
    /// Nothing left this machine: the connection was refused, the name did not resolve, TLS failed.
    NotSent(String),
    /// The connection ended before the whole answer was there.
    Lost(Cut),
    /// There was no whole answer in time.
    TimedOut,
    /// The answer was not HTTP, or broke a limit (head, body, interim answers). The text says which.
    Unreadable(String),
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// Whether the connection was reset; else it was closed.
    pub reset: bool,
    /// What the client library said.
    pub said: String,
}

/// An answer, as far as it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The header fields in order, at most 100 and 16 KiB; values that are not UTF-8 are escaped.
    pub fields: Vec<ParsedField>,
    /// The body.
    pub body: Body,
    /// What the operation's identity path selected in the body, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
}

/// One header field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParsedField {
    /// The name, in lower case.
    pub name: String,
    /// The value.
    pub value: String,
}

/// The body of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    /// How many bytes came.
    pub length: u64,
    /// The SHA-256 of the bytes that came, in hexadecimal.
    pub sha256: String,
    /// The first 8 KiB as text, bytes that are not UTF-8 escaped.
    pub text: String,
    /// Whether all of it came.
    pub complete: bool,
}

/// What the network was made to do to an attempt, and whether it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultRecord {
    /// Which fault.
    pub fault: NetworkFault,
    /// What the proxy was told: `limit_data downstream bytes=0`.
    pub recipe: String,
    /// Whether it hit as meant.
    pub witness: Witness,
}

/// Whether a fault hit as meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Witness {
    /// It did; the text says how that is known.
    Witnessed(String),
    /// It did not, or nothing shows that it did; the text says why.
    NotWitnessed(String),
}

/// One count of effects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Whose effects: the intent's name.
    pub intent: String,
    /// The unique value that they are counted under.
    pub reference: String,
    /// The tenant that asked.
    pub tenant: String,
    /// What it was for: `final`, or `after NAME`.
    pub purpose: String,
    /// When it began.
    pub began: Micros,
    /// When it ended.
    pub ended: Micros,
    /// What it found.
    pub result: ProbeResult,
}

/// What a probe found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeResult {
    /// So many effects.
    Counted(Count),
    /// Nothing that can be relied on; the text says why.
    Failed(String),
}

/// A count that stayed still.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// How many.
    pub effects: u64,
    /// The identity of each, as JSON text, if the probe selects identities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
    /// How many requests it took until the count stayed still.
    pub polls: u32,
}

/// One movement of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    /// What was asked.
    pub moved: TimeMove,
    /// When it began.
    pub began: Micros,
    /// When it was done.
    pub ended: Micros,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl History {
    /// The attempt that an expectation of this name speaks of: the last resend, if there are any.
    pub fn attempt(&self, name: &str) -> Option<&Attempt> {
        self.attempts.iter().rev().find(|attempt| attempt.name == name || attempt.resend_of.as_deref() == Some(name))
    }

    /// What is impossible about it, if anything is: a file may come from anywhere.
    pub fn contradiction(&self) -> Option<String> {
        let mut names: Vec<&str> = self.attempts.iter().map(|attempt| attempt.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Some(format!("two attempts are called `{}`: names must be unique within a history", twice[0]));
        }
        for attempt in &self.attempts {
            let timing = &attempt.timing;
            let inner = [timing.first_out, timing.last_out, timing.first_in];
            let late = inner.into_iter().flatten().any(|at| at > timing.ended);
            if late || timing.opened > timing.ended || timing.first_out.is_some_and(|at| at < timing.opened) {
                return Some(format!("`{}` ends before it begins: `ended` must be the latest instant", attempt.name));
            }
            if attempt.end == End::Answered && attempt.response.is_none() {
                return Some(format!("`{}` was answered and has no `response`", attempt.name));
            }
        }
        let probe = self.probes.iter().find(|probe| probe.ended < probe.began);
        probe.map(|probe| format!("the count for `{}` ends before it begins", probe.intent))
    }

    /// The attempts of a burst.
    pub fn burst<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Attempt> {
        self.attempts.iter().filter(move |attempt| attempt.burst.as_deref() == Some(name))
    }

    /// The last final count of an intent, as `tenant` saw it.
    pub fn final_count(&self, intent: &str, tenant: &str) -> Option<&Probe> {
        self.probes
            .iter()
            .rev()
            .find(|probe| probe.purpose == "final" && probe.intent == intent && probe.tenant == tenant)
    }
}

impl Response {
    /// The first field of this name (in lower case).
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|field| field.name == name).map(|field| field.value.as_str())
    }
}
