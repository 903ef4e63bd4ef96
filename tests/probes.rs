//! Effect probes that cannot be relied on: they accuse nobody, and they acquit nobody.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use serde_json::Value;

/// The reference server in a process of its own.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve() -> (Served, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_idemproof"))
        .args(["serve", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap().to_owned();
    (Served(child), url)
}

/// Runs two suites with this probe and gives the report and the exit code.
fn report_with(effects: &str) -> (Value, Option<i32>) {
    let (_served, url) = serve();
    let folder = tempfile::tempdir().unwrap();
    let target = format!(
        "target: t\nbase_url: {url}\noperations:\n  create:\n    request: POST /payments\n    \
         json: {{ amount: 1, currency: TRY, reference: \"${{reference}}\" }}\n    effects: {effects}\n"
    );
    std::fs::write(folder.path().join("target.yaml"), target).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_idemproof"))
        .args(["run", "--target", "target.yaml", "replay", "concurrency/fast-duplicates"])
        .current_dir(folder.path())
        .env("CI", "true")
        .output()
        .unwrap();
    let report = std::fs::read(folder.path().join("reports/report.json")).unwrap();
    (serde_json::from_slice(&report).unwrap(), output.status.code())
}

fn verdicts(report: &Value) -> Vec<&str> {
    report["cases"].as_array().unwrap().iter().map(|case| case["verdict"].as_str().unwrap()).collect()
}

#[test]
fn a_probe_that_counts_is_believed() {
    let (report, exit) = report_with(r#"{ get: "/payments?reference=${reference}", count: "$.items[*]" }"#);
    assert!(verdicts(&report).iter().all(|verdict| *verdict == "passed"), "{report:#}");
    assert_eq!(exit, Some(0));
}

#[test]
fn a_probe_with_a_slip_in_its_path_accuses_nobody() {
    let (report, exit) = report_with(r#"{ get: "/payments?reference=${reference}", count: "$.itemz[*]" }"#);
    assert!(verdicts(&report).iter().all(|verdict| *verdict == "inconclusive"), "{report:#}");
    let why = report["cases"][0]["reason"]["why"].as_str().unwrap();
    assert!(why.contains("the effect probe showed nothing"), "{why}");
    assert_eq!(exit, Some(4));
}

#[test]
fn a_probe_that_counts_everything_acquits_nobody() {
    let (report, _) = report_with(r#"{ get: "/payments?reference=${reference}", count: "$" }"#);
    assert!(verdicts(&report).iter().all(|verdict| *verdict == "inconclusive"), "{report:#}");
}
