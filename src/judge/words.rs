//! Plain words about attempts.

use super::{
    Reason,
    seen::{answer, outside},
};
use crate::{
    history::{Attempt, End},
    suite::Word,
};

/// An outcome word as suites write it.
pub(super) fn name(word: Word) -> &'static str {
    match word {
        Word::Executed => "executed",
        Word::Replay => "replay",
        Word::Success => "success",
        Word::InFlight => "in-flight",
        Word::Mismatch => "mismatch",
        Word::MissingKey => "missing-key",
        Word::BadKey => "bad-key",
        Word::Rejected => "rejected",
        Word::ServerError => "server-error",
        Word::Lost => "lost",
        Word::TimedOut => "timed-out",
    }
}

/// Several outcome words as one alternative.
pub(super) fn names(words: &[Word]) -> String {
    words.iter().map(|word| name(*word)).collect::<Vec<_>>().join(" or ")
}

/// What an attempt came to, such as `was answered 409 {"title":"..."}`.
pub(super) fn ending(attempt: &Attempt) -> String {
    match (&attempt.end, answer(attempt)) {
        (_, Some(response)) => {
            let body = short(&response.body.text);
            format!("was answered {}{}{body}", response.status, if body.is_empty() { "" } else { " " })
        }
        (End::NotSent(why), _) => format!("was not sent ({})", short(why)),
        (End::Lost(cut), _) => format!("got no whole answer ({})", short(&cut.said)),
        (End::TimedOut, _) => "got no answer in time".into(),
        (End::Unreadable(why), _) => format!("got something that is not a usable answer ({})", short(why)),
        (End::Answered, None) => "has an answer that was not recorded".into(),
    }
}

/// One line of evidence: the attempt's name, tenant and key, and what it came to.
pub(super) fn line(attempt: &Attempt) -> String {
    let key = attempt.key.as_deref().or(attempt.key_field.as_deref()).unwrap_or("none");
    format!("{} (tenant {}, key {key}, payload {}) {}", attempt.name, attempt.tenant, attempt.role, ending(attempt))
}

/// The first 80 characters, on one line.
pub(super) fn short(text: &str) -> String {
    let flat: String = text.chars().take(81).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if flat.chars().count() > 80 { format!("{}...", flat.chars().take(80).collect::<String>()) } else { flat }
}

/// Why this answer, where another one was wanted, says nothing about idempotency; `None` if it does say something.
pub(super) fn noise(attempt: &Attempt) -> Option<Reason> {
    let remedy = match (&attempt.end, answer(attempt).map(|response| response.status)) {
        (_, Some(401 | 403 | 407)) => format!("check the credentials of tenant `{}`", attempt.tenant),
        (_, Some(429)) => "lower `limits.rate` in the target file, or ask for a higher limit".into(),
        (_, Some(502..=504)) => "run again once the target, or the gateway before it, is available".into(),
        (_, Some(status)) if outside(status) => {
            format!("check `request` and `headers` of operation `{}` in the target file", attempt.operation)
        }
        (_, Some(_)) => return None,
        (End::NotSent(_), _) => "check `base_url` in the target file, and that the target runs".into(),
        (End::TimedOut, _) => "raise `limits.timeout` in the target file, or look why the target hangs".into(),
        _ => "look into the target's log for this request, and run again".into(),
    };
    Some(Reason { why: format!("`{}` {}", attempt.name, ending(attempt)), remedy })
}
