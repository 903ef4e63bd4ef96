//! The fault map: which moves make which fault, by protocol and by what the proxy can do. Rows are those of the
//! research on a real Toxiproxy, `a1` to `i-1`, and `x` where only the embedded proxy can.

use std::fmt;
use std::time::Duration;

use super::{CutAt, Fault};
use crate::chaos::{ClientSide, Deed, Ending, Point, ServerSide, Stream, Toxic, Trigger};

/// What client and server speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// HTTP/1.1 in plain text.
    Http1,
    /// HTTP/1.1 inside TLS.
    Tls,
    /// HTTP/2 in plain text.
    H2c,
    /// HTTP/2 inside TLS.
    H2,
}

impl Protocol {
    /// Whether bytes are hidden in records.
    pub fn is_encrypted(self) -> bool {
        matches!(self, Self::Tls | Self::H2)
    }

    fn is_h2(self) -> bool {
        matches!(self, Self::H2c | Self::H2)
    }
}

/// What the proxy can do, as found out at the start of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ability {
    /// It is the embedded one.
    pub extensions: bool,
    /// `limit_data` cuts at the exact byte.
    pub exact: bool,
    /// A sleeping `reset_peer` makes every ending a reset.
    pub primer: bool,
}

/// What is known of the bytes of an exchange. Inside TLS these are the bytes before encryption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// The head of the request.
    pub request_head: u64,
    /// The whole request.
    pub request: u64,
    /// A whole answer, measured on an earlier exchange.
    pub answer: Option<u64>,
    /// The longest time that the client waits for the answer.
    pub patience: Duration,
}

/// One thing that the proxy is told, or that is waited for.
#[derive(Clone, Debug, PartialEq)]
pub enum Move {
    /// A toxic.
    Add(Stream, Toxic),
    /// A toxic that sleeps.
    Asleep(Stream, Toxic),
    /// The sleeping toxic wakes.
    Wake,
    /// A trigger.
    Trigger(Trigger),
    /// The proxy is opened or closed.
    Enabled(bool),
    /// The upstream is told to refuse.
    DialRefused,
    /// So long.
    Sleep(Duration),
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add(stream, toxic) => write!(f, "{toxic} {stream}"),
            Self::Asleep(stream, toxic) => write!(f, "{toxic} {stream} asleep"),
            Self::Wake => f.write_str("wake it"),
            Self::Trigger(trigger) => trigger.fmt(f),
            Self::Enabled(true) => f.write_str("open the proxy"),
            Self::Enabled(false) => f.write_str("close the proxy"),
            Self::DialRefused => f.write_str("refuse behind the proxy"),
            Self::Sleep(time) => write!(f, "wait {} ms", time.as_millis()),
        }
    }
}

/// Whether the server may have executed the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Executes {
    /// It cannot have.
    No,
    /// Nobody but the server knows.
    Maybe,
    /// It has, if it answers at all.
    Yes,
}

/// What must be seen for the fault to have hit as meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The client could not connect.
    Refused,
    /// The connection ended and the server got nothing.
    NothingSent,
    /// The connection ended after exactly so many bytes of the request, without encryption.
    SentExactly(u64),
    /// The connection ended after a part of the request.
    SentInPart,
    /// The whole request arrived, the connection ended, no byte of the answer came.
    NoAnswer {
        /// That the server had answered must be seen as well.
        answered: bool,
    },
    /// The connection ended after a part of the answer.
    AnswerInPart,
    /// The whole answer came, and then the connection ended.
    AnswerThenEnd,
    /// The whole answer came, not earlier than this after the request.
    AnswerAfter(Duration),
    /// The whole request arrived, the client left without an answer, and the connection to the server stood on.
    Unnoticed,
    /// The whole request arrived, and the client left without an answer.
    GaveUp,
    /// The request went out twice.
    SentTwice,
}

/// How a fault is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// The fault.
    pub fault: Fault,
    /// The row of the fault map.
    pub row: &'static str,
    /// Before the client connects.
    pub before: Vec<Move>,
    /// An exchange of another kind has to succeed on the connection before arming.
    pub prime: bool,
    /// After priming, before the request.
    pub arm: Vec<Move>,
    /// The request is written up to here, flushed, and only then the rest of the moves and bytes follow. In bytes
    /// before encryption.
    pub split: Option<u64>,
    /// After the part before the split.
    pub at_split: Vec<Move>,
    /// After the whole request was written.
    pub after: Vec<Move>,
    /// The ending that the client must see.
    pub ending: Option<Ending>,
    /// What must be seen.
    pub expect: Expect,
    /// Whether the server may have executed the request.
    pub executes: Executes,
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phases = [
            ("", &self.before),
            ("after priming: ", &self.arm),
            ("at the split: ", &self.at_split),
            ("after the request: ", &self.after),
        ];
        let mut parts = Vec::new();
        for (when, moves) in phases.into_iter().filter(|(_, moves)| !moves.is_empty()) {
            let moves: Vec<_> = moves.iter().map(Move::to_string).collect();
            parts.push(format!("{when}{}", moves.join(", ")));
        }
        write!(f, "{}: {}", self.row, parts.join("; "))
    }
}

/// A fault that cannot be made here. The case is skipped with this reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} cannot be made here: {why}")]
pub struct Unavailable {
    /// Which.
    pub fault: Fault,
    /// Why not, and what would help.
    pub why: String,
}

const NEEDS_EMBEDDED: &str = "it needs the embedded fault proxy; leave out --toxiproxy";

/// Chooses the moves for a fault.
///
/// # Errors
/// When no moves of this proxy make it over this protocol.
pub fn compile(fault: Fault, protocol: Protocol, ability: Ability, sizes: Sizes) -> Result<Recipe, Unavailable> {
    let no = |why: &str| Err(Unavailable { fault, why: why.to_owned() });
    let plain_extension = ability.extensions && protocol == Protocol::Http1;
    let up = |bytes| Move::Add(Stream::Upstream, Toxic::LimitData { bytes });
    let down = |bytes| Move::Add(Stream::Downstream, Toxic::LimitData { bytes });
    let recipe = |row, expect, executes| Recipe {
        fault,
        row,
        before: vec![],
        prime: false,
        arm: vec![],
        split: None,
        at_split: vec![],
        after: vec![],
        ending: None,
        expect,
        executes,
    };
    let body = sizes.request.saturating_sub(sizes.request_head);
    // On a real Toxiproxy an ending is a reset only through a sleeping reset that is there before the connection.
    let ended = |mut recipe: Recipe, ending: Ending| {
        recipe.ending = Some(ending);
        if ending == Ending::Close {
            return Ok(recipe);
        }
        if !ability.primer {
            return no("this Toxiproxy does not turn endings into resets; use the ending `close`");
        }
        recipe.before.push(Move::Asleep(Stream::Upstream, Toxic::ResetPeer { timeout_ms: 0 }));
        Ok(recipe)
    };
    let cut = |at, ending| Move::Trigger(Trigger::cut(at, ending));
    let exact = |made: Result<Recipe, Unavailable>| {
        if ability.exact { made } else { no("this Toxiproxy does not cut at the exact byte") }
    };
    match fault {
        Fault::Refuse => {
            Ok(Recipe { before: vec![Move::Enabled(false)], ..recipe("a1", Expect::Refused, Executes::No) })
        }
        Fault::AcceptAndClose if !ability.extensions => no(NEEDS_EMBEDDED),
        Fault::AcceptAndClose => {
            Ok(Recipe { before: vec![Move::DialRefused], ..recipe("a2", Expect::NothingSent, Executes::No) })
        }
        Fault::LoseRequest(Ending::Close) => {
            let made = recipe("a4", Expect::NothingSent, Executes::No);
            exact(ended(Recipe { prime: true, arm: vec![up(0)], ..made }, Ending::Close))
        }
        Fault::LoseRequest(Ending::Reset) => {
            let made = Recipe { prime: true, arm: vec![Move::Wake], ..recipe("a5", Expect::NothingSent, Executes::No) };
            ended(made, Ending::Reset)
        }
        Fault::CutBody { after, .. } if after >= body => no("the body has not more bytes than should arrive"),
        Fault::CutBody { after, ending } if plain_extension => {
            let made = recipe("b", Expect::SentExactly(sizes.request_head + after), Executes::No);
            let arm = vec![cut(Point::RequestBody(after), ending)];
            Ok(Recipe { arm, ending: Some(ending), ..made })
        }
        Fault::CutBody { after, ending } if protocol == Protocol::Http1 => {
            let bytes = sizes.request_head + after;
            exact(ended(
                Recipe { arm: vec![up(bytes)], ..recipe("b", Expect::SentExactly(bytes), Executes::No) },
                ending,
            ))
        }
        // A record arrives whole or not at all, so that the part to arrive must have left before the cut is armed.
        Fault::CutBody { after, ending } => {
            let made = recipe("b", Expect::SentInPart, Executes::No);
            let (split, at_split) = (Some(sizes.request_head + after), vec![up(0)]);
            exact(ended(Recipe { prime: true, split, at_split, ..made }, ending))
        }
        Fault::CutBeforeLastByte(_) if body == 0 => no("the request has no body"),
        Fault::CutBeforeLastByte(ending) if protocol == Protocol::Http1 => {
            let made = recipe("i-1", Expect::SentExactly(sizes.request - 1), Executes::No);
            if ability.extensions {
                let arm = vec![cut(Point::RequestBodyBeforeEnd(1), ending)];
                return Ok(Recipe { arm, ending: Some(ending), ..made });
            }
            exact(ended(Recipe { arm: vec![up(sizes.request - 1)], ..made }, ending))
        }
        Fault::CutBeforeLastByte(ending) => {
            let made = recipe("i-1", Expect::SentInPart, Executes::No);
            let (split, at_split) = (Some(sizes.request - 1), vec![up(0)]);
            exact(ended(Recipe { prime: true, split, at_split, ..made }, ending))
        }
        Fault::CutAtLastByte(ending) if plain_extension => {
            let made = recipe("i", Expect::NoAnswer { answered: false }, Executes::Maybe);
            Ok(Recipe { arm: vec![cut(Point::RequestEnd, ending)], ending: Some(ending), ..made })
        }
        Fault::CutAtLastByte(ending) if protocol == Protocol::Http1 => {
            let made = recipe("i", Expect::NoAnswer { answered: false }, Executes::Maybe);
            exact(ended(Recipe { arm: vec![up(sizes.request)], ..made }, ending))
        }
        Fault::CutAtLastByte(_) => no("inside TLS and HTTP/2 the last byte of a request cannot be found from outside"),
        Fault::CutWhileHandling { after, ending } if plain_extension => {
            let ends = (ClientSide::Ends(ending), ServerSide::Ends(ending));
            let deed = Deed::Cut { client: ends.0, server: ends.1, delivered: false, delay: after };
            let made = recipe("c1", Expect::NoAnswer { answered: false }, Executes::Maybe);
            let arm = vec![Move::Trigger(Trigger::new(Point::RequestEnd, deed))];
            Ok(Recipe { arm, ending: Some(ending), ..made })
        }
        Fault::CutWhileHandling { after, ending } => {
            let made = recipe("c1", Expect::NoAnswer { answered: false }, Executes::Maybe);
            ended(Recipe { prime: true, after: vec![Move::Sleep(after), Move::Enabled(false)], ..made }, ending)
        }
        Fault::LoseResponse(ending) if plain_extension => {
            // The server is left to finish, because some drop what they do when their client leaves.
            let deed = Deed::Cut {
                client: ClientSide::Ends(ending),
                server: ServerSide::Kept,
                delivered: false,
                delay: Duration::ZERO,
            };
            let made = recipe("d1", Expect::NoAnswer { answered: true }, Executes::Yes);
            let arm = vec![Move::Trigger(Trigger::new(Point::ResponseStart, deed))];
            Ok(Recipe { arm, ending: Some(ending), ..made })
        }
        Fault::LoseResponse(ending) => {
            let row = if ending == Ending::Close { "d1" } else { "d2" };
            let made = recipe(row, Expect::NoAnswer { answered: true }, Executes::Yes);
            exact(ended(Recipe { prime: true, arm: vec![down(0)], ..made }, ending))
        }
        Fault::CutResponse { after, ending } if plain_extension => {
            let (row, at, expect) = match after {
                CutAt::Head => ("e1", Point::ResponseHead, Expect::AnswerInPart),
                CutAt::Body(bytes) => ("e2", Point::ResponseBody(bytes), Expect::AnswerInPart),
                CutAt::BeforeEnd(0) | CutAt::End => ("e3", Point::ResponseEnd, Expect::AnswerThenEnd),
                CutAt::BeforeEnd(bytes) => ("e2", Point::ResponseBodyBeforeEnd(bytes), Expect::AnswerInPart),
            };
            Ok(Recipe { arm: vec![cut(at, ending)], ending: Some(ending), ..recipe(row, expect, Executes::Yes) })
        }
        Fault::CutResponse { .. } if protocol.is_h2() => no("frames of HTTP/2 have no byte that can be counted to"),
        Fault::CutResponse { after: CutAt::BeforeEnd(_) | CutAt::End, .. } if sizes.answer.is_none() => {
            no("the size of an answer is not known: measure one first")
        }
        Fault::CutResponse { after, ending } if protocol == Protocol::Http1 => {
            let whole = sizes.answer.unwrap_or(0);
            let (row, bytes, expect) = match after {
                CutAt::End | CutAt::BeforeEnd(0) => ("e3", whole, Expect::AnswerThenEnd),
                CutAt::BeforeEnd(bytes) => ("e2", whole.saturating_sub(bytes).max(1), Expect::AnswerInPart),
                CutAt::Head | CutAt::Body(_) => return no(NEEDS_EMBEDDED),
            };
            exact(ended(Recipe { prime: true, arm: vec![down(bytes)], ..recipe(row, expect, Executes::Yes) }, ending))
        }
        Fault::CutResponse { after: CutAt::End | CutAt::BeforeEnd(0), .. } => {
            no("inside TLS the end of an answer cannot be found from outside")
        }
        Fault::CutResponse { ending, .. } if ability.extensions => {
            // Answers of several records can be cut between them; one record alone comes whole or not at all.
            let made = recipe("e2", Expect::AnswerInPart, Executes::Yes);
            Ok(Recipe { prime: true, arm: vec![cut(Point::ResponseRecord(1), ending)], ending: Some(ending), ..made })
        }
        Fault::CutResponse { .. } => no(NEEDS_EMBEDDED),
        Fault::DelayResponse(by) => {
            let latency_ms = u32::try_from(by.as_millis()).unwrap_or(u32::MAX);
            let arm = vec![Move::Add(Stream::Downstream, Toxic::Latency { latency_ms, jitter_ms: 0 })];
            let expect = if by < sizes.patience { Expect::AnswerAfter(by) } else { Expect::GaveUp };
            Ok(Recipe { prime: protocol.is_encrypted(), arm, ..recipe("f1", expect, Executes::Yes) })
        }
        Fault::MuteResponse => {
            let arm = vec![Move::Add(Stream::Downstream, Toxic::Bandwidth { rate_kb: 0 })];
            Ok(Recipe { prime: protocol.is_encrypted(), arm, ..recipe("f2", Expect::GaveUp, Executes::Yes) })
        }
        Fault::SlowRequest(rate_kb) => {
            // A tenth of a second passes per piece; the first piece is not delayed by more than that.
            let millis = (sizes.request / u64::from(rate_kb.max(1))).saturating_sub(100);
            let arm = vec![Move::Add(Stream::Upstream, Toxic::Bandwidth { rate_kb: rate_kb.max(1) })];
            let expect = Expect::AnswerAfter(Duration::from_millis(millis));
            Ok(Recipe { prime: protocol.is_encrypted(), arm, ..recipe("h", expect, Executes::Yes) })
        }
        Fault::GiveUpUnnoticed(_) if plain_extension => {
            // The client hears nothing and leaves; the server's connection stands until it has answered.
            let silent = (ClientSide::Silent, ServerSide::Kept);
            let deed = Deed::Cut { client: silent.0, server: silent.1, delivered: false, delay: Duration::ZERO };
            let arm = vec![Move::Trigger(Trigger::new(Point::RequestEnd, deed))];
            Ok(Recipe { arm, ..recipe("f3", Expect::Unnoticed, Executes::Yes) })
        }
        Fault::GiveUpUnnoticed(unnoticed) => {
            let slow = Move::Add(Stream::Upstream, Toxic::SlowClose { delay_ms: millis(sizes.patience + unnoticed) });
            let deaf = Move::Add(Stream::Downstream, Toxic::Bandwidth { rate_kb: 0 });
            // What says goodbye inside TLS and HTTP/2 travels as data, so that it must be held back as well, once the
            // request is through.
            let mute = Move::Add(Stream::Upstream, Toxic::Bandwidth { rate_kb: 0 });
            let after = match protocol {
                Protocol::Http1 => vec![],
                _ => vec![Move::Sleep(Duration::from_millis(80)), mute],
            };
            let made = recipe("f3", Expect::Unnoticed, Executes::Yes);
            Ok(Recipe { prime: protocol.is_encrypted(), arm: vec![deaf, slow], after, ..made })
        }
        Fault::Hold if plain_extension => {
            let arm = vec![Move::Trigger(Trigger::new(Point::ResponseStart, Deed::Hold))];
            Ok(Recipe { arm, ..recipe("x8", Expect::AnswerAfter(Duration::ZERO), Executes::Yes) })
        }
        // A rate of zero holds without loss, and removing it releases.
        Fault::Hold => {
            let arm = vec![Move::Add(Stream::Downstream, Toxic::Bandwidth { rate_kb: 0 })];
            let made = recipe("f2", Expect::AnswerAfter(Duration::ZERO), Executes::Yes);
            Ok(Recipe { prime: protocol.is_encrypted(), arm, ..made })
        }
        Fault::ResendByGateway { second } if plain_extension => {
            let deed = Deed::Resend { second, first_server: ServerSide::Kept };
            let arm = vec![Move::Trigger(Trigger::new(Point::RequestEnd, deed))];
            Ok(Recipe { arm, ..recipe("x10", Expect::SentTwice, Executes::Yes) })
        }
        Fault::ResendByGateway { .. } if ability.extensions => {
            no("a gateway cannot repeat what is inside TLS or HTTP/2")
        }
        Fault::ResendByGateway { .. } => no(NEEDS_EMBEDDED),
    }
}

fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
