//! The files: their form, when they are written, and what happens when they cannot be.

use std::{fs, path::Path};

use super::*;
use crate::{
    history,
    judge::{CaseResult, Verdict},
    report::{Accepted, Document, Event, Junit, Options, ReportError, Reports, Summary, Terminal, Verbosity},
    text::Redactor,
};

fn cases() -> Vec<CaseResult> {
    vec![fixture::passed(), fixture::lost_response(), fixture::inconclusive(), fixture::skipped(), fixture::race(32)]
}

fn junit(results: &[CaseResult], inconclusive_fails: bool, redactor: &Redactor) -> String {
    let (run, origin) = (fixture::run(), origin());
    Junit {
        run: &run,
        millis: 12_345,
        results,
        origin: &origin,
        inconclusive_fails,
        accepted: &Accepted::default(),
        redactor,
    }
    .to_xml()
    .unwrap()
}

fn in_folder(folder: &Path) -> Options {
    Options {
        junit: Some(folder.join("junit.xml")),
        json: Some(folder.join("report.json")),
        html: Some(folder.join("report.html")),
        markdown: Some(folder.join("summary.md")),
        step_summary: Some(folder.join("step.md")),
        history: Some(folder.join("history.jsonl")),
        ..Options::default()
    }
}

fn reports(options: Options, redactor: &Redactor, out: impl Write + Send + 'static) -> Result<Reports, ReportError> {
    let terminal = Terminal::new(Box::new(out), style(80, true), Verbosity::Normal, redactor.clone(), None);
    Reports::create(options, redactor.clone(), terminal)
}

fn count_of(folder: &Path) -> usize {
    let xml = fs::read_to_string(folder.join("junit.xml")).unwrap();
    let document = roxmltree::Document::parse(&xml).unwrap();
    let count = document.descendants().filter(|node| node.has_tag_name("testcase")).count();
    let json: Document = serde_json::from_str(&fs::read_to_string(folder.join("report.json")).unwrap()).unwrap();
    assert_eq!(json.cases.len(), count);
    count
}

#[test]
fn the_junit_file() {
    let xml = junit(&cases(), false, &Redactor::new());
    insta::assert_snapshot!("junit", xml);
    let mut turned = cases();
    turned.reverse();
    assert_eq!(junit(&turned, false, &Redactor::new()), xml);
}

#[test]
fn inconclusive_cases_are_errors_only_where_the_gate_counts_them() {
    for (fails, element, errors, skipped) in [(false, "skipped", "0", "2"), (true, "error", "1", "1")] {
        let xml = junit(&cases(), fails, &Redactor::new());
        let document = roxmltree::Document::parse(&xml).unwrap();
        let root = document.root_element();
        assert_eq!((root.attribute("errors"), root.attribute("skipped")), (Some(errors), Some(skipped)));
        let node = document.descendants().find(|node| node.attribute("type") == Some("inconclusive")).unwrap();
        assert!(node.has_tag_name(element) && node.attribute("message").unwrap().starts_with("inconclusive: "));
    }
}

#[test]
fn cases_of_one_name_keep_apart() {
    let mut other = fixture::passed();
    other.file = "elsewhere/connection-drops.yaml".into();
    let xml = junit(&[fixture::passed(), other, fixture::passed()], false, &Redactor::new());
    let document = roxmltree::Document::parse(&xml).unwrap();
    let cases = document.descendants().filter(|node| node.has_tag_name("testcase"));
    let names: std::collections::BTreeSet<_> = cases.map(|node| node.attribute("name")).collect();
    assert_eq!(names.len(), 3);
}

#[test]
fn the_json_document_can_be_read_back() {
    let results = cases();
    let document = Document::new(&fixture::run(), true, Summary::of(&results, false, 7), &results);
    let text = serde_json::to_string(&document).unwrap();
    assert!(text.starts_with(r#"{"idemproof_report":1,"#));
    assert_eq!(serde_json::from_str::<Document>(&text).unwrap(), document);
    let rule = document.rules.iter().find(|rule| rule.id.as_str() == "at-most-one-effect").unwrap();
    assert_eq!((rule.broken, rule.broken_in.len()), (1, 1));
    let mut spare = document.clone();
    spare.cases.clear();
    insta::assert_json_like("report_json", &spare);
}

mod insta {
    pub(super) use ::insta::*;

    /// Pretty-printed, without another dependency of insta.
    pub(super) fn assert_json_like(name: &str, value: &impl serde::Serialize) {
        ::insta::assert_snapshot!(name, serde_json::to_string_pretty(value).unwrap());
    }
}

#[test]
fn files_are_valid_at_every_moment_and_written_sparingly() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("junit.xml"), "an older report").unwrap();
    let mut reports = reports(in_folder(path), &Redactor::new(), io::sink()).unwrap();
    assert!(!path.join("junit.xml").exists());
    let start = std::time::Instant::now();
    let at = |ms| start + std::time::Duration::from_millis(ms);
    reports.handle_at(Event::Started(fixture::run()), at(0)).unwrap();
    assert_eq!(count_of(path), 0);
    // A few cases are written at once, more of them with pauses.
    for written in 1..=16 {
        reports.handle_at(Event::CaseFinished(Box::new(fixture::passed())), at(100)).unwrap();
        assert_eq!(count_of(path), written);
    }
    for (ms, written) in [(434, 16), (440, 18)] {
        reports.handle_at(Event::CaseFinished(Box::new(fixture::passed())), at(ms)).unwrap();
        assert_eq!(count_of(path), written, "at {ms} ms");
    }
    reports.handle_at(Event::CaseFinished(Box::new(fixture::lost_response())), at(441)).unwrap();
    reports.handle_at(Event::Interrupted, at(442)).unwrap();
    assert_eq!(count_of(path), 19);
    let json: Document = serde_json::from_slice(&fs::read(path.join("report.json")).unwrap()).unwrap();
    assert!(!json.complete && json.summary.interrupted);
    // Histories are there at once.
    let lines = fs::read(path.join("history.jsonl")).unwrap();
    let (_, histories) = history::read(lines.as_slice()).unwrap();
    assert_eq!(histories.len(), 19);
    let summary = Summary::of(reports.results(), true, 1_044);
    reports.handle_at(Event::Finished(summary.clone()), at(1_044)).unwrap();
    let json: Document = serde_json::from_slice(&fs::read(path.join("report.json")).unwrap()).unwrap();
    assert!(json.complete && json.summary == summary);
    assert_eq!(fs::read_dir(path).unwrap().count(), 6);
}

#[test]
fn an_unwritable_folder_is_found_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let blocked = folder.path().join("blocked");
    fs::write(&blocked, "").unwrap();
    for options in [
        Options { junit: Some(blocked.join("junit.xml")), ..Options::default() },
        Options { json: Some(blocked.join("report.json")), ..Options::default() },
        Options { history: Some(blocked.join("history.jsonl")), ..Options::default() },
    ] {
        let error = reports(options, &Redactor::new(), io::sink()).unwrap_err().to_string();
        assert!(error.contains("blocked") && error.contains("name a folder"), "{error}");
    }
}

#[test]
fn a_terminal_that_is_gone_does_not_cost_the_files() {
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let mut reports = reports(in_folder(folder.path()), &Redactor::new(), Gone).unwrap();
    let error = reports.handle(Event::Started(fixture::run())).unwrap_err();
    assert!(matches!(error, ReportError::Output(_)), "{error}");
    reports.handle(Event::CaseFinished(Box::new(fixture::race(8)))).unwrap();
    reports.handle(Event::Finished(Summary::of(reports.results(), false, 1))).unwrap();
    assert_eq!(count_of(folder.path()), 1);
}

#[test]
fn a_file_that_cannot_be_written_during_the_run_does_not_cost_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut reports = reports(in_folder(folder.path()), &Redactor::new(), io::sink()).unwrap();
    fs::create_dir_all(folder.path().join("junit.xml/inside")).unwrap();
    let error = reports.handle(Event::Started(fixture::run())).unwrap_err().to_string();
    assert!(error.contains("junit.xml"), "{error}");
    assert!(reports.handle(Event::CaseFinished(Box::new(fixture::passed()))).is_err());
    assert!(reports.handle(Event::Finished(Summary::of(reports.results(), false, 1))).is_err());
    let json: Document = serde_json::from_slice(&fs::read(folder.path().join("report.json")).unwrap()).unwrap();
    assert!(json.complete && json.cases.len() == 1 && json.cases[0].verdict == Verdict::Passed);
}

#[test]
fn no_output_holds_a_secret() {
    const SECRET: &str = "s3cr&t<\"to\\zqzq\">\u{1b}end";
    let redactor = Redactor::new();
    redactor.add(SECRET);
    let folder = tempfile::tempdir().unwrap();
    let screen = Screen::default();
    let mut reports = reports(in_folder(folder.path()), &redactor, screen.clone()).unwrap();
    let mut run = fixture::run();
    (run.nodes, run.again) = (vec![format!("http://{SECRET}@h")], format!("--target {SECRET}"));
    let mut case = fixture::race(8);
    case.title = SECRET.into();
    case.id.case = SECRET.into();
    case.findings[2].message = SECRET.into();
    case.findings[2].observed = vec![SECRET.into()];
    let attempt = &mut case.history.as_mut().unwrap().attempts[1];
    (attempt.payload, attempt.request) = (SECRET.into(), format!("POST /{SECRET}\n{SECRET}"));
    let response = attempt.response.as_mut().unwrap();
    response.body.text = format!("{{\"token\":{}}}", serde_json::to_string(SECRET).unwrap());
    response.fields.push(crate::history::ParsedField { name: "set-cookie".into(), value: "session-4711".into() });
    reports.handle(Event::Started(run)).unwrap();
    reports.handle(Event::CaseStarted(case.id.clone())).unwrap();
    reports.handle(Event::CaseFinished(Box::new(case))).unwrap();
    reports.handle(Event::Finished(Summary::of(reports.results(), false, 1))).unwrap();
    let mut outputs = vec![screen.text(), reports.annotations()];
    outputs.extend(
        ["junit.xml", "report.json", "history.jsonl", "report.html"]
            .map(|name| fs::read_to_string(folder.path().join(name)).unwrap()),
    );
    for output in outputs {
        assert!(output.contains("***"));
        for trace in ["s3cr", "zqzq", "4711"] {
            let found = output.lines().find(|line| line.contains(trace));
            assert_eq!(found, None, "{trace}");
        }
    }
}
