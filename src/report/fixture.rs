//! Results to test reporters with.

use crate::{
    history::{
        Attempt, Body, Control, Count, Cut, End, FaultRecord, History, Micros, ParsedField, Probe, ProbeResult,
        Response, Timing, Witness,
    },
    judge::{CaseResult, Decision, Finding, Reason, Verdict},
    report::RunInfo,
    schedule::{CaseId, Encoding, TimeMove},
    spec::{RuleId, id},
    suite::{NetworkFault, Place, Window},
    text::Span,
};

pub(super) fn run() -> RunInfo {
    RunInfo {
        run: "7f3a2b".into(),
        target: "payments-staging".into(),
        nodes: vec!["http://127.0.0.1:8080".into()],
        profile: "draft".into(),
        version: "0.1.0".into(),
        reference_faults: vec![],
        proxy: "embedded".into(),
        shard: None,
        cases: 5,
        began_unix: 1_796_068_800,
        again: "--target staging.yaml".into(),
    }
}

pub(super) fn case(suite: &str, name: &str, verdict: Verdict) -> CaseResult {
    CaseResult {
        id: CaseId { suite: suite.into(), case: name.into(), operation: "create".into(), vary: None },
        title: "The response is lost, the retry gets the original response".into(),
        file: format!("suites/{suite}.yaml"),
        place: Place { line: 12, column: 5 },
        rules: vec![id::AT_MOST_ONE_EFFECT, id::LOST_RESPONSE_RECOVERABLE],
        verdict,
        reason: None,
        findings: vec![],
        millis: 1_843,
        rounds: 1,
        overlaps: vec![],
        failed_rounds: u32::from(verdict == Verdict::Failed),
        history: None,
    }
}

pub(super) fn finding(rule: RuleId, decision: Decision, message: &str, attempts: &[&str]) -> Finding {
    Finding {
        rule,
        decision,
        message: message.into(),
        expected: vec![],
        observed: vec![],
        attempts: attempts.iter().map(|name| (*name).to_owned()).collect(),
        place: None,
    }
}

pub(super) fn history(attempts: Vec<Attempt>) -> History {
    let case = case("s", "c", Verdict::Passed).id;
    History { case, round: 0, attempts, probes: vec![], controls: vec![], stopped: None }
}

/// An attempt under key `k` that is answered.
pub(super) fn attempt(name: &str, from: Micros, to: Micros, status: u16, identity: &str) -> Attempt {
    let text = if status < 300 {
        format!(r#"{{"id":"{identity}","amount":1200,"currency":"TRY"}}"#)
    } else {
        r#"{"type":"about:blank","title":"a request with this key is being processed"}"#.to_owned()
    };
    let kind = if status < 300 { "application/json" } else { "application/problem+json" };
    Attempt {
        name: name.into(),
        burst: name.split_once('#').map(|(burst, _)| burst.to_owned()),
        resend_of: None,
        operation: "create".into(),
        tenant: "default".into(),
        node: 0,
        intent: "k".into(),
        key: Some("k".into()),
        key_field: Some("\"7f3a2b1c-0d4e-4f5a-8b6c-9d0e1f2a41c1\"".into()),
        reference: "idp-7f3a2b-0011223344556677".into(),
        role: "base".into(),
        encoding: Encoding::Compact,
        payload_sha256: "00".into(),
        value_sha256: "00".into(),
        request: "POST /payments\n{\"amount\":1200,\"note\":\"it's\"}".into(),
        payload: "{\"amount\":1200,\"note\":\"it's\"}".into(),
        timing: Timing {
            opened: from.saturating_sub(500),
            first_out: Some(from),
            last_out: Some(from.saturating_add(50)),
            first_in: Some(to),
            ended: to,
        },
        bytes_out: 300,
        bytes_in: 200,
        end: End::Answered,
        response: Some(Response {
            status,
            fields: vec![ParsedField { name: "content-type".into(), value: kind.into() }],
            body: Body { length: text.len() as u64, sha256: text.clone(), text, complete: true },
            identity: (status < 300).then(|| format!("\"{identity}\"")),
        }),
        fault: None,
        hooks: vec![],
        wire: None,
    }
}

/// An attempt whose answer was lost by a fault.
pub(super) fn lost(name: &str, from: Micros, to: Micros, witness: Witness) -> Attempt {
    Attempt {
        end: End::Lost(Cut { reset: true, said: "connection reset by peer".into() }),
        response: None,
        fault: Some(FaultRecord {
            fault: NetworkFault::LoseResponse,
            recipe: "limit_data downstream bytes=0".into(),
            witness,
        }),
        ..attempt(name, from, to, 500, "")
    }
}

pub(super) fn probe(at: Micros, effects: u64, ids: &[&str]) -> Probe {
    Probe {
        intent: "k".into(),
        reference: "idp-7f3a2b-0011223344556677".into(),
        tenant: "default".into(),
        purpose: "final".into(),
        began: at,
        ended: at + 42_000,
        result: ProbeResult::Counted(Count {
            effects,
            ids: ids.iter().map(|id| format!("\"{id}\"")).collect(),
            polls: 3,
        }),
    }
}

/// `copies` attempts that overlap; the first two execute, the rest is refused.
pub(super) fn race(copies: u64) -> CaseResult {
    let attempts: Vec<_> = (0..copies)
        .map(|index| match index {
            0 => attempt("dup#1", 1_000, 301_200, 201, "ch_901"),
            1 => attempt("dup#2", 1_040, 318_900, 201, "ch_902"),
            _ => attempt(&format!("dup#{}", index + 1), 1_000 + index * 30, 6_000 + index * 900, 409, ""),
        })
        .collect();
    let mut history = history(attempts);
    history.round = 2;
    history.probes = vec![probe(330_000, 2, &["ch_901", "ch_902"])];
    let mut once = finding(
        id::AT_MOST_ONE_EFFECT,
        Decision::Broken,
        "Key k was executed twice: dup#1 (ch_901) and dup#2 (ch_902) overlap.",
        &["dup#1", "dup#2"],
    );
    once.expected = vec![
        "one of the attempts is executed, and the others are refused as in flight".into(),
        "one of the attempts is executed, and the others get its answer".into(),
    ];
    once.observed = vec!["2 executions, 2 effects".into()];
    once.place = Some(Place { line: 17, column: 7 });
    let mut case = case("duplicate-concurrent", "overlapping-duplicates", Verdict::Failed);
    case.id.vary = Some(("n".into(), copies));
    case.title = format!("{copies} overlapping duplicates execute once");
    (case.rounds, case.failed_rounds) = (5, 5);
    case.findings = vec![
        finding(id::IN_FLIGHT_IS_409, Decision::Held, "", &[]),
        finding(
            id::CONCURRENT_DUPLICATE_REFUSED_OR_WAITS,
            Decision::Broken,
            "dup#2 was executed while dup#1 ran.",
            &[],
        ),
        once,
        finding(id::ONE_RESULT_PER_KEY, Decision::Broken, "Two results under key k: ch_901 and ch_902.", &[]),
    ];
    case.history = Some(history);
    case
}

/// The response is lost, and the retry executes again.
pub(super) fn lost_response() -> CaseResult {
    let witness = Witness::Witnessed("the probe counts 1 effect, and no byte of the answer came back".into());
    let mut history =
        history(vec![lost("first", 2_000, 98_000, witness), attempt("retry", 99_000, 140_000, 201, "ch_2")]);
    history.probes = vec![probe(150_000, 2, &["ch_1", "ch_2"])];
    let mut found = finding(
        id::LOST_RESPONSE_RECOVERABLE,
        Decision::Broken,
        "The retry was executed again: 2 effects under key k.",
        &["first", "retry"],
    );
    found.expected = vec!["retry: success, with the answer of first".into()];
    found.observed = vec!["retry: executed (201, id ch_2)".into(), "effects: 2 (ch_1, ch_2)".into()];
    let mut case = case("connection-drops", "response-lost", Verdict::Failed);
    case.findings = vec![found];
    case.history = Some(history);
    case
}

/// A takeover after a lease of 30 s, really waited for.
pub(super) fn takeover() -> CaseResult {
    let mut owner = attempt("owner", 1_000, 10_001_000, 0, "");
    (owner.end, owner.response) = (End::TimedOut, None);
    owner.hooks = vec!["die before".into()];
    let mut history = history(vec![
        owner,
        attempt("early", 40_000, 44_000, 409, ""),
        attempt("late", 30_012_000, 30_019_000, 409, ""),
        attempt("late~2", 30_069_000, 30_076_000, 409, ""),
    ]);
    let moved = TimeMove { span: Span::from_secs(20), by_hook: false, past: Some(Window::Lease) };
    history.controls = vec![Control { moved, began: 10_002_000, ended: 30_010_000, failed: None }];
    history.probes = vec![probe(30_100_000, 0, &[])];
    let mut case = case("lease-expiry", "dead-owner", Verdict::Failed);
    let mut found = finding(
        id::KEY_NEVER_WEDGED,
        Decision::Broken,
        "Key k is still in progress 30.07 s after its owner died.",
        &["owner", "late~2"],
    );
    found.expected = vec!["late: success".into()];
    found.observed = vec!["late: in-flight (409)".into()];
    case.findings = vec![found];
    case.history = Some(history);
    case.millis = 30_150;
    case
}

pub(super) fn inconclusive() -> CaseResult {
    let witness = Witness::NotWitnessed("the probe counts no effect: the request may not have arrived".into());
    let mut history =
        history(vec![lost("first", 2_000, 98_000, witness), attempt("retry", 99_000, 140_000, 201, "ch_1")]);
    history.probes = vec![probe(150_000, 1, &["ch_1"])];
    let mut case = case("connection-drops", "cut-while-running", Verdict::Inconclusive);
    case.reason = Some(Reason {
        why: "the fault on first was not witnessed".into(),
        remedy: "look at the proxy's log, or give the operation a slow hook so that the cut hits the handler".into(),
    });
    case.findings = vec![finding(
        id::LOST_RESPONSE_RECOVERABLE,
        Decision::Undecided,
        "It is not known whether first was executed.",
        &["first"],
    )];
    case.history = Some(history);
    case
}

pub(super) fn skipped() -> CaseResult {
    let mut case = case("retention", "replay-after-expiry", Verdict::Skipped);
    case.reason = Some(Reason {
        why: "the retention of 24h is longer than --max-wait 1m".into(),
        remedy: "give the target an advance_clock hook".into(),
    });
    case.millis = 0;
    case.rounds = 0;
    case
}

pub(super) fn passed() -> CaseResult {
    let mut case = case("connection-drops", "cut-request-body", Verdict::Passed);
    case.findings = vec![finding(id::TRUNCATED_REQUEST_NOT_EXECUTED, Decision::Held, "", &[])];
    case.history = Some(history(vec![attempt("first", 0, 10, 201, "ch_1")]));
    case.millis = 12;
    case
}
