//! The rows of the requirement catalogue that no rule covers, each with the reason.

use serde::Serialize;

use Lack::{NoPower, NoVerdict, NoWords};

/// The text of the draft that the rules speak of. When the draft moves, only data changes.
pub const DRAFT: &str = "draft-ietf-httpapi-idempotency-key-header-07";

/// What a row without a rule lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lack {
    /// It has no verdict of its own: it informs, limits, or only classifies.
    NoVerdict,
    /// A tester outside of the target has not the power that it takes.
    NoPower,
    /// It could be decided, and suites and target files have no words for it.
    NoWords,
}

/// A row of the requirement catalogue without a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Uncovered {
    /// The row.
    pub row: &'static str,
    /// What kind of reason it is.
    pub lack: Lack,
    /// Why no rule covers it.
    pub why: &'static str,
}

macro_rules! rows {
    ($($row:literal $lack:ident $why:literal;)*) => {
        /// Every row without a rule. A test holds rules and this table to all rows of the catalogue.
        pub static UNCOVERED: &[Uncovered] = &[$(Uncovered { row: $row, lack: $lack, why: $why }),*];
    };
}

rows! {
    "INV-6" NoVerdict "It limits what a tester may ask: no rule looks past retention, tenant or key.";
    "IK-DETECT-2" NoVerdict "It is how the detection rule is applied: to each operation of the target file by itself.";
    "IK-SYNTAX-18" NoWords "A suite cannot send a key at a second place beside its own.";
    "IK-MISS-6" NoWords "A suite cannot ask for the one status that shows that credentials were checked first; that stored answers stay closed without credentials is a rule.";
    "IK-MISS-7" NoWords "A suite cannot send a preflight request.";
    "IK-METHOD-2" NoWords "A suite sends an operation's own method only.";
    "IK-METHOD-3" NoWords "A suite sends an operation's own method only.";
    "IK-METHOD-4" NoWords "A suite sends an operation's own method only.";
    "IK-METHOD-5" NoWords "A suite sends an operation's own method only.";
    "IK-FIRST-1" NoWords "A suite cannot compare a keyed first answer with a keyless one.";
    "IK-REPLAY-6" NoWords "A suite cannot read a resource with its validator.";
    "IK-REPLAY-8" NoWords "Cookies are secrets and are masked in the record, so two of them cannot be compared.";
    "IK-REPLAY-11" NoWords "A suite cannot change a resource between two attempts.";
    "IK-REPLAY-12" NoWords "A suite cannot delete a resource between two attempts.";
    "IK-REPLAY-13" NoPower "External effects are seen by a sink that the target calls, and a target file names none; effects of its own are counted.";
    "IK-REPLAY-16" NoVerdict "The identity path of an asynchronous operation selects its id, and the rule about one result decides it.";
    "IK-REPLAY-17" NoPower "The HTTP library reads no body after 204, 205 and 304, so a stray one cannot be seen.";
    "IK-REPLAY-18" NoWords "A suite cannot follow a redirect as a step of its own.";
    "IK-REPLAY-19" NoWords "A suite cannot ask for a result of a given size.";
    "IK-REPLAY-20" NoWords "A suite cannot ask for a streamed result; one that is cut half-way is a case.";
    "IK-REPLAY-21" NoPower "Answers are not decoded, so that bodies can be compared as bytes.";
    "IK-REPLAY-22" NoVerdict "It only classifies: every outcome without a second effect is right.";
    "IK-REPLAY-23" NoPower "A tester cannot take the target's downstream away.";
    "IK-REPLAY-24" NoWords "No rule compares Cache-Control.";
    "IK-FP-1" NoVerdict "It is informative: a fingerprint may be used.";
    "IK-FP-9" NoWords "A suite cannot make a payload large.";
    "IK-FP-10" NoWords "A suite runs on one operation, and its attempts share one path.";
    "IK-FP-11" NoWords "A suite runs on one operation, and its attempts share one method.";
    "IK-FP-12" NoWords "A suite cannot change the query.";
    "IK-FP-13" NoVerdict "It only classifies, unless both are executed, which the count of effects decides.";
    "IK-FP-14" NoVerdict "It only classifies.";
    "IK-FP-19" NoPower "Nothing tells a disclosed secret from help that the API documents, such as the id of the first resource.";
    "IK-CONC-14" NoWords "It asks for the health of unrelated requests under load, which is a load test.";
    "IK-ERR-6" NoWords "No rule looks for the key in the text of an error.";
    "IK-REL-3" NoPower "A tester cannot make a limit strike at a chosen request without flooding the target.";
    "IK-REL-5" NoWords "A suite cannot mend the cause of a business failure.";
    "IK-REL-6" NoWords "A suite cannot send conditional requests.";
    "IK-REL-7" NoPower "Servers take from seconds to minutes to give up on a slow body, and mostly close instead of answering 408.";
    "IK-5XX-3" NoPower "It needs a gateway between the proxy and the target; a lost answer without one is a rule.";
    "IK-5XX-4" NoVerdict "It is the documented exception of the rule about dead owners.";
    "IK-5XX-5" NoWords "A suite cannot count the effects of each phase by itself.";
    "IK-5XX-6" NoVerdict "It is a note about stored errors: a marker on them is never required.";
    "IK-5XX-7" NoPower "A tester cannot make the target's store fail at completion.";
    "IK-EXP-6" NoWords "A suite cannot make an operation run longer than the retention.";
    "IK-EXP-8" NoPower "The longest retry of a client is not known to the target file.";
    "IK-EXP-9" NoPower "A clock hook moves time forward only, and all nodes together.";
    "IK-SCOPE-2" NoWords "A target file cannot say that two tenants are credentials of one account.";
    "IK-SCOPE-3" NoWords "A suite runs on one operation at a time.";
    "IK-SCOPE-4" NoPower "Regions, modes and API versions are targets of their own.";
    "IK-SCOPE-5" NoPower "A tester cannot renew a token.";
    "IK-SCOPE-6" NoWords "It needs two callers without credentials on a route that takes keys from anybody.";
    "IK-SCOPE-7" NoPower "The names that the server puts together for its lookup are not known outside.";
    "IK-LEASE-6" NoPower "The key that the target sends downstream is seen by a stub in its place only.";
    "IK-LEASE-7" NoWords "A slow handler of a target is one that hangs; nothing says whether it renews its lease.";
    "IK-CRASH-4" NoPower "The call of the target to its provider is seen by a stub in its place only.";
    "IK-CRASH-5" NoPower "The target's notifications are seen by a sink that it calls, and a target file names none.";
    "IK-CRASH-6" NoPower "A tester has no hook that restarts all nodes; a run before and one after a restart is two runs.";
    "IK-CRASH-7" NoWords "A suite cannot look at the parts of a batch.";
    "IK-NET-7" NoPower "It is about a proxy on the path; the target's part is the rule about one effect.";
    "IK-NET-8" NoPower "Attempts speak HTTP/1.1.";
    "IK-NET-9" NoPower "Attempts do not use early data of TLS 1.3.";
    "IK-NET-10" NoVerdict "Each attempt has a connection of its own; the target's part is the rule about one effect.";
    "IK-NET-11" NoWords "A suite cannot compress a payload.";
    "IK-NET-12" NoWords "A suite cannot make a payload large.";
    "IK-SEC-5" NoPower "Nothing tells which answers are secrets that are shown once.";
    "IK-SEC-6" NoPower "A tester does not see the target's logs.";
    "IK-SEC-7" NoVerdict "It is report only, and measuring it would fill the target's store.";
    "IK-DOC-1" NoPower "The documentation is not on the wire: whoever writes the target file reads it.";
    "IK-DOC-2" NoPower "The documentation is not on the wire: whoever writes the target file reads it.";
    "IK-DOC-3" NoPower "The documentation is not on the wire: whoever writes the target file reads it.";
    "IK-DOC-4" NoPower "The documentation is not on the wire: whoever writes the target file reads it.";
    "IK-EXP-1" NoPower "The documentation is not on the wire: whoever writes the target file reads it.";
    "IK-DOC-5" NoWords "No OpenAPI document is read.";
    "IK-NAT-1" NoWords "A suite cannot send requests without a key but with a condition.";
    "IK-NAT-2" NoWords "A suite cannot send requests without a key but with a condition.";
    "IK-NAT-3" NoWords "A suite cannot send requests without a key but with a condition.";
    "IK-NAT-4" NoWords "A suite sends an operation's own method only.";
    "IK-NAT-5" NoWords "A suite sends an operation's own method only.";
    "IK-NAT-6" NoWords "A suite sends an operation's own method only.";
    "IK-GW-1" NoPower "It needs a gateway that can be restarted under the test.";
    "IK-GW-2" NoPower "What a gateway sends upstream is seen by a stub in the origin's place only.";
    "IK-GW-3" NoPower "What a gateway sends upstream is seen by a stub in the origin's place only.";
    "IK-INBOX-1" NoVerdict "A webhook inbox is an operation whose key field is the message id; the rules about one effect and about losers decide it.";
    "IK-INBOX-2" NoPower "A tester does not see the dead letters of the target.";
    "IK-STORE-2" NoPower "A tester cannot take the target's key store away.";
    "IK-STORE-3" NoPower "A tester cannot make the target's store fail over.";
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::collections::BTreeSet;

    use super::super::RULES;
    use super::*;

    /// Every group of rows of the catalogue, and how many rows it has; they are counted from 1.
    const GROUPS: &[(&str, u32)] = &[
        ("INV", 6),
        ("IK-DETECT", 2),
        ("IK-SYNTAX", 19),
        ("IK-MISS", 7),
        ("IK-METHOD", 5),
        ("IK-FIRST", 3),
        ("IK-REPLAY", 25),
        ("IK-FP", 19),
        ("IK-CONC", 15),
        ("IK-ERR", 6),
        ("IK-REL", 8),
        ("IK-5XX", 7),
        ("IK-EXP", 9),
        ("IK-SCOPE", 7),
        ("IK-LEASE", 7),
        ("IK-CRASH", 7),
        ("IK-NET", 12),
        ("IK-SEC", 7),
        ("IK-DOC", 5),
        ("IK-NAT", 6),
        ("IK-GW", 3),
        ("IK-INBOX", 2),
        ("IK-STORE", 3),
    ];

    #[test]
    fn every_row_of_the_catalogue_is_covered_or_has_a_reason() {
        let all: BTreeSet<_> =
            GROUPS.iter().flat_map(|(group, rows)| (1..=*rows).map(move |row| format!("{group}-{row}"))).collect();
        assert_eq!(all.len(), 190);
        let covered: BTreeSet<_> = RULES.iter().flat_map(|rule| rule.catalogue).map(|row| (*row).to_owned()).collect();
        let reasons: BTreeSet<_> = UNCOVERED.iter().map(|uncovered| uncovered.row.to_owned()).collect();
        assert_eq!(reasons.len(), UNCOVERED.len(), "a row is listed twice");
        assert!(covered.is_disjoint(&reasons), "{:?}", covered.intersection(&reasons).collect::<Vec<_>>());
        assert_eq!(covered.union(&reasons).cloned().collect::<BTreeSet<_>>(), all);
        assert!(UNCOVERED.iter().all(|uncovered| uncovered.why.ends_with('.')));
    }
}
