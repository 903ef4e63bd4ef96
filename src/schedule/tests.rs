//! What cases come to on targets that can do much or little.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::{
    suite::{Suite, Window},
    target::{BaseUrl, Target},
    text::Span,
};

const OPERATION: &str = "operations:
  create:
    request: POST /payments
    json: { amount: 100, currency: TRY, reference: \"${reference}\" }
    variants: { invalid: { amount: -1 } }
";

fn target(rest: &str) -> Target {
    let text = format!("target: t\nbase_url: http://127.0.0.1:1\n{OPERATION}{rest}");
    Target::parse(&text, "t.yaml", &|_| None, BaseUrl::Required).unwrap_or_else(|p| panic!("{}", p.render(false, 100)))
}

fn plan(case: &str, target: &Target) -> Vec<Planned> {
    let text = format!(
        "suite: s\nabout: A suite.\ncases:\n  - case: c\n    title: A case\n    rules: [at-most-one-effect]\n{case}"
    );
    let suite = Suite::parse(&text, "s.yaml").unwrap_or_else(|p| panic!("{}", p.render(false, 100)));
    compile(&suite, target, Allowed { max_wait: Span::from_secs(10) })
}

fn run(case: &str, target: &Target) -> Schedule {
    match plan(case, target).pop() {
        Some(Planned::Run(schedule)) => *schedule,
        other => panic!("not planned: {other:?}"),
    }
}

fn skipped(case: &str, target: &Target) -> String {
    match plan(case, target).pop() {
        Some(Planned::Skip(skipped)) => format!("{}; {}", skipped.why, skipped.remedy),
        other => panic!("not skipped: {other:?}"),
    }
}

fn steps(steps: &str) -> String {
    format!("    steps:\n{steps}      - send: {{ as: a, key: k }}\n    expect: {{ a: success }}\n")
}

const HOOKS: &str = "hooks:
  slow: { header: { X-Slow: \"${ms}\" } }
  die: { header: { X-Die: \"${point}/${times}\" } }
";
const CLOCK: &str = "  advance_clock: { request: POST /clock, json: { seconds: \"${seconds}\" } }\n";

#[test]
fn what_a_target_cannot_do_is_a_reasoned_skip() {
    let poor = target("");
    for (case, why, remedy) in [
        (steps("      - send: { as: b, key: k, slow: 300ms }\n"), "cannot be made slow", "`slow` hook"),
        (steps("      - send: { as: b, key: k, fail: before }\n"), "cannot be made to fail", "`fail` hook"),
        (steps("      - send: { as: b, key: k, die: after }\n"), "cannot be made to fail", "`die` hook"),
        (steps("      - send: { as: b, key: k, fault: cut-while-running }\n"), "cannot be made slow", "`slow` hook"),
        (steps("      - send: { as: b, key: k, tenant: other }\n"), "no tenant `other`", "second entry"),
        (steps("      - send: { as: b, key: k, payload: declined }\n"), "no payload variant `declined`", "`variants`"),
        (steps("      - pass: { past: lease }\n"), "documents no lease", "`policy.lease`"),
        (steps("      - pass: { within: retention }\n"), "documents no retention", "`policy.retention`"),
        (format!("    needs: [effect-probe]\n{}", steps("")), "cannot be counted", "`effects` probe"),
        (
            format!("    when: {{ in_flight: wait }}\n{}", steps("")),
            "does not document `in_flight`",
            "`policy.in_flight`",
        ),
    ] {
        let text = skipped(&case, &poor);
        assert!(text.contains(why) && text.contains(remedy), "{case}\n{text}");
    }
}

#[test]
fn a_policy_that_says_otherwise_is_no_fault_of_the_target_file() {
    let text =
        skipped(&format!("    when: {{ in_flight: wait }}\n{}", steps("")), &target("policy: { in_flight: refuse }\n"));
    assert_eq!(
        text,
        "it is for `in_flight: wait`, and the target documents `in_flight: refuse`; nothing: it does not apply"
    );
}

#[test]
fn time_is_moved_by_the_clock_hook_or_by_waiting_or_not_at_all() {
    let documented = "policy: { lease: 5s, retention: 1h, expired_key: fresh }\n";
    let moved = |case: &str, target: &Target| match run(&steps(case), target).steps.first() {
        Some(Step::Time(moved)) => *moved,
        other => panic!("{other:?}"),
    };
    let clock = target(&format!("{documented}{HOOKS}{CLOCK}"));
    let past = moved("      - pass: { past: lease }\n", &clock);
    assert_eq!(past, TimeMove { span: Span::from_secs(6), by_hook: true, past: Some(Window::Lease) });
    let within = moved("      - pass: { within: retention }\n", &clock);
    assert_eq!(within, TimeMove { span: Span::from_secs(2_700), by_hook: true, past: None });
    let waits = target(documented);
    let past = moved("      - pass: { past: lease }\n", &waits);
    assert_eq!(past, TimeMove { span: Span::from_millis(5_500), by_hook: false, past: Some(Window::Lease) });
    let too_long = skipped(&steps("      - pass: { past: retention }\n"), &waits);
    assert!(too_long.contains("61m") && too_long.contains("--max-wait 61m"), "{too_long}");
}

#[test]
fn what_disturbs_others_runs_alone() {
    let clock = target(&format!("policy: {{ lease: 5s }}\n{HOOKS}{CLOCK}"));
    assert!(run(&steps("      - pass: { past: lease }\n"), &clock).exclusive);
    assert!(run(&steps("      - send: { as: b, key: k, die: before }\n"), &clock).exclusive);
    assert!(!run(&steps("      - pass: { for: 100ms }\n"), &clock).exclusive);
    assert!(!run(&steps("      - pass: { past: lease }\n"), &target("policy: { lease: 5s }\n")).exclusive);
}

#[test]
fn an_owner_outlives_its_lease_by_the_clock_or_in_earnest() {
    let case =
        "    steps:\n      - start: { as: a, key: k, slow: past-lease }\n      - join: a\n    expect: { a: success }\n";
    let slow = |target: &Target| match run(case, target).steps.first() {
        Some(Step::Start(plan)) => (plan.slow, plan.hook_headers.clone(), plan.timeout),
        other => panic!("{other:?}"),
    };
    let (by_clock, headers, timeout) = slow(&target(&format!("policy: {{ lease: 5s }}\n{HOOKS}{CLOCK}")));
    assert_eq!(by_clock, Some(Span::from_millis(1_500)));
    assert_eq!(headers[0].1, "1500");
    assert_eq!(timeout, Span::from_millis(11_500), "a slow handler is given its time");
    let (in_earnest, ..) = slow(&target(&format!("policy: {{ lease: 5s }}\n{HOOKS}")));
    assert_eq!(in_earnest, Some(Span::from_millis(6_500)));
}

#[test]
fn a_case_is_planned_for_each_fitting_operation_and_value() {
    let two = "  refund:\n    request: POST /refunds\n    json: { amount: 1, reference: \"${reference}\" }\n    policy: { in_flight: wait }\n";
    let target = target(&format!("{two}policy: {{ in_flight: refuse }}\n"));
    let burst = "    vary: { n: [2, 8] }\n    steps:\n      - burst: { as: a, key: k, copies: \"${n}\", release: together }\n    expect: { a: success }\n";
    let ids: Vec<_> = plan(burst, &target)
        .iter()
        .map(|planned| match planned {
            Planned::Run(schedule) => schedule.id.to_string(),
            Planned::Skip(skipped) => panic!("{}", skipped.why),
        })
        .collect();
    assert_eq!(ids, ["s/c [create, n=2]", "s/c [create, n=8]", "s/c [refund, n=2]", "s/c [refund, n=8]"]);
    let waits = plan(&format!("    when: {{ in_flight: wait }}\n{}", steps("")), &target);
    assert!(matches!(&waits[..], [Planned::Run(schedule)] if schedule.id.operation == "refund"));
}

#[test]
fn more_copies_than_the_target_allows_are_not_sent() {
    let target = target("limits: { concurrency: 4 }\n");
    let burst =
        "    steps:\n      - burst: { as: a, key: k, copies: 8, release: together }\n    expect: { a: success }\n";
    assert!(skipped(burst, &target).contains("8 attempts together and the target allows 4"));
}

#[test]
fn a_burst_does_without_a_slow_hook() {
    let burst = "    steps:\n      - burst: { as: a, key: k, copies: 2, release: together, slow: 300ms }\n    expect: { a: success }\n";
    let schedule = run(burst, &target(""));
    let Some(Step::Burst { attempts, .. }) = schedule.steps.first() else { panic!("{schedule:?}") };
    assert_eq!(attempts.iter().map(|plan| plan.name.as_str()).collect::<Vec<_>>(), ["a#1", "a#2"]);
    assert!(attempts.iter().all(|plan| plan.slow.is_none() && plan.hook_headers.is_empty()));
}

#[test]
fn a_changed_payload_is_derived_where_none_is_declared() {
    let schedule = run(&steps("      - send: { as: b, key: k, payload: changed }\n"), &target(""));
    let Some(Step::Send { attempt, .. }) = schedule.steps.first() else { panic!("{schedule:?}") };
    let vars = [("reference".to_owned(), crate::text::Var::Text("r".into()))].into();
    let value = attempt.payload.as_ref().unwrap().render(&vars).unwrap();
    assert_eq!(value, serde_json::json!({ "amount": 101, "currency": "TRY", "reference": "r" }));
}
