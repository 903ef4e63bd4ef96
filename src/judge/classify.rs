//! What each attempt may come to, by the operation's policy and by what else the history shows.

use std::collections::BTreeSet;

use super::seen::{Seen, answer, before, fails, same_key, start, unique_looking};
use crate::{
    history::{Attempt, End, Response},
    suite::Word,
    target::ReplayStatus,
};

/// The outcomes that an attempt may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    all: BTreeSet<Word>,
    either: bool,
}

impl Words {
    /// No outcome at all.
    pub const NOTHING: Self = Self { all: BTreeSet::new(), either: false };

    /// These outcomes; it is not known which one.
    fn unknown(words: impl IntoIterator<Item = Word>) -> Self {
        Self { all: words.into_iter().collect(), either: false }
    }

    /// These outcomes, each of which is a right name for what happened: one status code with several meanings, or
    /// overlapping attempts of which any may be called the one that did the work.
    fn either(words: impl IntoIterator<Item = Word>) -> Self {
        Self { all: words.into_iter().collect(), either: true }
    }

    /// Whether it may be this one.
    pub fn may_be(&self, word: Word) -> bool {
        self.all.contains(&word)
    }

    /// Whether it is certainly this one.
    pub fn is_just(&self, word: Word) -> bool {
        self.all.len() == 1 && self.may_be(word)
    }

    /// Whether any of several outcomes is a right name for it.
    pub fn is_either(&self) -> bool {
        self.either
    }

    /// Whether it is one of these: `Some` if that is decided.
    pub fn fit(&self, wanted: &[Word]) -> Option<bool> {
        let wants = |word: &Word| {
            wanted.contains(word) || (wanted.contains(&Word::Success) && matches!(word, Word::Executed | Word::Replay))
        };
        let fitting = self.all.iter().filter(|word| wants(word)).count();
        match fitting {
            0 => Some(false),
            n if n == self.all.len() || self.either => Some(true),
            _ => None,
        }
    }
}

/// The outcomes that an attempt may be.
pub(super) fn words<'a>(seen: &Seen<'a>, attempt: &'a Attempt) -> Words {
    match (&attempt.end, answer(attempt)) {
        (End::TimedOut, _) => Words::unknown([Word::TimedOut]),
        (End::Answered, Some(response)) => answered(seen, attempt, response),
        _ => Words::unknown([Word::Lost]),
    }
}

fn answered<'a>(seen: &Seen<'a>, attempt: &'a Attempt, response: &Response) -> Words {
    let status = response.status;
    if let Some(success) = seen.success(attempt) {
        return success_words(seen, attempt, success.identity, response);
    }
    let mut words = BTreeSet::new();
    if attempt.key_field.is_none() {
        if seen.policy.key.missing_status.contains(status) {
            words.insert(Word::MissingKey);
        }
    } else {
        if attempt.key.is_none() {
            if seen.policy.key.malformed_status.contains(status) {
                words.insert(Word::BadKey);
            }
            // A server that ignores a malformed field treats the request as one without a key.
            if seen.policy.key.missing_status.contains(status) {
                words.insert(Word::MissingKey);
            }
        }
        if seen.policy.in_flight_status.contains(status)
            && seen.rivals(attempt).any(|other| seen.may_run_during(other, attempt))
        {
            words.insert(Word::InFlight);
        }
        if seen.policy.mismatch_status.contains(status)
            && seen.rivals(attempt).any(|other| seen.may_differ(other, attempt))
        {
            words.insert(Word::Mismatch);
        }
        let replayed = matches!(&seen.policy.replay.status, ReplayStatus::Other(set) if set.contains(status));
        if replayed && seen.rivals(attempt).any(|other| seen.success(other).is_some()) {
            words.insert(Word::Replay);
        }
    }
    if status >= 500 {
        words.insert(Word::ServerError);
    } else if words.is_empty() || (attempt.key.is_some() && !seen.accepted(attempt)) {
        // The control: where the API has accepted this very payload, its refusal is no matter of business.
        words.insert(Word::Rejected);
    }
    Words::either(words)
}

/// Executed or replayed: by identity first, then by who could have executed at all, then by the marker.
fn success_words<'a>(seen: &Seen<'a>, attempt: &'a Attempt, identity: Option<&str>, response: &Response) -> Words {
    use Word::{Executed, Replay};
    let rivals: Vec<_> = seen.rivals(attempt).filter(|_| attempt.key_field.is_some()).collect();
    let unseen = rivals.iter().any(|other| seen.may_have_executed_unseen(other));
    let marked = marked(seen, response);
    let by_marker = |otherwise: Words| match marked {
        Some(true) => Words::unknown([Replay]),
        Some(false) => Words::unknown([Executed]),
        None => otherwise,
    };
    let Some(identity) = identity else {
        let possible = unseen || rivals.iter().any(|other| seen.success(other).is_some());
        return if possible { by_marker(Words::unknown([Executed, Replay])) } else { Words::unknown([Executed]) };
    };
    let same = |other: &&&'a Attempt| seen.success(other).is_some_and(|s| s.identity == Some(identity));
    let twins: Vec<_> = rivals.iter().filter(same).collect();
    if twins.iter().any(|twin| before(twin, attempt)) {
        return Words::unknown([Replay]);
    }
    if !twins.is_empty() {
        // Equal answers in an overlap: one of them did the work, and the first one sent may be called that one,
        // unless the marker tells.
        return match marked {
            Some(true) => Words::unknown([Replay]),
            _ if twins.iter().all(|twin| first_of(attempt, twin) || tells(seen, twin)) => {
                if unseen {
                    Words::unknown([Executed, Replay])
                } else {
                    Words::either([Executed, Replay])
                }
            }
            _ => Words::unknown([Replay]),
        };
    }
    let foreign = seen.successes().any(|other| {
        other.identity == Some(identity) && !same_key(other.attempt, attempt) && before(other.attempt, attempt)
    });
    if foreign {
        let sure = attempt.key_field.is_some() && unique_looking(identity);
        return if sure { Words::unknown([Replay]) } else { Words::unknown([Executed, Replay]) };
    }
    if !unseen {
        return Words::unknown([Executed]);
    }
    // Who is counted right after an attempt and never again was the last one to execute.
    let settled = rivals.iter().filter(|other| before(other, attempt)).any(|other| {
        let after = super::effects::after(seen.history, other).filter(|count| *count > 0);
        let last = seen.count(&attempt.intent, &attempt.tenant).map(|count| count.effects);
        after.is_some() && after == last
    });
    if settled { Words::unknown([Replay]) } else { by_marker(Words::unknown([Executed, Replay])) }
}

/// Whether `a` was sent before `b`; equal instants are told apart by their order in the record.
fn first_of(a: &Attempt, b: &Attempt) -> bool {
    (start(a), &a.timing.opened, &a.name) < (start(b), &b.timing.opened, &b.name)
}

/// Whether the twin is marked as a replay, and so is not the one that did the work.
fn tells(seen: &Seen<'_>, twin: &Attempt) -> bool {
    answer(twin).and_then(|response| marked(seen, response)) == Some(true)
}

/// Whether an answer carries the documented marker; `None` if no marker is documented.
pub(super) fn marked(seen: &Seen<'_>, response: &Response) -> Option<bool> {
    let (name, value) = seen.policy.replay.marker.as_ref()?;
    let wanted = String::from_utf8_lossy(value.as_bytes()).trim().to_ascii_lowercase();
    Some(response.field(name.as_str()).is_some_and(|found| found.trim().to_ascii_lowercase() == wanted))
}

/// Whether the refusal of this attempt may be due to a hook: some APIs compare header fields as well.
pub(super) fn hook_may_explain(seen: &Seen<'_>, attempt: &Attempt) -> bool {
    let status = answer(attempt).map(|response| response.status);
    status.is_some_and(|status| seen.policy.mismatch_status.contains(status))
        && seen
            .rivals(attempt)
            .any(|other| other.hooks != attempt.hooks && (fails(other, "") || !other.hooks.is_empty()))
}
