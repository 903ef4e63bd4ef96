//! `idemproof run`: the main job.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{IsTerminal, Write},
    path::PathBuf,
    sync::Arc,
};

use super::{
    Exit,
    args::{ChoiceArgs, FailOn, GateArgs, RunArgs, Strict},
    dry_run, signals, terminal,
};
use crate::{
    judge::{CaseResult, Gate, Verdict},
    report::{Accepted, Baseline, Options, Reports, Terminal, Verbosity},
    run::{Limits, RunOptions, Runner, Selection, Stage, StageOptions, TargetSource, plan, select},
    schedule::{Allowed, Planned},
    suite::{Suite, builtin_files},
};

/// The part of the arguments that chooses cases.
pub(super) fn selection(choice: &ChoiceArgs) -> Selection {
    Selection {
        suites: choice.suites.clone(),
        filters: choice.filter.clone(),
        tags: choice.tag.clone(),
        rules: choice.rule.clone(),
    }
}

/// The reports of a run, in the folder of reports.
const JUNIT: &str = "junit.xml";
const JSON: &str = "report.json";
const HISTORY: &str = "history.jsonl";
const HTML: &str = "report.html";
const MARKDOWN: &str = "summary.md";

pub(super) async fn run(mut args: RunArgs) -> Exit {
    if !args.dry_run {
        // A run that ends before it begins must not leave the reports of another one to be taken for its own.
        for name in [JUNIT, JSON, HISTORY, HTML, MARKDOWN] {
            // What cannot be removed cannot be written either, and that is told when the reports are made.
            let _ = std::fs::remove_file(args.reports.join(name));
        }
    }
    // An empty `TOXIPROXY_URL` is how a CI job unsets it.
    args.toxiproxy = args.toxiproxy.filter(|url| !url.is_empty());
    let selection = selection(&args.choice);
    let suites = match select(&selection.suites) {
        Ok(suites) => suites,
        Err(error) => return terminal::say_select_error(&error),
    };
    let source = match &args.choice.target {
        Some(path) => TargetSource::File(path.clone()),
        None => TargetSource::Reference(Box::new(args.choice.reference())),
    };
    let stage = match Stage::set_up(&StageOptions { source, toxiproxy: args.toxiproxy.clone() }).await {
        Ok(stage) => stage,
        Err(error) => return terminal::say_stage_error(&error),
    };
    let mut planned = plan(&suites, &stage.target, Allowed { max_wait: args.choice.max_wait }, &selection);
    let all = planned.len();
    if let Some(shard) = &args.shard {
        planned.retain(|planned| shard.has(planned));
    }
    let exit = if all == 0 {
        eprintln!("no case matches: `idemproof list` shows what there is");
        Exit::Nothing
    } else if args.dry_run {
        terminal::say(&dry_run::render(&planned, &stage.target, &stage.run))
    } else {
        perform(&args, &stage, &suites, planned).await
    };
    for warning in stage.tear_down().await {
        eprintln!("warning: {warning}");
    }
    exit
}

/// What makes a run red, as the arguments say.
pub(super) struct Gates {
    pub(super) accepted: Accepted,
    inconclusive_fails: bool,
    record: Option<PathBuf>,
}

impl Gates {
    /// Reads the baseline, or says why it cannot.
    pub(super) fn of(args: &GateArgs, gate: Gate) -> Result<Self, Exit> {
        let compare = args.baseline.as_deref().filter(|_| !args.record_baseline);
        let baseline = compare.map(Baseline::read).transpose().map_err(|error| {
            eprintln!("error: {error}");
            Exit::Usage
        })?;
        Ok(Self {
            accepted: Accepted { gate, allow_flaky: args.allow_flaky, baseline },
            inconclusive_fails: args.fail_on == Some(FailOn::Inconclusive),
            record: args.baseline.clone().filter(|_| args.record_baseline),
        })
    }
}

/// Records the baseline or compares with it, and gives the exit code that the results come to.
pub(super) fn finish(results: &[CaseResult], gates: &Gates) -> Exit {
    let gate = gates.accepted.gate;
    if let Some(path) = &gates.record {
        let baseline = Baseline::of(results, gate);
        if let Err(error) = baseline.write(path) {
            eprintln!("error: {error}");
            return Exit::Internal;
        }
        eprintln!("{} findings are recorded in {}; they pass the gate from now on", baseline.len(), path.display());
        return verdict(results, &Accepted { baseline: Some(baseline), ..gates.accepted.clone() }, gates);
    }
    let accepted = results.iter().filter(|case| gates.accepted.why(case).is_some()).count();
    if accepted > 0 {
        eprintln!("{accepted} failed cases pass the gate: they are in the baseline, or flaky and allowed");
    }
    if let Some(gone) = gates.accepted.baseline.as_ref().map(|baseline| baseline.gone(results, gate))
        && gone > 0
    {
        eprintln!("{gone} findings of the baseline are gone: take them out with --record-baseline");
    }
    verdict(results, &gates.accepted, gates)
}

/// Where GitHub actions wants the summary.
pub(super) fn step_summary() -> Option<PathBuf> {
    on_github().then(|| std::env::var_os("GITHUB_STEP_SUMMARY")).flatten().map(Into::into)
}

fn on_github() -> bool {
    std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true")
}

/// What servers send is shown between these two; nothing of it may act as a command of GitHub's runner.
pub(super) fn before(run: &str) {
    if on_github() {
        say(&format!("::stop-commands::idemproof-{run}\n"));
    }
}

/// Ends what [`before`] began, and annotates.
pub(super) fn after(run: &str, reports: &Reports) {
    if on_github() {
        say(&format!("::idemproof-{run}::\n{}", reports.annotations()));
    }
}

async fn perform(args: &RunArgs, stage: &Stage, suites: &[Suite], planned: Vec<Planned>) -> Exit {
    let gate = Gate { strict_draft: args.gate.strict == Some(Strict::Draft) };
    let gates = match Gates::of(&args.gate, gate) {
        Ok(gates) => gates,
        Err(exit) => return exit,
    };
    let redactor = stage.target.redactor.clone();
    let file = |name: &str| Some(args.reports.join(name));
    let operations = stage.target.operations.iter();
    let report_options = Options {
        junit: file(JUNIT),
        json: file(JSON),
        html: file(HTML),
        markdown: file(MARKDOWN),
        step_summary: step_summary(),
        history: file(HISTORY),
        sources: sources_of(suites.iter().map(|suite| suite.file.as_str())),
        inconclusive_fails: gates.inconclusive_fails,
        accepted: gates.accepted.clone(),
        key_fields: operations.map(|o| (o.name.clone(), o.policy.key.header.to_string())).collect(),
    };
    let style = terminal::style(args.color, std::io::stdout().is_terminal());
    let bar = (std::io::stderr().is_terminal() && !args.no_progress && std::env::var_os("CI").is_none())
        .then(indicatif::ProgressDrawTarget::stderr);
    let screen = Terminal::new(Box::new(std::io::stdout()), style, Verbosity::Normal, redactor.clone(), bar);
    let mut reports = match Reports::create(report_options, redactor.clone(), screen) {
        Ok(reports) => reports,
        Err(error) => {
            eprintln!("error: {error}");
            return Exit::Internal;
        }
    };
    let ended = signals::watch(Arc::clone(&stage.interrupter));
    let options = RunOptions {
        rounds: args.rounds,
        jobs: usize::from(args.jobs),
        gate,
        wait_for_target: args.wait_for_target.duration(),
        again: again(&args.choice, args.toxiproxy.as_deref()),
        faults: args.choice.fault.iter().map(|fault| fault.name().to_owned()).collect(),
        shard: args.shard.map(|shard| shard.to_string()),
        limits: Limits {
            max_failures: args.max_failures,
            time_limit: args.time_limit.map(|limit| limit.duration()),
            accepted: gates.accepted.clone(),
        },
    };
    let runner = match Runner::new(stage, options).await {
        Ok(runner) => runner,
        Err(error) => {
            eprintln!("error: {}", redactor.redact(&error.to_string()));
            return ended.exit().unwrap_or(Exit::Usage);
        }
    };
    let mut trouble = None;
    before(&stage.run);
    let results = runner
        .run(planned, &mut |event| {
            if let Err(error) = reports.handle(event) {
                trouble.get_or_insert(error);
            }
        })
        .await;
    after(&stage.run, &reports);
    if let Some(error) = trouble {
        eprintln!("error: {error}");
        return ended.exit().unwrap_or(Exit::Internal);
    }
    if results.is_empty() {
        eprintln!("this shard has no case; its reports are needed all the same when the shards are merged");
        return ended.exit().unwrap_or(Exit::Fine);
    }
    ended.exit().unwrap_or_else(|| finish(&results, &gates))
}

fn verdict(results: &[CaseResult], accepted: &Accepted, gates: &Gates) -> Exit {
    let any = |verdict| results.iter().any(|result| result.verdict == verdict);
    // A case that was planned and not begun is inconclusive only when the time was over.
    let late = results.iter().any(|result| result.verdict == Verdict::Inconclusive && result.rounds == 0);
    if results.iter().any(|result| accepted.fails(result)) {
        Exit::Violations
    } else if late || (gates.inconclusive_fails && any(Verdict::Inconclusive)) {
        Exit::Inconclusive
    } else if any(Verdict::Passed) || any(Verdict::Failed) {
        Exit::Fine
    } else {
        Exit::Nothing
    }
}

/// Prints; an output that is gone is reported by the reports.
fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// The texts of these suite files, built-in or not. One that cannot be read again is not shown.
pub(super) fn sources_of<'a>(files: impl Iterator<Item = &'a str>) -> BTreeMap<String, String> {
    let builtin: BTreeMap<_, _> = builtin_files().into_iter().collect();
    let text = |file: &str| match std::fs::read_to_string(file) {
        Ok(text) => Some(text),
        Err(_) => builtin.get(file).map(|text| (*text).to_owned()),
    };
    let files: BTreeSet<&str> = files.collect();
    files.into_iter().filter_map(|file| Some((file.to_owned(), text(file)?))).collect()
}

/// The words that name the same target on the command line.
fn again(choice: &ChoiceArgs, toxiproxy: Option<&str>) -> String {
    let mut words = Vec::new();
    if let Some(target) = &choice.target {
        words.push(format!("--target {}", shell_word(&target.display().to_string())));
    }
    words.extend(choice.profile.iter().map(|profile| format!("--profile {}", profile.name)));
    words.extend(choice.policy.iter().map(|setting| format!("--policy {}", shell_word(&setting.to_string()))));
    words.extend(choice.fault.iter().map(|fault| format!("--fault {}", fault.name())));
    words.extend(toxiproxy.map(|url| format!("--toxiproxy {}", shell_word(url))));
    words.join(" ")
}

fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
