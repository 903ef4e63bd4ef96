//! What makes a gate of a run, by the binary: shards and their merge, limits, baselines, annotations.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::BTreeSet,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

fn idemproof(folder: &Path, arguments: &[&str], env: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_idemproof"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("GITHUB_ACTIONS")
        .env("CI", "true")
        .envs(env.iter().copied())
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[track_caller]
fn exits(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}", text(output));
}

fn report(folder: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join("report.json")).unwrap()).unwrap()
}

fn names(report: &Value) -> Vec<String> {
    let cases = report["cases"].as_array().unwrap().iter();
    cases.map(|case| format!("{} {} {}", case["id"]["case"], case["id"]["operation"], case["id"]["vary"])).collect()
}

#[test]
fn shards_are_the_whole_and_merge_into_one_report() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let suites = ["keys", "tenants", "validation", "detection"];
    let whole = idemproof(path, &[&["run", "--reports", "whole"][..], &suites].concat(), &[]);
    exits(&whole, 0);
    // One index is given, one comes from Kubernetes, one from GitLab.
    for (shard, env) in [
        ("1/3", &[][..]),
        ("auto/3", &[("JOB_COMPLETION_INDEX", "1")]),
        ("auto", &[("CI_NODE_INDEX", "3"), ("CI_NODE_TOTAL", "3")]),
    ] {
        let reports = format!("part-{}", shard.replace('/', "-"));
        let part = idemproof(path, &[&["run", "--shard", shard, "--reports", &reports][..], &suites].concat(), env);
        exits(&part, 0);
    }
    let parts = ["part-1-3", "part-auto-3", "part-auto"];
    let of: Vec<_> = parts.iter().map(|part| names(&report(&path.join(part)))).collect();
    let all: BTreeSet<_> = of.iter().flatten().cloned().collect();
    assert_eq!(all, names(&report(&path.join("whole"))).into_iter().collect());
    let detection = of.iter().flatten().filter(|name| name.contains("key-has-an-effect")).count();
    let once = all.iter().filter(|name| name.contains("key-has-an-effect")).count();
    assert_eq!(detection, 3 * once, "every shard finds out whether keys have an effect");
    assert_eq!(of.iter().flatten().count() - detection + once, all.len(), "every other case runs once");

    let merged = idemproof(path, &[&["merge", "--into", "merged"][..], &parts].concat(), &[]);
    exits(&merged, 0);
    assert_eq!(names(&report(&path.join("merged"))).into_iter().collect::<BTreeSet<_>>(), all);
    assert_eq!(report(&path.join("merged"))["summary"]["passed"], report(&path.join("whole"))["summary"]["passed"]);
    for file in ["report.html", "junit.xml", "summary.md", "history.jsonl"] {
        assert!(path.join("merged").join(file).metadata().unwrap().len() > 0, "{file}");
    }
    let two = idemproof(path, &["merge", "--into", "two", "part-1-3", "part-auto"], &[]);
    exits(&two, 2);
    assert!(text(&two).contains("shard 2/3 is missing"), "{}", text(&two));
    exits(&idemproof(path, &["merge", "nothing-here"], &[]), 2);
    exits(&idemproof(path, &["run", "--shard", "4/3", "keys"], &[]), 2);
}

#[test]
fn a_red_shard_makes_the_merge_red() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let red = ["run", "--shard", "1/1", "--fault", "payload-mismatch-ignored", "fingerprint"];
    exits(&idemproof(path, &red, &[]), 1);
    exits(&idemproof(path, &["merge", "reports", "--into", "merged"], &[]), 1);
}

#[test]
fn after_so_many_failures_no_further_case_is_begun() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["run", "--fault", "check-then-act-race", "--jobs", "1", "--max-failures", "1", "concurrency"];
    exits(&idemproof(folder.path(), &arguments, &[]), 1);
    let report = report(&folder.path().join("reports"));
    assert_eq!(report["summary"]["failed"], 1, "{}", report["summary"]);
    assert_eq!(report["summary"]["interrupted"], true);
    let left = report["cases"].as_array().unwrap().iter().filter(|case| {
        case["verdict"] == "skipped" && case["reason"]["why"].as_str().unwrap().contains("--max-failures 1")
    });
    assert!(left.count() > 5);
}

#[test]
fn a_run_that_is_out_of_time_is_not_green() {
    let folder = tempfile::tempdir().unwrap();
    let output = idemproof(folder.path(), &["run", "--time-limit", "1ms", "replay"], &[]);
    exits(&output, 3);
    let report = report(&folder.path().join("reports"));
    assert_eq!(report["summary"]["passed"], 0, "{}", report["summary"]);
    assert!(report["summary"]["inconclusive"].as_u64().unwrap() > 0);
    assert!(text(&output).contains("--time-limit"), "{}", text(&output));
}

#[test]
fn with_a_baseline_only_new_findings_fail() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let run = |more: &[&str]| {
        idemproof(path, &[&["run", "fingerprint", "tenants", "--baseline", "known.json"][..], more].concat(), &[])
    };
    let missing = run(&[]);
    exits(&missing, 2);
    assert!(text(&missing).contains("--record-baseline"), "{}", text(&missing));
    let legacy = ["--fault", "payload-mismatch-ignored"];
    exits(&run(&[&legacy[..], &["--record-baseline"]].concat()), 0);
    let lines = std::fs::read_to_string(path.join("known.json")).unwrap();
    assert!(lines.lines().any(|line| line.contains("different-request-not-served")), "{lines}");
    let known = run(&legacy);
    exits(&known, 0);
    assert!(text(&known).contains("pass the gate"), "{}", text(&known));
    let junit = std::fs::read_to_string(path.join("reports/junit.xml")).unwrap();
    assert!(junit.contains("failures=\"0\"") && junit.contains("known: in the baseline"));
    exits(&run(&["--fault", "payload-mismatch-ignored", "--fault", "cross-tenant-replay"]), 1);
    let repaired = run(&[]);
    exits(&repaired, 0);
    assert!(text(&repaired).contains("of the baseline are gone"), "{}", text(&repaired));
}

#[test]
fn github_is_told_in_its_own_words() {
    let folder = tempfile::tempdir().unwrap();
    let step = folder.path().join("step.md");
    std::fs::write(&step, "of an earlier step\n").unwrap();
    let env = [("GITHUB_ACTIONS", "true"), ("GITHUB_STEP_SUMMARY", step.to_str().unwrap())];
    let output = idemproof(folder.path(), &["run", "--fault", "payload-mismatch-ignored", "fingerprint"], &env);
    exits(&output, 1);
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let token = out.lines().next().unwrap().strip_prefix("::stop-commands::").unwrap().to_owned();
    let (shown, commands) = out.split_once(&format!("::{token}::\n")).unwrap();
    assert!(!shown.lines().skip(1).any(|line| line.trim_start().starts_with("::")), "{shown}");
    assert!(commands.lines().count() > 0 && commands.lines().all(|line| line.starts_with("::error ")), "{commands}");
    assert!(commands.contains("file=suites/fingerprint.yaml,line="), "{commands}");
    let summary = std::fs::read_to_string(&step).unwrap();
    assert!(summary.starts_with("of an earlier step\n## idemproof: failed"), "{summary}");
}

#[test]
fn completions_and_manual_pages_are_made() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let output = idemproof(folder.path(), &["completions", shell], &[]);
        exits(&output, 0);
        assert!(text(&output).contains("max-failures"), "{shell}");
    }
    exits(&idemproof(folder.path(), &["man", "pages"], &[]), 0);
    let page = std::fs::read_to_string(folder.path().join("pages/idemproof-run.1")).unwrap();
    assert!(page.contains("time\\-limit"), "{page}");
    assert!(folder.path().join("pages/idemproof.1").exists());
}
