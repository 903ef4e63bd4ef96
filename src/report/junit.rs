//! The JUnit file: what CI systems read.
//!
//! One `testsuite` per suite file, one `testcase` per case. A failed case is a `failure` whose type is the rule.
//! An inconclusive case is `skipped` with a message that begins with `inconclusive:`, because consumers turn any
//! `error` red and a case that says nothing about the server is not by default a reason to fail its build. When
//! the gate does count inconclusive cases, they are `error`s, so that file and exit code agree. Rules that are
//! broken without failing the case, and documented deviations, are properties. There are no rerun or flaky
//! elements: consumers disagree about them.

mod text;

use std::{collections::BTreeSet, time::Duration};

use quick_junit::{NonSuccessKind, Property, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

use self::text::Filter;
use super::{
    Accepted, RunInfo,
    terminal::{Origin, Style, main_finding, render_case, timeline_text},
    time::utc,
};
use crate::{
    history::{Attempt, End},
    judge::{CaseResult, Decision, Verdict},
    text::Redactor,
};

/// Blocks in the file have no colour and this width.
const STYLE: Style = Style { color: false, unicode: true, width: 110 };

/// The exchanges written out for one case.
const MOST_EXCHANGES: usize = 16;

/// What the file is made from.
#[derive(Debug, Clone, Copy)]
pub struct Junit<'a> {
    /// The run.
    pub run: &'a RunInfo,
    /// How long it took so far, in milliseconds.
    pub millis: u64,
    /// The results, in any order.
    pub results: &'a [CaseResult],
    /// How requests can be sent again.
    pub origin: &'a Origin,
    /// Whether inconclusive cases count as errors.
    pub inconclusive_fails: bool,
    /// The failures that do not fail the gate; they are skipped here, so that file and exit code agree.
    pub accepted: &'a Accepted,
    /// Masks secrets.
    pub redactor: &'a Redactor,
}

impl Junit<'_> {
    /// The file. The same results give the same bytes, in whichever order they came.
    ///
    /// # Errors
    /// When the XML writer refuses, which it has no reason to when writing to memory.
    pub fn to_xml(&self) -> Result<String, SerializeError> {
        let filter = Filter(self.redactor);
        let mut report = Report::new(filter.line(&format!("idemproof {}", self.run.run)));
        report.set_time(Duration::from_millis(self.millis));
        let mut results: Vec<_> = self.results.iter().collect();
        results.sort_by_key(|case| (&case.id.suite, &case.file, case.place.line, &case.id));
        let mut names = BTreeSet::new();
        for cases in results.chunk_by(|a, b| a.id.suite == b.id.suite && a.file == b.file) {
            report.add_test_suite(self.suite(cases, &mut names, filter));
        }
        report.to_string()
    }

    fn suite(&self, cases: &[&CaseResult], names: &mut BTreeSet<(String, String)>, filter: Filter<'_>) -> TestSuite {
        let (name, file) = cases.first().map_or(("", ""), |case| (&case.id.suite, &case.file));
        let mut suite = TestSuite::new(filter.line(name));
        suite.set_time(Duration::from_millis(cases.iter().map(|case| case.millis).fold(0, u64::saturating_add)));
        suite.extra.insert("timestamp".into(), utc(self.run.began_unix).into());
        suite.extra.insert("file".into(), filter.line(file).into());
        let faults = self.run.reference_faults.join(", ");
        let properties = [
            ("run", &self.run.run),
            ("target", &self.run.target),
            ("profile", &self.run.profile),
            ("version", &self.run.version),
            ("proxy", &self.run.proxy),
            ("reference_faults", &faults),
        ];
        suite.add_property(Property::new("file", filter.line(file)));
        for (name, value) in properties.into_iter().filter(|(_, value)| !value.is_empty()) {
            suite.add_property(Property::new(name, filter.line(value)));
        }
        for case in cases {
            // A dot would make Jenkins see one package more.
            let class = filter.line(&format!("idemproof.{}", case.id.suite.replace('.', "_")));
            let mut name = filter.line(&shown_name(case));
            let mut copies = 1;
            while !names.insert((class.clone(), name.clone())) {
                copies += 1;
                name = filter.line(&format!("{} #{copies}", shown_name(case)));
            }
            suite.add_test_case(self.case(case, class, name, filter));
        }
        suite
    }

    fn case(&self, case: &CaseResult, class: String, name: String, filter: Filter<'_>) -> TestCase {
        let mut test = TestCase::new(name, self.status(case, filter));
        test.set_classname(class);
        test.set_time(Duration::from_millis(case.millis));
        test.extra.insert("file".into(), filter.line(&case.file).into());
        test.extra.insert("line".into(), place(case).to_string().into());
        test.add_property(Property::new("verdict", word(case.verdict)));
        let rules: Vec<_> = case.rules.iter().map(|rule| rule.as_str()).collect();
        test.add_property(Property::new("rules", filter.line(&rules.join(", "))));
        for (decision, name) in
            [(Decision::Broken, "broken"), (Decision::Deviation, "deviations"), (Decision::Undecided, "undecided")]
        {
            let of: BTreeSet<_> =
                case.findings.iter().filter(|f| f.decision == decision).map(|f| f.rule.as_str()).collect();
            if !of.is_empty() {
                test.add_property(Property::new(name, filter.line(&of.into_iter().collect::<Vec<_>>().join(", "))));
            }
        }
        if let Some(history) = &case.history {
            test.add_property(Property::new("attempts", history.attempts.len().to_string()));
            test.add_property(Property::new("rounds", case.rounds.to_string()));
            if case.rounds > 1 {
                test.add_property(Property::new("failed_rounds", case.failed_rounds.to_string()));
            }
            // What a case sent is of interest where it did not come out as it should.
            if matches!(case.verdict, Verdict::Failed | Verdict::Inconclusive) {
                let names = main_finding(case).map_or(&[][..], |finding| &finding.attempts);
                let mut out = timeline_text(history, names, &STYLE);
                out += &exchanges(&history.attempts);
                test.set_system_out(filter.block(&out));
            }
        }
        test
    }

    fn status(&self, case: &CaseResult, filter: Filter<'_>) -> TestCaseStatus {
        let why = case.reason.as_ref().map_or("no reason was given", |reason| &reason.why);
        let block = || {
            let block = render_case(case, &STYLE, self.origin);
            filter.block(&format!("{}:{}\n{block}", case.file, place(case)))
        };
        match case.verdict {
            Verdict::Passed => TestCaseStatus::success(),
            Verdict::Failed => {
                if let Some(why) = self.accepted.why(case) {
                    let mut status = TestCaseStatus::skipped();
                    status.set_type("accepted");
                    let seen = main_finding(case).map_or("", |finding| &finding.message);
                    status.set_message(filter.first_line(&format!("{why}: {seen}")));
                    status.set_description(block());
                    return status;
                }
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                let finding = main_finding(case);
                status.set_type(filter.line(finding.map_or("failed", |finding| finding.rule.as_str())));
                status.set_message(filter.first_line(finding.map_or(why, |finding| &finding.message)));
                status.set_description(block());
                status
            }
            Verdict::Inconclusive => {
                let mut status = if self.inconclusive_fails {
                    TestCaseStatus::non_success(NonSuccessKind::Error)
                } else {
                    TestCaseStatus::skipped()
                };
                status.set_type("inconclusive");
                status.set_message(filter.first_line(&format!("inconclusive: {why}")));
                status.set_description(block());
                status
            }
            Verdict::Skipped => {
                let mut status = TestCaseStatus::skipped();
                let remedy = case.reason.as_ref().map_or("", |reason| &reason.remedy);
                status.set_type("skipped");
                status.set_message(filter.first_line(why));
                status.set_description(filter.block(&format!("{why}\n{remedy}")));
                status
            }
        }
    }
}

/// The case without its suite, which the class names.
fn shown_name(case: &CaseResult) -> String {
    let vary = case.id.vary.as_ref().map(|(name, value)| format!(", {name}={value}"));
    format!("{} [{}{}]", case.id.case, case.id.operation, vary.unwrap_or_default())
}

/// The line of the broken expectation, else of the case.
fn place(case: &CaseResult) -> u32 {
    main_finding(case).and_then(|finding| finding.place).unwrap_or(case.place).line
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "passed",
        Verdict::Skipped => "skipped",
        Verdict::Inconclusive => "inconclusive",
        Verdict::Failed => "failed",
    }
}

/// Requests and what came of them; attempts that sent and got the same stand together.
fn exchanges(attempts: &[Attempt]) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for attempt in attempts {
        let text = exchange(attempt);
        match groups.iter_mut().find(|(other, _)| *other == text) {
            Some((_, names)) => names.push(&attempt.name),
            None => groups.push((text, vec![&attempt.name])),
        }
    }
    let mut out = String::new();
    for (text, names) in groups.iter().take(MOST_EXCHANGES) {
        out += &format!("\n--- {}\n{text}", names.join(", "));
    }
    if groups.len() > MOST_EXCHANGES {
        out += &format!("\n+ {} more exchanges\n", groups.len() - MOST_EXCHANGES);
    }
    out
}

/// One request and what came of it.
fn exchange(attempt: &Attempt) -> String {
    let key = attempt.key_field.as_deref().map_or_else(|| "without a key".to_owned(), |field| format!("key {field}"));
    let mut out = format!("{}\n({key}, tenant {})\n\n", attempt.request.trim_end(), attempt.tenant);
    match &attempt.end {
        End::Answered => {}
        End::NotSent(said) => out += &format!("not sent: {said}\n"),
        End::Lost(cut) => out += &format!("connection lost: {}\n", cut.said),
        End::TimedOut => out += "no whole answer in time\n",
        End::Unreadable(said) => out += &format!("unreadable answer: {said}\n"),
    }
    if let Some(response) = &attempt.response {
        out += &format!("{}\n", response.status);
        for field in &response.fields {
            out += &format!("{}: {}\n", field.name, field.value);
        }
        out += &format!("\n{}\n", response.body.text);
    }
    out
}
