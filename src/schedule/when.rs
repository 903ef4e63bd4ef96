//! Whether an operation's policy is what a case is written for.

use super::compile::Obstacle;
use crate::{
    suite::Condition,
    target::{
        Disposal, Documented, ExpiredKey, Fingerprint, FingerprintHeaders, InFlight, KeyQuotes, KeySyntax,
        MalformedKey, Mismatch, Policy, RetentionFrom,
    },
};

/// Checks every condition; the first that does not hold is the obstacle.
pub(super) fn check(conditions: &[Condition], policy: &Policy) -> Result<(), Obstacle> {
    conditions.iter().try_for_each(|condition| match condition {
        Condition::FailureBeforeEffect(want) => {
            one("failure_before_effect", &policy.failure_before_effect, want, disposal)
        }
        Condition::FailureAfterEffect(want) => {
            one("failure_after_effect", &policy.failure_after_effect, want, disposal)
        }
        Condition::ValidationFailure(want) => one("validation_failure", &policy.validation_failure, want, disposal),
        Condition::InFlight(want) => one("in_flight", &policy.in_flight, want, |value| match value {
            InFlight::Refuse => "refuse",
            InFlight::Wait => "wait",
        }),
        Condition::Mismatch(want) => one("mismatch", &policy.mismatch, want, |value| match value {
            Mismatch::Refuse => "refuse",
            Mismatch::Replay => "replay",
            Mismatch::Execute => "execute",
        }),
        Condition::Fingerprint(want) => one("fingerprint", &policy.fingerprint, want, |value| match value {
            Fingerprint::Json => "json",
            Fingerprint::Bytes => "bytes",
        }),
        Condition::KeyRequired(want) => {
            one("key.required", &policy.key.required, want, |value| if *value { "true" } else { "false" })
        }
        Condition::MalformedKey(want) => one("key.malformed", &policy.key.malformed, want, |value| match value {
            MalformedKey::Refuse => "refuse",
            MalformedKey::Ignore => "ignore",
            MalformedKey::Accept => "accept",
        }),
        Condition::KeySyntax(want) => {
            one("key.syntax", &Documented::As(policy.key.syntax), want, |value| match value {
                KeySyntax::SfString => "sf-string",
                KeySyntax::Bare => "bare",
            })
        }
        Condition::KeyQuotes(want) => one("key.quotes", &policy.key.quotes, want, |value| match value {
            KeyQuotes::Ignored => "ignored",
            KeyQuotes::Significant => "significant",
        }),
        Condition::FingerprintHeaders(want) => {
            one("fingerprint_headers", &policy.fingerprint_headers, want, |value| match value {
                FingerprintHeaders::Ignored => "ignored",
                FingerprintHeaders::Compared => "compared",
            })
        }
        Condition::RetentionSlides(want) => {
            let slides = match &policy.retention_from {
                Documented::As(from) => Documented::As(*from == RetentionFrom::LastUse),
                Documented::Unknown => Documented::Unknown,
            };
            one("retention_from", &slides, want, |slides| if *slides { "last-use" } else { "first-use or completion" })
        }
        Condition::ExpiredKey(want) => one("expired_key", &policy.expired_key, want, |value| match value {
            ExpiredKey::Fresh => "fresh",
            ExpiredKey::Refuse => "refuse",
        }),
    })
}

fn disposal(value: &Disposal) -> &'static str {
    match value {
        Disposal::Release => "release",
        Disposal::Store => "store",
        Disposal::Hold => "hold",
        Disposal::Resume => "resume",
    }
}

fn one<T: PartialEq>(
    name: &str,
    documented: &Documented<T>,
    want: &T,
    word: impl Fn(&T) -> &'static str,
) -> Result<(), Obstacle> {
    match documented {
        Documented::As(value) if value == want => Ok(()),
        Documented::As(value) => Err(Obstacle::new(
            format!("it is for `{name}: {}`, and the target documents `{name}: {}`", word(want), word(value)),
            "nothing: it does not apply",
        )),
        Documented::Unknown => Err(Obstacle::new(
            format!("the target does not document `{name}`"),
            format!("set `policy.{name}` in the target file; this case is for `{}`", word(want)),
        )),
    }
}
