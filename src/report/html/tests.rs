#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::Html;
use crate::{
    judge::CaseResult,
    report::{Origin, Summary, fixture},
};

fn page(cases: &[CaseResult], sources: BTreeMap<String, String>) -> String {
    let mut html = Html::new(sources).unwrap();
    let origin = Origin::of(&fixture::run(), BTreeMap::new());
    for case in cases {
        html.add(case, &origin).unwrap();
    }
    html.page(&fixture::run(), true, &Summary::of(cases, false, 1_000), cases).unwrap()
}

fn all() -> Vec<CaseResult> {
    vec![
        fixture::passed(),
        fixture::skipped(),
        fixture::inconclusive(),
        fixture::takeover(),
        fixture::lost_response(),
        fixture::race(8),
    ]
}

#[test]
fn failed_cases_come_first_and_every_view_is_there() {
    let yaml = "suite: x\n\n".to_owned() + &"\n".repeat(9) + "  - case: response-lost\n    steps: []\n  - case: z\n";
    let page = page(&all(), BTreeMap::from([("suites/connection-drops.yaml".to_owned(), yaml)]));
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("class=\"case failed\"") < at("class=\"case inconclusive\""));
    assert!(at("class=\"case inconclusive\"") < at("class=\"case passed\""));
    for text in [
        "3 of 5 cases failed",
        "The core",
        "All, in true time",
        "All, by event order",
        "The release, in microseconds",
        "executed again by dup#2: ch_902",
        "lease passed: 20s by waiting",
        "lose-response witnessed",
        "<mark>  &quot;id&quot;: &quot;ch_902&quot;</mark>",
        "- case: response-lost\n  steps: []",
        "idemproof run --target staging.yaml",
        "curl -i",
        "To decide it: give the target an advance_clock hook",
    ] {
        at(text);
    }
    assert!(!page.contains("http://www.w3.org/1999/xlink") && !page.contains("<link") && !page.contains(" src="));
}

#[test]
fn an_empty_run_has_a_page() {
    assert!(page(&[], BTreeMap::new()).contains("Nothing was decided"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_text_changes_the_structure(text in "\\PC{0,12}|[<>&\"'/a-z!-]{0,24}|</script><script>|<!--<script>|.{0,12}") {
        let mut case = fixture::race(2);
        case.title = text.clone();
        case.id.case = text.clone();
        case.file = text.clone();
        case.findings.iter_mut().for_each(|finding| {
            finding.message = text.clone();
            finding.observed = vec![text.clone()];
        });
        let history = case.history.as_mut().unwrap();
        history.stopped = Some(text.clone());
        for attempt in &mut history.attempts {
            (attempt.name, attempt.key, attempt.tenant) = (text.clone(), Some(text.clone()), text.clone());
            (attempt.payload, attempt.request) = (text.clone(), format!("POST /{text}"));
            attempt.response.as_mut().unwrap().body.text = text.clone();
            attempt.response.as_mut().unwrap().identity = Some(text.clone());
        }
        let page = page(&[case], BTreeMap::from([(text.clone(), text.clone())]));
        for (open, close, count) in [("<script", "</script", 1), ("<article", "</article", usize::MAX), ("<svg", "</svg", usize::MAX), ("<text", "</text", usize::MAX), ("<pre", "</pre", usize::MAX)] {
            let opened = page.matches(open).count();
            prop_assert_eq!(opened, page.matches(close).count(), "{}", open);
            prop_assert!(count == usize::MAX || opened == count, "{} {}", open, opened);
        }
        prop_assert!(!page.contains("<!--"));
    }
}
