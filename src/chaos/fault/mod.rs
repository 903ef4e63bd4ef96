//! The faults that a suite can put on an attempt, in its own words, and what each comes to on the network: [`compile`]
//! turns a fault into a [`Recipe`] for a protocol and a proxy, a [`Rig`] performs it, and [`witness`] tells whether it
//! hit where it was meant to. A fault that was not witnessed is evidence of nothing.

mod map;
mod rig;
mod witness;

use std::fmt;
use std::time::Duration;

pub use map::{Ability, Executes, Expect, Move, Protocol, Recipe, Sizes, Unavailable, compile};
pub use rig::Rig;
pub use witness::{ClientEnd, Seen, witness};

use super::Ending;

/// Where an answer is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CutAt {
    /// Behind its head.
    Head,
    /// So many bytes into its body.
    Body(u64),
    /// So many bytes before its end.
    BeforeEnd(u64),
    /// Behind its last byte.
    End,
}

/// What the network does to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The connection is refused.
    Refuse,
    /// The connection is accepted and closed before anything passes.
    AcceptAndClose,
    /// Nothing of the request reaches the server, and the connection ends.
    LoseRequest(Ending),
    /// The head and so many bytes of the body reach the server, and the connection ends.
    CutBody {
        /// Bytes of the body that arrive.
        after: u64,
        /// How the connection ends.
        ending: Ending,
    },
    /// All but the last byte of the request reaches the server, and the connection ends.
    CutBeforeLastByte(Ending),
    /// The connection ends at the very moment the last byte has reached the server.
    CutAtLastByte(Ending),
    /// The whole request arrives, and the connection ends so long afterwards, while the handler runs.
    CutWhileHandling {
        /// How long after the last byte.
        after: Duration,
        /// How the connection ends.
        ending: Ending,
    },
    /// The server answers, and no byte of the answer reaches the client.
    LoseResponse(Ending),
    /// The answer reaches the client in part, and the connection ends.
    CutResponse {
        /// Which part.
        after: CutAt,
        /// How the connection ends.
        ending: Ending,
    },
    /// The answer comes so much later.
    DelayResponse(Duration),
    /// No answer ever comes, and the connection stays.
    MuteResponse,
    /// The request trickles in at so many kilobytes per second.
    SlowRequest(u32),
    /// The client leaves, and the server does not notice for so long.
    GiveUpUnnoticed(Duration),
    /// The answer waits at the proxy until it is released.
    Hold,
    /// A gateway sends the request a second time.
    ResendByGateway {
        /// Whether the client gets the second answer.
        second: bool,
    },
}

impl Fault {
    /// The words for faults in suites.
    pub const WORDS: [&'static str; 15] = [
        "refuse",
        "accept-and-close",
        "lose-request",
        "cut-body",
        "cut-before-last-byte",
        "cut-at-last-byte",
        "cut-while-handling",
        "lose-response",
        "cut-response",
        "delay-response",
        "mute-response",
        "slow-request",
        "give-up-unnoticed",
        "hold",
        "resend-by-gateway",
    ];

    /// The fault of that word, with the usual settings; `None` for another word.
    pub fn from_word(word: &str) -> Option<Self> {
        let (close, second) = (Ending::Close, Duration::from_secs(1));
        Some(match word {
            "refuse" => Self::Refuse,
            "accept-and-close" => Self::AcceptAndClose,
            "lose-request" => Self::LoseRequest(close),
            "cut-body" => Self::CutBody { after: 0, ending: close },
            "cut-before-last-byte" => Self::CutBeforeLastByte(close),
            "cut-at-last-byte" => Self::CutAtLastByte(close),
            "cut-while-handling" => Self::CutWhileHandling { after: Duration::from_millis(50), ending: close },
            "lose-response" => Self::LoseResponse(close),
            "cut-response" => Self::CutResponse { after: CutAt::Head, ending: close },
            "delay-response" => Self::DelayResponse(second),
            "mute-response" => Self::MuteResponse,
            "slow-request" => Self::SlowRequest(1),
            "give-up-unnoticed" => Self::GiveUpUnnoticed(second),
            "hold" => Self::Hold,
            "resend-by-gateway" => Self::ResendByGateway { second: true },
            _ => return None,
        })
    }

    /// The same fault with that ending; a fault that ends nothing stays as it is.
    pub fn ending(self, ending: Ending) -> Self {
        match self {
            Self::LoseRequest(_) => Self::LoseRequest(ending),
            Self::CutBody { after, .. } => Self::CutBody { after, ending },
            Self::CutBeforeLastByte(_) => Self::CutBeforeLastByte(ending),
            Self::CutAtLastByte(_) => Self::CutAtLastByte(ending),
            Self::CutWhileHandling { after, .. } => Self::CutWhileHandling { after, ending },
            Self::LoseResponse(_) => Self::LoseResponse(ending),
            Self::CutResponse { after, .. } => Self::CutResponse { after, ending },
            other => other,
        }
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        let place = match self {
            Self::Refuse => 0,
            Self::AcceptAndClose => 1,
            Self::LoseRequest(_) => 2,
            Self::CutBody { .. } => 3,
            Self::CutBeforeLastByte(_) => 4,
            Self::CutAtLastByte(_) => 5,
            Self::CutWhileHandling { .. } => 6,
            Self::LoseResponse(_) => 7,
            Self::CutResponse { .. } => 8,
            Self::DelayResponse(_) => 9,
            Self::MuteResponse => 10,
            Self::SlowRequest(_) => 11,
            Self::GiveUpUnnoticed(_) => 12,
            Self::Hold => 13,
            Self::ResendByGateway { .. } => 14,
        };
        Self::WORDS.get(place).copied().unwrap_or_default()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_word_is_a_fault_and_its_own_word() {
        for word in Fault::WORDS {
            let fault = Fault::from_word(word).unwrap();
            assert_eq!(fault.word(), word);
            assert_eq!(fault.ending(Ending::Reset).word(), word);
        }
        assert_eq!(Fault::from_word("nonsense"), None);
    }
}
