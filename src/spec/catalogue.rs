//! Every rule, in the order of reports: one line of the table makes the rule and the constant that names it.

use super::rule::{
    Keyword::{self, None, Should},
    Rule, RuleId,
    Score::{self, Contract, Draft, Invariants},
};

macro_rules! rules {
    ($($constant:ident $id:literal $score:ident $keyword:ident $statement:literal $source:literal $catalogue:tt;)*) => {
        /// All rules, in the order of reports.
        pub static RULES: &[Rule] = &[$(rule($id, $score, $keyword, $statement, $source, &$catalogue)),*];

        /// The names of the rules, for our own code.
        pub mod id {
            use super::{RULES, RuleId};

            #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "the variants only count")]
            enum Index { $($constant),* }

            $(#[doc = $statement]
            pub const $constant: RuleId = RuleId::new(&RULES[Index::$constant as usize]);)*
        }
    };
}

const fn rule(
    id: &'static str,
    score: Score,
    keyword: Keyword,
    statement: &'static str,
    source: &'static str,
    catalogue: &'static [&'static str],
) -> Rule {
    Rule { id, score, keyword, statement, source, catalogue }
}

rules! {
    AT_MOST_ONE_EFFECT "at-most-one-effect" Invariants None
        "Within retention, at most one execution per tenant and key takes effect."
        "correctness argument: one claim per key, effect and completion in one commit"
        ["IK-CONC-2", "IK-REPLAY-1", "INV-1"];
    ACKNOWLEDGED_EFFECT_EXISTS "acknowledged-effect-exists" Invariants None
        "An attempt that was answered with success has taken effect."
        "correctness argument: effect and completion in one commit"
        ["IK-CRASH-2"];
    ONE_RESULT_PER_KEY "one-result-per-key" Invariants None
        "Every success under one key is the answer of one and the same execution."
        "correctness argument: a replay is the stored answer"
        ["INV-2", "IK-REPLAY-3", "IK-REPLAY-10", "IK-CONC-7"];
    NO_FOREIGN_ANSWER "no-foreign-answer" Invariants None
        "No caller is given the answer of another tenant's, key's or operation's execution."
        "correctness argument: scope; draft section 5"
        ["INV-3", "IK-SCOPE-1"];
    TENANTS_DO_NOT_SHARE_KEYS "tenants-do-not-share-keys" Invariants None
        "A key that one tenant has used is free for every other tenant."
        "correctness argument: scope; draft section 5"
        ["IK-SCOPE-1", "IK-CONC-12"];
    DIFFERENT_REQUEST_NOT_SERVED "different-request-not-served" Invariants None
        "A different request under a used key is neither executed nor answered with the first one's success."
        "correctness argument: fingerprint; draft section 2.7"
        ["INV-4", "IK-FP-3"];
    MISMATCH_LEAVES_RECORD "mismatch-leaves-record" Invariants None
        "A refused mismatch leaves the record as it was: the original request still replays."
        "correctness argument: a refusal changes no state"
        ["IK-FP-4"];
    KEY_NEVER_WEDGED "key-never-wedged" Invariants None
        "A key does not stay in progress after its owner has died or failed."
        "correctness argument: lease and release"
        ["INV-5", "IK-CONC-4", "IK-LEASE-3"];
    LOST_RESPONSE_RECOVERABLE "lost-response-recoverable" Invariants None
        "When the response is lost, a retry gets the result of the first attempt."
        "correctness argument: replay of the completed record"
        ["IK-REPLAY-15", "IK-NET-1", "IK-NET-2"];
    TRUNCATED_REQUEST_NOT_EXECUTED "truncated-request-not-executed" Invariants None
        "A request that ends before its body does is not executed."
        "RFC 9112 section 8"
        ["IK-NET-3"];
    TRUNCATED_REQUEST_LEAVES_KEY_FREE "truncated-request-leaves-key-free" Invariants None
        "A request that ended before its body did does not keep or burn its key."
        "RFC 9112 section 8; correctness argument: failure before any effect"
        ["IK-NET-3"];
    LIVE_LEASE_NOT_TAKEN_OVER "live-lease-not-taken-over" Invariants None
        "While the lease of a running attempt lasts, no other attempt takes the key over."
        "correctness argument: lease"
        ["IK-LEASE-2"];
    DEAD_OWNER_TAKEN_OVER "dead-owner-taken-over" Invariants None
        "After the lease of a dead owner has ended, a retry takes over and completes."
        "correctness argument: lease"
        ["IK-LEASE-3", "IK-CRASH-2"];
    LATE_OWNER_FENCED "late-owner-fenced" Invariants None
        "An owner that wakes up after a takeover commits nothing and reports no success of its own."
        "correctness argument: owner token"
        ["IK-LEASE-4", "IK-LEASE-5"];
    FAILURE_AFTER_EFFECT_NOT_REPEATED "failure-after-effect-not-repeated" Invariants None
        "A failure after the effect does not let a retry repeat the effect."
        "correctness argument: effect and completion in one commit"
        ["IK-5XX-2"];
    RETENTION_HONOURED "retention-honoured" Invariants None
        "Until the promised retention ends, a retry is a replay."
        "correctness argument: retention; draft section 2.3"
        ["IK-EXP-2"];
    EXPIRED_KEY_EXECUTES_ONCE "expired-key-executes-once" Invariants None
        "Once a key has expired, duplicates of it execute once, not once each."
        "correctness argument: one claim per key"
        ["IK-EXP-5", "IK-CONC-2"];
    NO_5XX_FOR_LOSERS "no-5xx-for-losers" Invariants None
        "A duplicate that loses the race is not answered with a server error."
        "correctness argument: losing a claim is an expected outcome"
        ["IK-CONC-8"];
    MISSING_KEY_NO_EFFECT "missing-key-no-effect" Invariants None
        "A request refused for its missing key has no effect."
        "correctness argument: a refusal changes no state"
        ["IK-MISS-2"];
    REPLAY_SAME_STATUS "replay-same-status" Invariants None
        "A replay has the status code of the original answer."
        "correctness argument: a replay is the stored answer"
        ["IK-REPLAY-2"];
    REPLAY_SAME_BODY "replay-same-body" Invariants None
        "A replay has the body of the original answer."
        "correctness argument: a replay is the stored answer"
        ["IK-REPLAY-3"];
    REPLAY_KEEPS_LOCATION "replay-keeps-location" Invariants None
        "A replay has the Location of the original answer."
        "correctness argument: a replay names the created resource"
        ["IK-REPLAY-4"];
    REPLAY_KEEPS_CONTENT_TYPE "replay-keeps-content-type" Invariants None
        "A replay has the Content-Type of the original answer."
        "RFC 9110 section 8.3"
        ["IK-REPLAY-5"];
    REPLAY_RETURNS_RESULT "replay-returns-result" Draft Should
        "A retry after completion is answered with the result of the first attempt."
        "draft section 2.6"
        ["IK-REPLAY-1"];
    CONCURRENT_DUPLICATE_REFUSED_OR_WAITS "concurrent-duplicate-refused-or-waits" Draft Should
        "A duplicate that arrives while the first attempt runs is refused as a conflict, or waits for its result."
        "draft sections 2.6 and 2.7"
        ["IK-CONC-1", "IK-CONC-3"];
    MISMATCH_IS_422 "mismatch-is-422" Draft Should
        "A key reused with a different payload is answered with 422."
        "draft section 2.7"
        ["IK-FP-2"];
    MISSING_KEY_IS_400 "missing-key-is-400" Draft Should
        "A missing key, where one is required, is answered with 400."
        "draft section 2.7"
        ["IK-MISS-1"];
    IN_FLIGHT_IS_409 "in-flight-is-409" Draft Should
        "A refused concurrent duplicate is answered with 409."
        "draft section 2.7"
        ["IK-CONC-1"];
    MALFORMED_KEY_AS_DOCUMENTED "malformed-key-as-documented" Contract None
        "A malformed key is refused or ignored, as the API documents."
        "draft section 2.1; RFC 8941 section 4.2; RFC 9651 section 4.2"
        ["IK-SYNTAX-2", "IK-SYNTAX-5", "IK-SYNTAX-10"];
    MISSING_KEY_AS_DOCUMENTED "missing-key-as-documented" Contract None
        "A missing key is refused or accepted, as the API documents."
        "the API's documentation"
        ["IK-MISS-1"];
    MISMATCH_AS_DOCUMENTED "mismatch-as-documented" Contract None
        "A different payload under a used key is answered as the API documents."
        "the API's documentation"
        ["IK-FP-2"];
    IN_FLIGHT_AS_DOCUMENTED "in-flight-as-documented" Contract None
        "A concurrent duplicate is answered as the API documents."
        "the API's documentation"
        ["IK-CONC-1"];
    FINGERPRINT_AS_DOCUMENTED "fingerprint-as-documented" Contract None
        "The same payload in other bytes counts as the same or as another request, as the API documents."
        "the API's documentation; draft section 2.4"
        ["IK-FP-5", "IK-FP-6"];
    VALIDATION_FAILURE_AS_DOCUMENTED "validation-failure-as-documented" Contract None
        "A failed validation releases or keeps the key, as the API documents."
        "the API's documentation"
        ["IK-REL-1", "IK-FP-17"];
    FAILURE_BEFORE_EFFECT_AS_DOCUMENTED "failure-before-effect-as-documented" Contract None
        "A failure before the effect releases or keeps the key, as the API documents."
        "the API's documentation"
        ["IK-5XX-1"];
    FAILURE_AFTER_EFFECT_AS_DOCUMENTED "failure-after-effect-as-documented" Contract None
        "A failure after the effect is answered on retry as the API documents."
        "the API's documentation"
        ["IK-5XX-2"];
    EXPIRY_AS_DOCUMENTED "expiry-as-documented" Contract None
        "After the retention, the key is treated as the API documents."
        "the API's documentation; draft section 2.3"
        ["IK-EXP-3"];
    REPLAY_MARKER_AS_DOCUMENTED "replay-marker-as-documented" Contract None
        "A replay, and nothing but a replay, carries the marker that the API documents."
        "the API's documentation"
        ["IK-REPLAY-9", "IK-FIRST-3"];
    KEY_HAS_AN_EFFECT "key-has-an-effect" Contract None
        "Sending a key has an effect at all."
        "draft section 2.5.1"
        ["IK-DETECT-1"];
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_kebab_case_and_named_by_their_constant() {
        let ids: BTreeSet<_> = RULES.iter().map(|rule| rule.id).collect();
        assert_eq!(ids.len(), RULES.len());
        assert!(ids.iter().all(|id| id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')));
        assert_eq!(id::AT_MOST_ONE_EFFECT.as_str(), "at-most-one-effect");
        assert_eq!(id::KEY_HAS_AN_EFFECT.as_str(), "key-has-an-effect");
    }

    #[test]
    fn every_rule_is_one_sentence_with_a_source_and_a_catalogue_row() {
        for rule in RULES {
            assert!(rule.statement.ends_with('.') && rule.statement.matches(". ").count() == 0, "{}", rule.id);
            assert!(!rule.source.is_empty() && !rule.catalogue.is_empty(), "{}", rule.id);
        }
    }
}
