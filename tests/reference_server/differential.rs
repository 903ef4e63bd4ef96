//! Random requests, told to a server over memory and to one over another store: every answer must be the same.

use crate::client::{Reply, advance, count, keyed};
use crate::subject::{Subject, with_postgres};
use libtest_mimic::{Failed, Trial};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tempfile::TempDir;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("sqlite answers as memory does", || {
            let folder = TempDir::new()?;
            agree(&Subject::start(&format!("sqlite:{}", folder.path().join("store.db").display()), 2))
        }),
        with_postgres("postgres answers as memory does", |postgres| {
            agree(&Subject::start(&postgres.create("shop"), 2))
        }),
    ]
}

/// One thing that a client or time does.
#[derive(Debug, Clone)]
enum Step {
    Request { path: &'static str, key: u8, amount: u8, fail: &'static str },
    Clock { seconds: u32 },
}

fn step() -> impl Strategy<Value = Step> {
    let paths = proptest::sample::select(vec!["/payments", "/v1/payments", "/charges"]);
    let fails = proptest::sample::select(vec![
        "",
        "",
        "",
        "before",
        "after",
        "throw-after",
        "crash-before",
        "crash-after",
        "crash-committed",
        "crash-started",
        "crash-between",
        "between",
        "started",
    ]);
    prop_oneof![
        5 => (paths, 0..2u8, 1..3u8, fails).prop_map(|(path, key, amount, fail)| {
            // Only an operation with phases can be asked to fail between them.
            let phased = fail.ends_with("started") || fail.ends_with("between");
            Step::Request { path: if phased { "/charges" } else { path }, key, amount, fail }
        }),
        // Seconds away from the end of a lease (30 s) and of the retention, or past them: two servers are never equally fast.
        1 => proptest::sample::select(vec![10u32, 30, 86_000, 86_400]).prop_map(|seconds| Step::Clock { seconds }),
    ]
}

fn agree(other: &Subject) -> Result<(), Failed> {
    let memory = Subject::start("memory", 1);
    let mut runner =
        TestRunner::new(Config { cases: 60, failure_persistence: None, max_shrink_iters: 200, ..Config::default() });
    let run = std::cell::Cell::new(0);
    runner
        .run(&proptest::collection::vec(step(), 1..16), |steps| {
            run.set(run.get() + 1);
            prop_assert_eq!(told(&memory, &steps, run.get()), told(other, &steps, run.get()));
            Ok(())
        })
        .map_err(|error| Failed::from(error.to_string()))
}

/// What can be seen while steps are taken.
fn told(subject: &Subject, steps: &[Step], run: u32) -> Vec<String> {
    let mut log = Vec::new();
    let reference = format!("r{run}");
    for step in steps {
        match step {
            Step::Clock { seconds } => advance(subject.addr, *seconds),
            Step::Request { path, key, amount, fail } => {
                let body = format!(r#"{{"amount":{amount},"currency":"TRY","reference":"{reference}"}}"#);
                let fails = [("X-Test-Fail", *fail)];
                let fails = if fail.is_empty() { &[][..] } else { &fails };
                log.push(seen(keyed(subject.addr, "POST", path, &format!("k{run}-{key}"), &body, fails)));
            }
        }
        let counts = ["/payments", "/test/provider/charges", "/test/provider/calls"];
        log.push(format!("{:?}", counts.map(|list| count(subject.addr, list, &reference))));
    }
    log
}

/// An answer without what differs between two servers.
fn seen(reply: Option<Reply>) -> String {
    let Some(reply) = reply else { return "nothing".to_owned() };
    let body = reply.json();
    format!("{} replayed: {} {} {}", reply.status, reply.replayed(), body["type"], body["status"])
}
