//! What holds for any result: files can be read, counts agree, secrets stay inside, nothing is too wide.

use proptest::{collection::vec, option, prelude::*, sample::select};
use unicode_width::UnicodeWidthStr;

use super::{super::render_case, *};
use crate::{
    history::{Attempt, Body, Cut, End, FaultRecord, Timing, Witness},
    judge::{CaseResult, Decision, Reason, Verdict},
    report::{Accepted, Junit, mask::masked_case},
    spec::RULES,
    suite::NetworkFault,
    text::Redactor,
};

/// Any text, often with what is hard to show.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        vec(any::<char>(), 0..40).prop_map(String::from_iter),
        Just("]]>\u{fffe}\u{ffff}\u{1b}[31m\0\u{85}\ta\r\n<b>&amp;'\"".to_owned()),
        Just("支付 ❤\u{fe0f} e\u{301} \u{202e}abc \u{1f468}\u{200d}\u{1f469}".to_owned()),
        Just("word ".repeat(60)),
        Just("x".repeat(300)),
    ]
}

fn micros() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0u64..400_000, Just(7), 0u64..90_000_000_000]
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        Just(End::Answered),
        Just(End::TimedOut),
        text().prop_map(End::NotSent),
        text().prop_map(End::Unreadable),
        (any::<bool>(), text()).prop_map(|(reset, said)| End::Lost(Cut { reset, said })),
    ]
}

prop_compose! {
    fn attempt()(
        texts in vec(text(), 7),
        name in select(vec!["a", "b", "dup#1", "dup#2"]),
        status in prop_oneof![0u16..1000, select(vec![200, 201, 409])],
        identity in option::of(text()),
        end in end(),
        times in (micros(), option::of(micros()), micros()),
        faulty: bool,
        keyed: bool,
    ) -> Attempt {
        let mut attempt = fixture::attempt(name, 0, 0, status, "");
        let [odd_name, key, request, payload, body, witness, hook] = <[String; 7]>::try_from(texts).unwrap();
        if !keyed {
            (attempt.key, attempt.key_field, attempt.name) = (None, Some(key), odd_name);
        }
        attempt.request = format!("POST /{request}");
        (attempt.payload, attempt.end, attempt.hooks) = (payload, end, vec![hook]);
        let (opened, first_out, ended) = times;
        attempt.timing = Timing { opened, first_out, last_out: None, first_in: None, ended };
        if let Some(response) = &mut attempt.response {
            response.identity = identity;
            response.body = Body { length: body.len() as u64, sha256: body.clone(), text: body, complete: keyed };
        }
        if faulty {
            let witness = if keyed { Witness::Witnessed(witness) } else { Witness::NotWitnessed(witness) };
            attempt.fault = Some(FaultRecord { fault: NetworkFault::CutResponse, recipe: "r".into(), witness });
        }
        attempt
    }
}

prop_compose! {
    fn case()(
        texts in vec(text(), 9),
        verdict in select(vec![Verdict::Passed, Verdict::Skipped, Verdict::Inconclusive, Verdict::Failed]),
        attempts in option::of(vec(attempt(), 0..12)),
        decisions in vec((0..RULES.len(), select(vec![Decision::Broken, Decision::Undecided, Decision::Held])), 0..4),
        vary in option::of((text(), any::<u64>())),
        numbers in (any::<u64>(), any::<u32>(), any::<u32>(), micros()),
    ) -> CaseResult {
        let [suite, name, title, file, why, remedy, message, expected, observed] =
            <[String; 9]>::try_from(texts).unwrap();
        let mut case = fixture::case(&suite, &name, verdict);
        (case.title, case.file, case.id.vary) = (title, file, vary);
        (case.millis, case.rounds, case.place.line) = (numbers.0, numbers.1, numbers.2);
        if matches!(verdict, Verdict::Skipped | Verdict::Inconclusive) {
            case.reason = Some(Reason { why, remedy });
        }
        case.findings = decisions.into_iter().map(|(rule, decision)| {
            let rule = RULES[rule].id.parse().unwrap();
            let mut finding = fixture::finding(rule, decision, &message, &["a", "dup"]);
            finding.expected = vec![expected.clone(), String::new()];
            finding.observed = vec![observed.clone()];
            finding
        }).collect();
        case.history = attempts.map(|attempts| {
            let mut history = fixture::history(attempts);
            history.round = u32::MAX;
            let mut probe = fixture::probe(0, numbers.0, &["x"]);
            (probe.began, probe.ended) = (numbers.3, numbers.0);
            history.probes = vec![probe];
            history
        });
        case
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_block_fits_the_terminal(case in case(), width in 20usize..140, unicode: bool) {
        let block = render_case(&case, &style(width, unicode), &origin());
        prop_assert!(unicode || block.is_ascii());
        let mut copied = false;
        for line in block.lines() {
            prop_assert!(line.chars().all(|c| !c.is_control()));
            // What is to be copied into a shell stays whole; it comes last.
            copied |= line == "      again";
            prop_assert!(copied || line.width() <= width.max(40), "{} > {width}: {line}", line.width());
        }
    }

    #[test]
    fn the_junit_file_can_be_read_and_its_counts_agree(cases in vec(case(), 0..5), inconclusive_fails: bool) {
        let (run, origin, redactor) = (fixture::run(), origin(), Redactor::new());
        let xml = Junit { run: &run, millis: 1, results: &cases, origin: &origin, inconclusive_fails, accepted: &Accepted::default(), redactor: &redactor };
        let xml = xml.to_xml().unwrap();
        let document = roxmltree::Document::parse(&xml).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let elements = |name: &str| document.descendants().filter(|node| node.has_tag_name(name)).count();
        let of = |verdict| cases.iter().filter(|case| case.verdict == verdict).count();
        let (errors, calm) = if inconclusive_fails { (of(Verdict::Inconclusive), 0) } else { (0, of(Verdict::Inconclusive)) };
        let wanted = [("tests", "testcase", cases.len()), ("failures", "failure", of(Verdict::Failed)),
            ("errors", "error", errors), ("skipped", "skipped", calm + of(Verdict::Skipped))];
        for (attribute, element, count) in wanted {
            prop_assert_eq!(elements(element), count);
            let count = count.to_string();
            prop_assert_eq!(document.root_element().attribute(attribute), Some(count.as_str()));
        }
        let names: std::collections::BTreeSet<_> = document.descendants()
            .filter(|node| node.has_tag_name("testcase"))
            .map(|node| (node.attribute("classname"), node.attribute("name")))
            .collect();
        prop_assert_eq!(names.len(), cases.len());
    }

    #[test]
    fn a_secret_does_not_leave(case in case(), secret in "S3CR-[A-Z0-9]{8}[<&\"' ]{0,2}[a-z]", at in 0usize..8) {
        let redactor = Redactor::new();
        redactor.add(&secret);
        let mut case = case;
        let long = format!("{}{secret}{}", "ab ".repeat(at * 9), "z".repeat(at));
        (case.title, case.id.suite, case.id.case, case.file) = (long.clone(), long.clone(), long.clone(), long.clone());
        case.findings.iter_mut().for_each(|finding| finding.message = long.clone());
        for attempt in case.history.iter_mut().flat_map(|history| &mut history.attempts) {
            (attempt.name, attempt.payload, attempt.request) = (long.clone(), long.clone(), long.clone());
            attempt.end = End::Unreadable(long.clone());
        }
        let case = masked_case(&redactor, &case);
        let cases = [case];
        let (run, origin) = (fixture::run(), origin());
        let junit = Junit { run: &run, millis: 1, results: &cases, origin: &origin, inconclusive_fails: true, accepted: &Accepted::default(), redactor: &redactor };
        prop_assert!(!junit.to_xml().unwrap().contains("S3CR"));
        for width in [40, 80] {
            let block = render_case(&cases[0], &style(width, true), &origin);
            prop_assert!(!block.contains("S3CR"), "{block}");
        }
        prop_assert!(!serde_json::to_string(&cases).unwrap().contains("S3CR"));
    }
}
