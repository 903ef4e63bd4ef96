//! The drop suite through a real Toxiproxy.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::process::Command;

use common::{external_trial, http, toxiproxy};
use libtest_mimic::Arguments;
use serde_json::Value;

fn main() {
    let trials = vec![external_trial(
        "the drop suite passes through a real Toxiproxy and leaves no proxy behind",
        toxiproxy::start,
        |toxiproxy| {
            let folder = tempfile::tempdir()?;
            let output = Command::new(env!("CARGO_BIN_EXE_idemproof"))
                .args(["run", "connection-drops", "--fail-on", "inconclusive", "--toxiproxy", &toxiproxy.url()])
                .current_dir(folder.path())
                .env("CI", "true")
                .output()?;
            let said =
                format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert_eq!(output.status.code(), Some(0), "{said}");
            let report: Value = serde_json::from_slice(&std::fs::read(folder.path().join("reports/report.json"))?)?;
            for case in report["cases"].as_array().unwrap() {
                assert_eq!(case["verdict"], "passed", "{case:#}");
            }
            assert_eq!(http::get(toxiproxy.addr(), "/proxies")?.body.trim(), "{}");
            Ok(())
        },
    )];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
