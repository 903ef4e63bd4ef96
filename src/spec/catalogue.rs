//! Every rule, in the order of reports: one line of the table makes the rule and the constant that names it.

use super::rule::{
    Keyword::{self, May, Must, None, Should},
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
        ["IK-CONC-2", "IK-CONC-13", "IK-REL-8", "IK-REPLAY-1", "INV-1", "IK-LEASE-1", "IK-CRASH-1", "IK-CRASH-3"];
    ACKNOWLEDGED_EFFECT_EXISTS "acknowledged-effect-exists" Invariants None
        "An attempt that was answered with success has taken effect."
        "correctness argument: effect and completion in one commit"
        ["IK-CRASH-2"];
    ONE_RESULT_PER_KEY "one-result-per-key" Invariants None
        "Every success under one key is the answer of one and the same execution."
        "correctness argument: a replay is the stored answer"
        ["INV-2", "IK-REPLAY-3", "IK-REPLAY-10", "IK-CONC-7", "IK-ERR-4"];
    NO_FOREIGN_ANSWER "no-foreign-answer" Invariants None
        "No caller is given the answer of another tenant's, key's or operation's execution."
        "correctness argument: scope; draft section 5"
        ["INV-3", "IK-SCOPE-1", "IK-SEC-2"];
    TENANTS_DO_NOT_SHARE_KEYS "tenants-do-not-share-keys" Invariants None
        "A key that one tenant has used is free for every other tenant."
        "correctness argument: scope; draft section 5"
        ["IK-SCOPE-1", "IK-CONC-12", "IK-SEC-4"];
    DIFFERENT_REQUEST_NOT_SERVED "different-request-not-served" Invariants None
        "A different request under a used key is neither executed nor answered with the first one's success."
        "correctness argument: fingerprint; draft section 2.7"
        ["INV-4", "IK-FP-3", "IK-FP-15", "IK-FP-16"];
    MISMATCH_LEAVES_RECORD "mismatch-leaves-record" Invariants None
        "A refused mismatch leaves the record as it was: the original request still replays."
        "correctness argument: a refusal changes no state"
        ["IK-FP-4", "IK-ERR-4"];
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
        ["IK-NET-3", "IK-NET-4", "IK-NET-5"];
    TRUNCATED_REQUEST_LEAVES_KEY_FREE "truncated-request-leaves-key-free" Invariants None
        "A request that ended before its body did does not keep or burn its key."
        "RFC 9112 section 8; correctness argument: failure before any effect"
        ["IK-NET-3", "IK-NET-4", "IK-NET-5"];
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
    REFUSAL_BEFORE_HANDLER_LEAVES_KEY "refusal-before-handler-leaves-key" Invariants None
        "A request refused before its handler runs, such as for its credentials, does not use up the key."
        "correctness argument: a refusal changes no state"
        ["IK-REL-2"];
    ODD_KEY_PROTECTS_OR_IS_REFUSED "odd-key-protects-or-is-refused" Invariants None
        "A request with an odd key is refused, or it is protected like any other: it does not run unprotected or fail."
        "correctness argument: whoever sends a key relies on it"
        ["IK-SYNTAX-10", "IK-SYNTAX-11", "IK-SYNTAX-13"];
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
    DIFFERENT_KEYS_STAY_DIFFERENT "different-keys-stay-different" Invariants None
        "Two keys that differ in case, in spaces or only at their end are two keys."
        "correctness argument: a key is compared exactly; draft section 2.2"
        ["IK-SYNTAX-11", "IK-SYNTAX-13", "IK-SYNTAX-14"];
    ODD_KEY_NO_SERVER_ERROR "odd-key-no-server-error" Invariants None
        "No key, however odd or long, is answered with a server error."
        "draft section 5; RFC 8941 section 4.2"
        ["IK-SYNTAX-5", "IK-SYNTAX-6", "IK-SYNTAX-11", "IK-SYNTAX-12", "IK-SEC-1"];
    EMPTY_KEY_IDENTIFIES_NOTHING "empty-key-identifies-nothing" Invariants None
        "Two requests with an empty key are not taken for one."
        "correctness argument: an empty key identifies nothing"
        ["IK-SYNTAX-10"];
    TWO_KEYS_ARE_TWO_INTENTS "two-keys-are-two-intents" Invariants None
        "The same payload under two keys is two operations, each with its own effect."
        "correctness argument: the client says what is one intent"
        ["IK-FIRST-2"];
    KEYLESS_REQUESTS_ARE_INDEPENDENT "keyless-requests-are-independent" Invariants None
        "Where a key is optional, two requests without one are two operations."
        "correctness argument: only the client may say that two requests are one"
        ["IK-MISS-3"];
    KEYS_DO_NOT_BLOCK_EACH_OTHER "keys-do-not-block-each-other" Invariants None
        "A request is not refused because a request with another key is running."
        "correctness argument: one claim per key"
        ["IK-CONC-11"];
    REFUSED_DUPLICATE_LEAVES_OWNER_ALONE "refused-duplicate-leaves-owner-alone" Invariants None
        "Duplicates that are refused while the first attempt runs do not disturb it."
        "correctness argument: a refusal changes no state"
        ["IK-CONC-5"];
    COMPLETED_KEY_KNOWN_AT_ONCE "completed-key-known-at-once" Invariants None
        "A retry that is sent the moment the answer has come is a replay."
        "correctness argument: look-ups see the latest commit"
        ["IK-STORE-1"];
    KEY_KNOWN_ON_EVERY_NODE "key-known-on-every-node" Invariants None
        "A key that one node has completed is known to every other node."
        "correctness argument: one store for all claims"
        ["IK-REPLAY-14", "IK-CONC-10"];
    REPLAY_NEEDS_CREDENTIALS "replay-needs-credentials" Invariants None
        "A stored answer is not given to a caller without credentials."
        "correctness argument: a key is no credential; draft section 5"
        ["IK-SEC-3"];
    UNAUTHENTICATED_CLAIMS_NOTHING "unauthenticated-claims-nothing" Invariants None
        "A request that is refused for its credentials does not use up its key."
        "correctness argument: a refusal changes no state"
        ["IK-REL-2"];
    UNREADABLE_REQUEST_LEAVES_KEY_FREE "unreadable-request-leaves-key-free" Invariants None
        "A request whose body cannot be read as what it claims to be does not use up its key."
        "correctness argument: failure before any effect"
        ["IK-REL-4"];
    PIPELINED_DUPLICATE_EXECUTES_ONCE "pipelined-duplicate-executes-once" Invariants None
        "A duplicate on the same connection, sent before the first answer, does not run a second time."
        "RFC 9112 section 9.3.2; correctness argument: one claim per key"
        ["IK-CONC-9"];
    SLOW_BODY_EXECUTES_ONCE "slow-body-executes-once" Invariants None
        "A request that overtakes another one whose body is still coming leaves one effect."
        "correctness argument: one claim per key"
        ["IK-NET-6"];
    REPLAY_RETURNS_RESULT "replay-returns-result" Draft Should
        "A retry after completion is answered with the result of the first attempt."
        "draft section 2.6"
        ["IK-REPLAY-1", "IK-METHOD-1"];
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
    VALID_KEY_ACCEPTED "valid-key-accepted" Draft Must
        "Every Structured Field String is accepted as a key, also one with escapes."
        "draft section 2.1; RFC 8941 section 3.3.3"
        ["IK-SYNTAX-1", "IK-SYNTAX-5"];
    KEY_LINES_NOT_CHOSEN_FROM "key-lines-not-chosen-from" Draft Must
        "Of several key lines in one request, none is picked as the key."
        "RFC 8941 section 4.2; RFC 9110 section 5.3"
        ["IK-SYNTAX-7", "IK-SYNTAX-8", "IK-SYNTAX-9"];
    KEY_FIELD_NAME_IN_ANY_CASE "key-field-name-in-any-case" Draft Must
        "The name of the key's header field is recognised in upper and lower case."
        "RFC 9110 section 5.1"
        ["IK-SYNTAX-15"];
    WHITESPACE_AROUND_KEY_IGNORED "whitespace-around-key-ignored" Draft Must
        "Spaces and tabs around the field's value are not part of the key."
        "RFC 9110 section 5.5"
        ["IK-SYNTAX-13"];
    CONTROL_CHARACTERS_REFUSED "control-characters-refused" Draft Must
        "A key with a carriage return, line feed or NUL in it has no effect."
        "RFC 9110 section 5.5"
        ["IK-SYNTAX-16"];
    TRAILER_IS_NO_KEY "trailer-is-no-key" Draft Should
        "A key that is sent as a trailer field counts as missing."
        "RFC 9110 section 6.5.1"
        ["IK-SYNTAX-17"];
    UNCORRECTED_REUSE_KEEPS_FAILING "uncorrected-reuse-keeps-failing" Draft Must
        "A changed payload under a used key fails each time it is sent."
        "draft section 2.7"
        ["IK-FP-18"];
    PROBLEM_JSON_IS_VALID "problem-json-is-valid" Draft Must
        "An answer that calls itself a problem document is one, and states its own status."
        "RFC 9457 sections 3 and 3.1"
        ["IK-ERR-2"];
    REFUSAL_LINKS_DOCUMENTATION "refusal-links-documentation" Draft Should
        "The refusal of a missing key or a changed payload links to documentation."
        "draft section 2.7"
        ["IK-ERR-1", "IK-MISS-4"];
    REFUSAL_TOLD_FROM_BUSINESS_ERROR "refusal-told-from-business-error" Draft May
        "The refusal of a changed payload can be told from a failed validation."
        "draft section 2.7; working group issues 42 and 51"
        ["IK-CONC-15", "IK-ERR-3"];
    REFUSAL_CARRIES_NO_MARKER "refusal-carries-no-marker" Draft May
        "A refusal does not carry the marker of replays."
        "working group issue 46"
        ["IK-ERR-5"];
    IN_FLIGHT_SAYS_WHEN_TO_RETRY "in-flight-says-when-to-retry" Draft May
        "The refusal of a concurrent duplicate says when to send it again."
        "RFC 9110 section 10.2.3"
        ["IK-CONC-6"];
    REPLAY_HAS_ITS_OWN_DATE "replay-has-its-own-date" Draft Should
        "A replay carries the date of its own making."
        "RFC 9110 section 6.6.1"
        ["IK-REPLAY-7"];
    MALFORMED_KEY_AS_DOCUMENTED "malformed-key-as-documented" Contract None
        "A malformed key is refused or ignored, as the API documents."
        "draft section 2.1; RFC 8941 section 4.2; RFC 9651 section 4.2"
        ["IK-SYNTAX-2", "IK-SYNTAX-5", "IK-SYNTAX-3", "IK-SYNTAX-12", "IK-MISS-5"];
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
        ["IK-FP-5", "IK-FP-6", "IK-FP-7"];
    VALIDATION_FAILURE_AS_DOCUMENTED "validation-failure-as-documented" Contract None
        "A failed validation releases or keeps the key, as the API documents."
        "the API's documentation"
        ["IK-REL-1", "IK-FP-17", "IK-REPLAY-25"];
    FAILURE_BEFORE_EFFECT_AS_DOCUMENTED "failure-before-effect-as-documented" Contract None
        "A failure before the effect releases or keeps the key, as the API documents."
        "the API's documentation"
        ["IK-5XX-1", "IK-REPLAY-25"];
    FAILURE_AFTER_EFFECT_AS_DOCUMENTED "failure-after-effect-as-documented" Contract None
        "A failure after the effect is answered on retry as the API documents."
        "the API's documentation"
        ["IK-5XX-2"];
    EXPIRY_AS_DOCUMENTED "expiry-as-documented" Contract None
        "After the retention, the key is treated as the API documents."
        "the API's documentation; draft section 2.3"
        ["IK-EXP-3", "IK-EXP-7"];
    REPLAY_MARKER_AS_DOCUMENTED "replay-marker-as-documented" Contract None
        "A replay, and nothing but a replay, carries the marker that the API documents."
        "the API's documentation"
        ["IK-REPLAY-9", "IK-FIRST-3"];
    KEY_LENGTH_AS_DOCUMENTED "key-length-as-documented" Contract None
        "The longest documented key works, and a longer one is refused without effect."
        "draft section 5; the API's documentation"
        ["IK-SYNTAX-11", "IK-SYNTAX-19"];
    QUOTING_AS_DOCUMENTED "quoting-as-documented" Contract None
        "A key in quotes and the same key without them are one or two keys, as the API documents."
        "the API's documentation"
        ["IK-SYNTAX-4"];
    HEADERS_COMPARED_AS_DOCUMENTED "headers-compared-as-documented" Contract None
        "Another trace or request id on a retry counts, or does not, as the API documents."
        "the API's documentation; draft section 2.4"
        ["IK-FP-8"];
    RETENTION_WINDOW_AS_DOCUMENTED "retention-window-as-documented" Contract None
        "The retention runs from the first use or from the last one, as the API documents."
        "the API's documentation; draft section 2.3"
        ["IK-EXP-4"];
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
