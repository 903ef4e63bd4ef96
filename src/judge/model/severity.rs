//! How bad a rejection is: the policy is relaxed until the history can be explained.

use super::{
    record::{KeyHistory, Outcome, Rules},
    search::{Answer, explain},
};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Right under another policy than the declared one.
    Policy,
    /// Right for a server that may refuse whenever it likes: clients are turned away, and nobody is harmed twice.
    Refusal,
    /// Right for no server at all.
    Safety,
}

/// What a key's history comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// Explained under these rules. `vacuous`: nothing in it could have contradicted a server.
    Accepted {
        /// Whether there was no answer and no count to explain.
        vacuous: bool,
    },
    /// Not explained.
    Rejected {
        /// How bad that is.
        level: Level,
        /// The observation that the first contradiction was found at, under the rules of the level.
        at: usize,
    },
    /// The search was too large.
    TooMuch,
}

impl Rules {
    /// Concurrency, failures and disconnections are handled in any way.
    pub fn any_policy(&self) -> Self {
        Self { conflict: true, release: true, store: true, cancels: true, held_after_release: true, ..self.clone() }
    }

    /// And every refusal is right at any time.
    pub fn any_refusal(&self) -> Self {
        Self { refuses_freely: true, ..self.any_policy() }
    }

    /// The rules of a level: what they do not explain is at least that bad.
    pub fn at_level(&self, level: Level) -> Self {
        match level {
            Level::Policy => self.clone(),
            Level::Refusal => self.any_policy(),
            Level::Safety => self.any_refusal(),
        }
    }
}

/// Judges the history of one key by rules, and by weaker ones if it has to.
pub fn judge_key(history: &KeyHistory, rules: &Rules, budget: u32) -> Ruling {
    let mut rejected = None;
    for level in [Level::Policy, Level::Refusal, Level::Safety] {
        match explain(history, &rules.at_level(level), budget) {
            Answer::Explained => break,
            Answer::Rejected(rejection) => rejected = Some((level, rejection.at)),
            // What is certain is that it is rejected so far; how much worse it is stays open.
            Answer::TooMuch if rejected.is_none() => return Ruling::TooMuch,
            Answer::TooMuch => break,
        }
    }
    match rejected {
        Some((level, at)) => Ruling::Rejected { level, at },
        None => Ruling::Accepted { vacuous: history.is_vacuous() },
    }
}

impl KeyHistory {
    /// Whether nothing in it could have contradicted a server: all was lost or refused outside, and nothing counted.
    pub fn is_vacuous(&self) -> bool {
        self.observations.iter().all(|o| {
            matches!(o.outcome, Outcome::Lost | Outcome::Unknown | Outcome::Cut | Outcome::Refused | Outcome::Rejected)
        })
    }
}
