//! Whether a fault has hit where it was meant to: the ledger of the proxy, the byte counts of the client and the error of
//! its own socket must agree.

use std::time::Duration;

use super::{Expect, Recipe};
use crate::chaos::{Connection, Ending, Flow};

/// How an attempt ended for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientEnd {
    /// It could not connect.
    NotConnected,
    /// With a whole answer, and the connection stood.
    Answered,
    /// With a whole answer, and then the connection ended in this way.
    AnsweredThen(Ending),
    /// The connection ended in this way before there was a whole answer.
    Lost(Ending),
    /// It gave up waiting.
    GaveUp,
}

/// What the client has seen. Bytes are those on the connection to the proxy, since arming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Bytes that it wrote.
    pub sent: u64,
    /// Bytes that the whole request has on the connection.
    pub whole: u64,
    /// Bytes that it read.
    pub received: u64,
    /// How it ended.
    pub end: ClientEnd,
    /// How long after the request the answer was there or given up.
    pub took: Duration,
}

/// What the ledger says, since arming.
struct Passed<'a> {
    now: &'a Connection,
    up: u64,
    down_read: u64,
    down: u64,
    requests: u64,
}

impl<'a> Passed<'a> {
    fn since(now: &'a Connection, base: Option<&Connection>) -> Self {
        let none = (Flow::default(), Flow::default(), 0);
        let base = base.map_or(none, |base| (base.upstream, base.downstream, base.requests));
        Self {
            now,
            up: now.upstream.written.saturating_sub(base.0.written),
            down_read: now.downstream.read.saturating_sub(base.1.read),
            down: now.downstream.written.saturating_sub(base.1.written),
            requests: now.requests.saturating_sub(base.2),
        }
    }
}

/// Decides whether the fault has hit as meant. `ledger` and `base` are the proxy's, where it keeps a ledger; without one
/// only the client speaks, and what only the server knows has to be shown by its effects.
///
/// # Errors
/// When it has not, or nothing shows that it has; the text says why. The case is inconclusive then.
pub fn witness(
    recipe: &Recipe,
    seen: &Seen,
    ledger: Option<&Connection>,
    base: Option<&Connection>,
) -> Result<String, String> {
    let passed = ledger.map(|now| Passed::since(now, base));
    let passed = passed.as_ref();
    ending(recipe, seen)?;
    let client = match recipe.expect {
        Expect::Refused => match (seen.end, passed) {
            (ClientEnd::NotConnected, None) => "the connection was refused".to_owned(),
            (ClientEnd::NotConnected, Some(_)) => return Err("the proxy has seen a connection".to_owned()),
            (end, _) => return Err(format!("the connection was not refused: {end:?}")),
        },
        Expect::NothingSent => {
            // A connection that ends during the handshake of TLS was never one for its client.
            if seen.end != ClientEnd::NotConnected || passed.is_none() {
                lost(seen)?;
            }
            nothing_received(seen)?;
            if let Some(passed) = passed.filter(|passed| passed.up > 0) {
                return Err(format!("{} bytes of the request reached the server", passed.up));
            }
            "the connection ended, and nothing came back".to_owned()
        }
        Expect::SentExactly(bytes) => {
            lost_or_refused(seen)?;
            if let Some(passed) = passed.filter(|passed| passed.up != bytes || passed.requests > 0) {
                return Err(format!("{} bytes of the request reached the server, not {bytes}", passed.up));
            }
            format!("the connection ended; {bytes} bytes of the request were let through")
        }
        Expect::SentInPart => {
            lost_or_refused(seen)?;
            match passed {
                Some(passed) if passed.up == 0 => return Err("nothing of the request reached the server".to_owned()),
                Some(passed) if passed.up >= seen.whole => {
                    return Err("the whole request reached the server".to_owned());
                }
                _ => "the connection ended after a part of the request".to_owned(),
            }
        }
        Expect::NoAnswer { answered } => {
            lost(seen)?;
            nothing_received(seen)?;
            if seen.sent < seen.whole {
                return Err(format!("only {} of {} bytes of the request left the client", seen.sent, seen.whole));
            }
            if let Some(passed) = passed {
                if passed.up < seen.whole {
                    return Err(format!("only {} of {} bytes reached the server", passed.up, seen.whole));
                }
                if passed.down > 0 {
                    return Err(format!("{} bytes of the answer went to the client", passed.down));
                }
                if answered && passed.down_read == 0 && passed.now.answers_drained == 0 {
                    return Err("nothing shows that the server had answered".to_owned());
                }
                if !answered && passed.down_read > 0 {
                    return Err("the server had answered before the cut".to_owned());
                }
            }
            "the whole request left, the connection ended, and no byte of the answer came".to_owned()
        }
        Expect::AnswerInPart => {
            lost(seen)?;
            if seen.received == 0 {
                return Err("no byte of the answer came".to_owned());
            }
            if let Some(passed) = passed.filter(|passed| passed.down < seen.received) {
                let (down, received) = (passed.down, seen.received);
                return Err(format!("the client read {received} bytes, and only {down} went through the proxy"));
            }
            format!("{} bytes of the answer came, and the connection ended", seen.received)
        }
        Expect::AnswerThenEnd => match seen.end {
            ClientEnd::AnsweredThen(_) => "the whole answer came, and then the connection ended".to_owned(),
            end => return Err(format!("the connection did not end after the answer: {end:?}")),
        },
        Expect::AnswerAfter(least) => match seen.end {
            ClientEnd::Answered | ClientEnd::AnsweredThen(_) if seen.took >= least => {
                format!("the answer came after {} ms", seen.took.as_millis())
            }
            ClientEnd::Answered | ClientEnd::AnsweredThen(_) => {
                return Err(format!("the answer came after {} ms already", seen.took.as_millis()));
            }
            end => return Err(format!("no whole answer came: {end:?}")),
        },
        Expect::GaveUp | Expect::Unnoticed => {
            if seen.end != ClientEnd::GaveUp {
                return Err(format!("the client did not give up: {:?}", seen.end));
            }
            nothing_received(seen)?;
            if seen.sent < seen.whole {
                return Err(format!("only {} of {} bytes of the request left the client", seen.sent, seen.whole));
            }
            if let Some(passed) = passed.filter(|passed| passed.up < seen.whole) {
                return Err(format!("only {} of {} bytes reached the server", passed.up, seen.whole));
            }
            let cut_off = |passed: &&Passed| passed.now.server.is_some() && passed.now.speech == "http/1";
            if let Some(passed) = passed.filter(cut_off)
                && recipe.expect == Expect::Unnoticed
                && passed.now.answers_drained == 0
                && passed.down_read == 0
            {
                return Err("the connection to the server ended before it had answered".to_owned());
            }
            "the whole request left, and the client gave up without a byte of the answer".to_owned()
        }
        Expect::SentTwice => {
            let replays = passed.map_or(&[][..], |passed| &passed.now.replays);
            match replays {
                [replay] if replay.sent => "the proxy sent the request a second time".to_owned(),
                [replay] => return Err(replay.why.clone().unwrap_or_else(|| "the second sending failed".to_owned())),
                all => return Err(format!("the request was sent again {} times", all.len())),
            }
        }
    };
    Ok(match passed.and_then(|passed| passed.now.cause.as_deref().map(|cause| (passed, cause))) {
        Some((passed, cause)) => {
            format!("{client}; the proxy passed {} bytes up and {} down ({cause})", passed.up, passed.down)
        }
        None => client,
    })
}

/// The socket's own error must be the ending that was asked for.
fn ending(recipe: &Recipe, seen: &Seen) -> Result<(), String> {
    let (Some(asked), ClientEnd::Lost(got) | ClientEnd::AnsweredThen(got)) = (recipe.ending, seen.end) else {
        return Ok(());
    };
    if asked == got {
        return Ok(());
    }
    Err(format!("the connection ended by {}, and {} was asked for", got.as_str(), asked.as_str()))
}

fn lost(seen: &Seen) -> Result<(), String> {
    match seen.end {
        ClientEnd::Lost(_) => Ok(()),
        end => Err(format!("the connection was not cut: {end:?}")),
    }
}

/// A server may refuse a request that it got in part before the cut is seen.
fn lost_or_refused(seen: &Seen) -> Result<(), String> {
    match seen.end {
        ClientEnd::NotConnected | ClientEnd::GaveUp => lost(seen),
        _ => Ok(()),
    }
}

fn nothing_received(seen: &Seen) -> Result<(), String> {
    if seen.received == 0 { Ok(()) } else { Err(format!("{} bytes came back", seen.received)) }
}

#[cfg(test)]
mod tests;
