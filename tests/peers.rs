//! Suites against servers that nobody on this project wrote. What idemproof says of them must agree with what was
//! observed by hand (the README of each peer).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{collections::BTreeMap, path::Path, process::Command};

use common::{external_trial, peer};
use libtest_mimic::{Arguments, Failed};
use serde_json::Value;

fn main() {
    let trials = vec![
        external_trial(
            "express-idempotency is judged as observed",
            || peer::start("express-idempotency"),
            |peer| {
                judged(
                    "express-idempotency",
                    &peer.base_url(),
                    &[],
                    &[
                        // A failure after the effect frees the key: the retry pays again.
                        ("server-errors/failure-after-effect-is-not-repeated", &["failure-after-effect-not-repeated"]),
                        // An exception that reaches Express's own handler never frees the key.
                        ("server-errors/exception-before-effect", &["key-never-wedged"]),
                        ("server-errors/exception-after-effect", &["key-never-wedged"]),
                        ("server-errors/exception-before-effect-runs-again", &["failure-before-effect-as-documented"]),
                    ],
                    // Location is not kept and a mismatch is 417: both are documented.
                    &["replay-keeps-location", "mismatch-is-422"],
                )
            },
        ),
        external_trial(
            "node-idempotency-nestjs is judged as observed",
            || peer::start_with("node-idempotency-nestjs", &[("RETENTION_S", "4")]),
            |peer| {
                judged(
                    "node-idempotency-nestjs",
                    &peer.base_url(),
                    &[],
                    // On an expired key the first request runs without a claim, so parallel retries make two effects.
                    &[("retention/expired-key-executes-once", &["expired-key-executes-once"])],
                    &["replay-keeps-location"],
                )
            },
        ),
        external_trial(
            "fastapi-idempotency-key is judged as observed",
            || peer::start_with("fastapi-idempotency-key", &[("RETENTION_S", "4")]),
            |peer| {
                judged(
                    "fastapi-idempotency-key",
                    &peer.base_url(),
                    &[],
                    &[
                        ("server-errors/failure-after-effect-is-not-repeated", &["failure-after-effect-not-repeated"]),
                        ("server-errors/exception-after-effect", &["failure-after-effect-not-repeated"]),
                        // The half body is taken for a request and its refusal is stored.
                        ("connection-drops/body-cut-key-free", &["truncated-request-leaves-key-free"]),
                        ("wire/chunks-without-the-last", &["truncated-request-leaves-key-free"]),
                        ("wire/expectation-abandoned", &["truncated-request-leaves-key-free"]),
                    ],
                    &[],
                )
            },
        ),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Runs every built-in suite against a peer; exactly these cases must be red, each for these rules at least, and
/// exactly these rules must be deviations.
fn judged(
    name: &str,
    url: &str,
    arguments: &[&str],
    red: &[(&str, &[&str])],
    deviations: &[&str],
) -> Result<(), Failed> {
    let folder = tempfile::tempdir().unwrap();
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/peers").join(name).join("target.yaml");
    let output = Command::new(env!("CARGO_BIN_EXE_idemproof"))
        .arg("run")
        .arg("--target")
        .arg(&target)
        .args(arguments)
        .current_dir(folder.path())
        .env("PEER_URL", url)
        .env("CI", "true")
        .env_remove("TOXIPROXY_URL")
        .output()?;
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&std::fs::read(folder.path().join("reports/report.json"))?)?;
    let cases = report["cases"].as_array().ok_or("no cases")?;
    let mut failed: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut deviating = std::collections::BTreeSet::new();
    for case in cases {
        let id = format!("{}/{}", case["id"]["suite"].as_str().unwrap(), case["id"]["case"].as_str().unwrap());
        let findings = case["findings"].as_array().unwrap();
        let of = |decision: &str| {
            findings
                .iter()
                .filter(|f| f["decision"] == decision)
                .map(|f| f["rule"].as_str().unwrap())
                .collect::<Vec<_>>()
        };
        deviating.extend(of("deviation"));
        if case["verdict"] == "failed" {
            failed.entry(id).or_default().extend(of("broken"));
        }
    }
    let expected: Vec<&str> = red.iter().map(|(case, _)| *case).collect();
    let mut sorted = expected.clone();
    sorted.sort_unstable();
    assert_eq!(failed.keys().map(String::as_str).collect::<Vec<_>>(), sorted, "red cases of {name}\n{said}");
    for (case, rules) in red {
        for rule in *rules {
            assert!(failed[*case].contains(rule), "{name} {case}: {:?} and not {rule}\n{said}", failed[*case]);
        }
    }
    let mut deviations = deviations.to_vec();
    deviations.sort_unstable();
    assert_eq!(deviating.into_iter().collect::<Vec<_>>(), deviations, "deviations of {name}\n{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
    Ok(())
}
