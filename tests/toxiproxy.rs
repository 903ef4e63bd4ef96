//! The drop suite through a real Toxiproxy.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use common::{external_trial, http, toxiproxy};
use libtest_mimic::Arguments;
use serde_json::Value;

fn main() {
    let trials = vec![
        external_trial(
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
        ),
        external_trial(
            "a run that is ended by Ctrl-C or SIGTERM writes its reports and leaves no proxy behind",
            toxiproxy::start,
            |toxiproxy| {
                for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
                    let folder = tempfile::tempdir()?;
                    let mut run = Command::new(env!("CARGO_BIN_EXE_idemproof"))
                        .args(["run", "connection-drops", "--jobs", "1", "--toxiproxy", &toxiproxy.url()])
                        .current_dir(folder.path())
                        .env("CI", "true")
                        .stdout(Stdio::null())
                        .spawn()?;
                    // The signal comes while a proxy of the run is there.
                    let deadline = Instant::now() + Duration::from_secs(30);
                    while http::get(toxiproxy.addr(), "/proxies")?.body.trim() == "{}" {
                        assert!(Instant::now() < deadline, "no proxy in 30 s");
                        std::thread::yield_now();
                    }
                    assert!(Command::new("kill").args([signal, &run.id().to_string()]).status()?.success());
                    assert_eq!(run.wait()?.code(), Some(code), "{signal}");
                    assert_eq!(http::get(toxiproxy.addr(), "/proxies")?.body.trim(), "{}", "{signal}");
                    let report: Value =
                        serde_json::from_slice(&std::fs::read(folder.path().join("reports/report.json"))?)?;
                    assert_eq!(report["summary"]["interrupted"], true, "{signal}");
                    assert_eq!(report["complete"], true, "{signal}");
                    let junit = std::fs::read_to_string(folder.path().join("reports/junit.xml"))?;
                    assert!(junit.trim_end().ends_with("</testsuites>"), "{signal}");
                }
                Ok(())
            },
        ),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
