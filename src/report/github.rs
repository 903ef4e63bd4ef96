//! Annotations for GitHub actions: workflow commands on standard output.

use super::{Accepted, terminal::main_finding};
use crate::judge::{CaseResult, Verdict};

/// GitHub shows no more of one kind for one step.
const MOST: usize = 10;

/// One line per failed case, a warning if the gate accepts it, and one per inconclusive case if the gate counts them; with a line about what is left
/// out. Secrets must have been masked in the results.
pub(super) fn annotations(cases: &[CaseResult], accepted: &Accepted, inconclusive_fails: bool) -> String {
    let level = |case: &CaseResult| match case.verdict {
        Verdict::Failed if accepted.fails(case) => Some("error"),
        Verdict::Failed => Some("warning"),
        Verdict::Inconclusive if inconclusive_fails => Some("error"),
        Verdict::Inconclusive => Some("warning"),
        Verdict::Passed | Verdict::Skipped => None,
    };
    let mut out = String::new();
    for wanted in ["error", "warning"] {
        let of: Vec<_> = cases.iter().filter(|case| level(case) == Some(wanted)).collect();
        let shown = if of.len() > MOST { MOST - 1 } else { MOST };
        for case in of.iter().take(shown) {
            let finding = main_finding(case);
            let line = finding.and_then(|finding| finding.place).unwrap_or(case.place).line;
            let message = match (&case.reason, finding) {
                (Some(reason), _) => reason.why.as_str(),
                (None, Some(finding)) => &finding.message,
                (None, None) => "",
            };
            let rule = finding.map_or("inconclusive", |finding| finding.rule.as_str());
            out += &format!(
                "::{wanted} file={},line={line},title={}::{}\n",
                property(&case.file),
                property(rule),
                data(&format!("{}: {message}", case.id))
            );
        }
        if of.len() > shown {
            out += &format!("::{wanted} title=idemproof::{} more cases are in the report\n", of.len() - shown);
        }
    }
    out
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::report::fixture;

    #[test]
    fn a_failure_is_one_line_whatever_the_server_said() {
        let mut case = fixture::race(2);
        case.findings[2].message = "100 %\n::set-env name=X::y".into();
        let text = annotations(&[case, fixture::inconclusive(), fixture::passed()], &Accepted::default(), false);
        assert_eq!(
            text,
            "::error file=suites/duplicate-concurrent.yaml,line=17,title=at-most-one-effect::\
             duplicate-concurrent/overlapping-duplicates [create, n=2]: 100 %25%0A::set-env name=X::y\n\
             ::warning file=suites/connection-drops.yaml,line=12,title=lost-response-recoverable::\
             connection-drops/cut-while-running [create]: the fault on first was not witnessed\n"
        );
        assert_eq!(
            annotations(&[fixture::inconclusive()], &Accepted::default(), true).split(' ').next(),
            Some("::error")
        );
    }

    #[test]
    fn no_more_than_github_shows() {
        let cases: Vec<_> = (0..40).map(|_| fixture::race(2)).collect();
        let text = annotations(&cases, &Accepted::default(), false);
        assert_eq!(text.lines().count(), MOST);
        assert!(text.ends_with("::31 more cases are in the report\n"));
    }
}
