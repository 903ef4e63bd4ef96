//! The same cases as tests, for `cargo test` and nextest, in this crate and in a user's own.

use std::{sync::Arc, time::Duration};

pub use libtest_mimic::{Arguments, Conclusion};
use libtest_mimic::{Failed, Trial};

use super::{Limits, RunOptions, Runner, Selection, Stage, StageOptions, plan, select};
use crate::{
    judge::{Gate, Verdict},
    report::{Origin, Style, render_case},
    schedule::{Allowed, Planned},
    text::{Redactor, Span},
};

/// What the tests are made from.
#[derive(Debug, Clone)]
pub struct HarnessOptions {
    /// The target and the fault proxy.
    pub stage: StageOptions,
    /// Which cases.
    pub selection: Selection,
    /// The longest time that one case may wait.
    pub max_wait: Span,
    /// What makes a case fail.
    pub gate: Gate,
    /// Whether an inconclusive case fails its test; else the test passes and says so.
    pub inconclusive_fails: bool,
}

/// Lists and runs every chosen case as a test, as libtest does with its own: with filters, `--list`, `--exact`,
/// `--skip`, `--test-threads` and so on. A case that does not apply is an ignored test.
///
/// Call it from the `main` of a test target with `harness = false`:
///
/// ```no_run
/// use idemproof::run::{Arguments, HarnessOptions, StageOptions, TargetSource, harness};
///
/// let options = HarnessOptions {
///     stage: StageOptions { source: TargetSource::File("target.yaml".into()), toxiproxy: None },
///     selection: Default::default(),
///     max_wait: idemproof::text::Span::from_secs(5),
///     gate: Default::default(),
///     inconclusive_fails: true,
/// };
/// match harness(&Arguments::from_args(), &options) {
///     Ok(conclusion) => conclusion.exit(),
///     Err(error) => {
///         eprintln!("{error}");
///         std::process::exit(2);
///     }
/// }
/// ```
///
/// # Errors
/// When the target, a suite or the fault proxy cannot be set up; the text says what to do.
pub fn harness(arguments: &Arguments, options: &HarnessOptions) -> Result<Conclusion, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no async runtime: {error}"))?;
    let suites = select(&options.selection.suites).map_err(|error| error.to_string())?;
    let stage = runtime.block_on(Stage::set_up(&options.stage)).map_err(|error| error.to_string())?;
    let planned = plan(&suites, &stage.target, Allowed { max_wait: options.max_wait }, &options.selection);
    let run_options = RunOptions {
        rounds: 1,
        jobs: 1,
        gate: options.gate,
        wait_for_target: Duration::from_secs(5),
        again: String::new(),
        faults: Vec::new(),
        shard: None,
        limits: Limits::default(),
    };
    let runner = runtime.block_on(Runner::new(&stage, run_options)).map_err(|error| error.to_string())?;
    let shown = Shown {
        alone: Arc::default(),
        redactor: stage.target.redactor.clone(),
        origin: Origin { nodes: stage.target.nodes.iter().map(ToString::to_string).collect(), ..Origin::default() },
    };
    let trials = planned
        .into_iter()
        .map(|planned| {
            trial(planned, runner.clone(), runtime.handle().clone(), shown.clone(), options.inconclusive_fails)
        })
        .collect();
    let conclusion = libtest_mimic::run(arguments, trials);
    for warning in runtime.block_on(stage.tear_down()) {
        eprintln!("warning: {warning}");
    }
    Ok(conclusion)
}

/// What the tests share.
#[derive(Clone)]
struct Shown {
    /// Tests run side by side; the ones that disturb others take the lock for themselves.
    alone: Arc<tokio::sync::RwLock<()>>,
    redactor: Redactor,
    origin: Origin,
}

fn trial(
    planned: Planned,
    runner: Runner,
    handle: tokio::runtime::Handle,
    shown: Shown,
    inconclusive_fails: bool,
) -> Trial {
    match planned {
        Planned::Skip(skipped) => {
            let name = format!("{} (skipped: {})", skipped.id, skipped.why);
            // Asked for in spite of its reason, it fails with it: a test that did not run must not look like a pass.
            let reason = format!("skipped: {}; {}", skipped.why, skipped.remedy);
            Trial::test(name, move || Err(Failed::from(reason))).with_ignored_flag(true)
        }
        Planned::Run(schedule) => Trial::test(schedule.id.to_string(), move || {
            let result = handle.block_on(async {
                if schedule.exclusive {
                    let _whole = shown.alone.write().await;
                    runner.perform(&schedule).await
                } else {
                    let _part = shown.alone.read().await;
                    runner.perform(&schedule).await
                }
            });
            let style = Style { color: false, unicode: false, width: 100 };
            let text = || shown.redactor.redact(&render_case(&result, &style, &shown.origin));
            match result.verdict {
                Verdict::Failed => Err(Failed::from(text())),
                Verdict::Inconclusive if inconclusive_fails => Err(Failed::from(text())),
                Verdict::Inconclusive => {
                    eprintln!("{}", text());
                    Ok(())
                }
                Verdict::Passed | Verdict::Skipped => Ok(()),
            }
        }),
    }
}
