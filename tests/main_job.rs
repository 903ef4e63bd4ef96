//! The real binary, doing the main job against the reference server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::BTreeSet,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

fn idemproof(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_idemproof"))
        .args(arguments)
        .current_dir(folder)
        .env("CI", "true")
        .env_remove("TOXIPROXY_URL")
        .env_remove("GITHUB_ACTIONS")
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn report(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("reports/report.json")).unwrap()).unwrap()
}

/// The rules that some case found broken.
fn broken(report: &Value) -> BTreeSet<String> {
    let cases = report["cases"].as_array().unwrap();
    let findings = cases.iter().flat_map(|case| case["findings"].as_array().unwrap());
    findings.filter(|f| f["decision"] == "broken").map(|f| f["rule"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn without_faults_all_is_well_and_the_reports_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let output = idemproof(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let report = report(folder.path());
    assert_eq!(broken(&report), BTreeSet::new());
    for case in report["cases"].as_array().unwrap() {
        assert!(["passed", "skipped"].contains(&case["verdict"].as_str().unwrap()), "{case:#}");
    }
    assert!(report["summary"]["passed"].as_u64().unwrap() > 40, "{}", report["summary"]);
    let history = std::fs::read_to_string(folder.path().join("reports/history.jsonl")).unwrap();
    let performed = report["cases"].as_array().unwrap().iter().filter(|case| case["rounds"] != 0).count();
    assert_eq!(history.lines().count(), performed + 1, "a header and one line per performed case");
    let junit = std::fs::read_to_string(folder.path().join("reports/junit.xml")).unwrap();
    let tests = junit.split("tests=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(tests.parse::<usize>().unwrap(), report["cases"].as_array().unwrap().len());
}

/// Runs the suites with one fault on and checks that the run is red for the rule.
fn convicts(fault: &str, rule: &str) {
    let folder = tempfile::tempdir().unwrap();
    let output = idemproof(folder.path(), &["run", "--fault", fault]);
    assert_eq!(output.status.code(), Some(1), "{fault}: {}", text(&output));
    let broken = broken(&report(folder.path()));
    assert!(broken.contains(rule), "{fault} broke {broken:?}, and not {rule}");
}

#[test]
fn check_then_act_race_is_convicted() {
    convicts("check-then-act-race", "at-most-one-effect");
}

#[test]
fn record_after_effect_is_convicted() {
    convicts("record-after-effect", "failure-after-effect-not-repeated");
}

#[test]
fn payload_mismatch_ignored_is_convicted() {
    convicts("payload-mismatch-ignored", "different-request-not-served");
}

#[test]
fn cross_tenant_replay_is_convicted() {
    convicts("cross-tenant-replay", "no-foreign-answer");
}

#[test]
fn status_drift_on_replay_is_convicted() {
    convicts("status-drift-on-replay", "replay-same-status");
}

#[test]
fn transient_failure_pinned_is_convicted() {
    convicts("transient-failure-pinned", "failure-before-effect-as-documented");
}

#[test]
fn retention_below_contract_is_convicted() {
    convicts("retention-below-contract", "retention-honoured");
}

#[test]
fn orphaned_claim_wedge_is_convicted() {
    convicts("orphaned-claim-wedge", "dead-owner-taken-over");
}

#[test]
fn nothing_selected_is_not_success() {
    let folder = tempfile::tempdir().unwrap();
    let output = idemproof(folder.path(), &["run", "--filter", "no such case"]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
}

#[test]
fn wrong_arguments_are_usage_errors() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["run", "--fault", "no-such-fault"][..],
        &["run", "no-such-suite"],
        &["run", "replay/no-such-case"],
        &["run", "--target", "missing.yaml"],
        &["run", "--rule", "no-such-rule"],
        &["run", "--max-wait", "soon"],
        &["run", "--toxiproxy", "http://127.0.0.1:1"],
        &["run", "--toxiproxy", "not a url"],
        &["check", "missing.yaml"],
        &["frobnicate"],
    ] {
        let output = idemproof(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output));
        assert!(!text(&output).contains("panicked"), "{arguments:?}: {}", text(&output));
    }
}

#[test]
fn an_unwritable_report_folder_is_found_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("taken"), "a file").unwrap();
    let output = idemproof(folder.path(), &["run", "--reports", "taken/reports", "replay"]);
    assert_eq!(output.status.code(), Some(5), "{}", text(&output));
    assert!(text(&output).contains("taken/reports"), "{}", text(&output));
}

#[test]
fn a_dry_run_sends_nothing_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let output = idemproof(folder.path(), &["run", "--dry-run", "replay"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("idempotency-key: \""), "{}", text(&output));
    assert!(!folder.path().join("reports").exists());
}

#[test]
fn list_shows_cases_as_text_and_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let plain = idemproof(folder.path(), &["list"]);
    assert_eq!(plain.status.code(), Some(0), "{}", text(&plain));
    assert!(text(&plain).contains("concurrency/overlapping-duplicates [create, n=8]"), "{}", text(&plain));
    let json = idemproof(folder.path(), &["list", "--json", "--tag", "smoke"]);
    let value: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(
        value["cases"]
            .as_array()
            .unwrap()
            .iter()
            .all(|case| case["tags"].as_array().unwrap().contains(&"smoke".into()))
    );
}

#[cfg(unix)]
#[test]
fn a_reader_that_leaves_is_no_failure_and_pipes_are_not_waited_for() {
    use std::process::Stdio;
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["list"][..], &["list", "--json"], &["run", "--dry-run"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_idemproof"));
        command.args(arguments).current_dir(folder.path()).env("TOXIPROXY_URL", "").stdout(writer);
        let output = command.stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}\n{}", text(&output));
    }
    let pipe = folder.path().join("pipe.yaml");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let output = idemproof(folder.path(), &["check", "pipe.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("named pipe"), "{}", text(&output));
    let reports = folder.path().join("reports");
    std::fs::create_dir(&reports).unwrap();
    assert!(Command::new("mkfifo").arg(reports.join("history.jsonl")).status().unwrap().success());
    assert_eq!(idemproof(folder.path(), &["run", "detection"]).status.code(), Some(0));
}

#[test]
fn a_target_that_answers_nothing_is_no_all_clear() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let folder = tempfile::tempdir().unwrap();
    let target =
        format!("target: mute\nbase_url: http://{addr}\noperations:\n  create: {{ request: POST /payments }}\n");
    std::fs::write(folder.path().join("target.yaml"), target).unwrap();
    let output = idemproof(folder.path(), &["--target", "target.yaml", "replay"]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
    assert_eq!(report(folder.path())["summary"]["passed"], 0);
}
