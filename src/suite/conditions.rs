//! What a case asks of the policy of an operation.

use super::{Condition, file::Text};
use crate::{
    target::{
        Disposal, ExpiredKey, Fingerprint, FingerprintHeaders, InFlight, KeyQuotes, KeySyntax, MalformedKey, Mismatch,
    },
    text::{Check, suggestion},
};

/// One line of `when`.
pub(super) fn read(check: &mut Check<'_>, key: &Text, value: &Text) -> Option<Condition> {
    let disposal = [
        ("release", Disposal::Release),
        ("store", Disposal::Store),
        ("hold", Disposal::Hold),
        ("resume", Disposal::Resume),
    ];
    let what = format!("value of `{}`", key.value);
    match key.value.as_str() {
        "failure_before_effect" => check.word(&what, value, &disposal).map(Condition::FailureBeforeEffect),
        "failure_after_effect" => check.word(&what, value, &disposal).map(Condition::FailureAfterEffect),
        "validation_failure" => check.word(&what, value, &disposal).map(Condition::ValidationFailure),
        "in_flight" => {
            check.word(&what, value, &[("refuse", InFlight::Refuse), ("wait", InFlight::Wait)]).map(Condition::InFlight)
        }
        "mismatch" => check
            .word(
                &what,
                value,
                &[("refuse", Mismatch::Refuse), ("replay", Mismatch::Replay), ("execute", Mismatch::Execute)],
            )
            .map(Condition::Mismatch),
        "fingerprint" => check
            .word(&what, value, &[("json", Fingerprint::Json), ("bytes", Fingerprint::Bytes)])
            .map(Condition::Fingerprint),
        "key_required" => check.word(&what, value, &[("true", true), ("false", false)]).map(Condition::KeyRequired),
        "malformed_key" => check
            .word(
                &what,
                value,
                &[("refuse", MalformedKey::Refuse), ("ignore", MalformedKey::Ignore), ("accept", MalformedKey::Accept)],
            )
            .map(Condition::MalformedKey),
        "expired_key" => check
            .word(&what, value, &[("fresh", ExpiredKey::Fresh), ("refuse", ExpiredKey::Refuse)])
            .map(Condition::ExpiredKey),
        "key_syntax" => check
            .word(&what, value, &[("sf-string", KeySyntax::SfString), ("bare", KeySyntax::Bare)])
            .map(Condition::KeySyntax),
        "key_quotes" => check
            .word(&what, value, &[("ignored", KeyQuotes::Ignored), ("significant", KeyQuotes::Significant)])
            .map(Condition::KeyQuotes),
        "fingerprint_headers" => check
            .word(&what, value, &[("ignored", FingerprintHeaders::Ignored), ("compared", FingerprintHeaders::Compared)])
            .map(Condition::FingerprintHeaders),
        "retention_slides" => {
            check.word(&what, value, &[("true", true), ("false", false)]).map(Condition::RetentionSlides)
        }
        unknown => {
            let known = [
                "key_syntax",
                "key_quotes",
                "fingerprint_headers",
                "retention_slides",
                "failure_before_effect",
                "failure_after_effect",
                "validation_failure",
                "in_flight",
                "mismatch",
                "fingerprint",
                "key_required",
                "key_syntax",
                "malformed_key",
                "expired_key",
            ];
            check.error(
                format!("unknown condition `{unknown}`"),
                key.at,
                "no policy key is called so",
                suggestion(unknown, &known),
            );
            None
        }
    }
}
