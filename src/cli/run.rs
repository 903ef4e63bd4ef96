//! `idemproof run`: the main job.

use std::{collections::BTreeMap, io::{IsTerminal, Write}, sync::Arc};

use super::{
    Exit,
    args::{ChoiceArgs, FailOn, RunArgs, Strict},
    dry_run, signals, terminal,
};
use crate::{
    judge::{CaseResult, Gate, Verdict},
    report::{Options, Reports, Terminal, Verbosity},
    run::{RunOptions, Runner, Selection, Stage, StageOptions, TargetSource, plan, select},
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

pub(super) async fn run(args: RunArgs) -> Exit {
    let selection = selection(&args.choice);
    let suites = match select(&selection.suites) {
        Ok(suites) => suites,
        Err(error) => return terminal::say_select_error(&error),
    };
    let source = match &args.choice.target {
        Some(path) => TargetSource::File(path.clone()),
        None => TargetSource::Reference(args.choice.fault.clone()),
    };
    let stage = match Stage::set_up(&StageOptions { source, toxiproxy: args.toxiproxy.clone() }).await {
        Ok(stage) => stage,
        Err(error) => return terminal::say_stage_error(&error),
    };
    let planned = plan(&suites, &stage.target, Allowed { max_wait: args.choice.max_wait }, &selection);
    let exit = if planned.is_empty() {
        eprintln!("no case matches: `idemproof list` shows what there is");
        Exit::Nothing
    } else if args.dry_run {
        print!("{}", dry_run::render(&planned, &stage.target, &stage.run));
        Exit::Fine
    } else {
        perform(&args, &stage, &suites, planned).await
    };
    for warning in stage.tear_down().await {
        eprintln!("warning: {warning}");
    }
    exit
}

async fn perform(args: &RunArgs, stage: &Stage, suites: &[Suite], planned: Vec<Planned>) -> Exit {
    let gate = Gate { strict_draft: args.strict == Some(Strict::Draft) };
    let inconclusive_fails = args.fail_on == Some(FailOn::Inconclusive);
    let github = std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true");
    let redactor = stage.target.redactor.clone();
    let file = |name: &str| Some(args.reports.join(name));
    let operations = stage.target.operations.iter();
    let report_options = Options {
        junit: file("junit.xml"),
        json: file("report.json"),
        html: file("report.html"),
        markdown: file("summary.md"),
        step_summary: github.then(|| std::env::var_os("GITHUB_STEP_SUMMARY")).flatten().map(Into::into),
        history: file("history.jsonl"),
        sources: sources(suites),
        inconclusive_fails,
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
    };
    let runner = match Runner::new(stage, options).await {
        Ok(runner) => runner,
        Err(error) => {
            eprintln!("error: {}", redactor.redact(&error.to_string()));
            return ended.exit().unwrap_or(Exit::Usage);
        }
    };
    let mut trouble = None;
    if github {
        // What servers send is shown below; nothing of it may act as a command of the runner.
        say(&format!("::stop-commands::idemproof-{}\n", stage.run));
    }
    let results = runner
        .run(planned, &mut |event| {
            if let Err(error) = reports.handle(event) {
                trouble.get_or_insert(error);
            }
        })
        .await;
    if github {
        say(&format!("::idemproof-{}::\n{}", stage.run, reports.annotations()));
    }
    if let Some(error) = trouble {
        eprintln!("error: {error}");
        return ended.exit().unwrap_or(Exit::Internal);
    }
    ended.exit().unwrap_or_else(|| verdict(&results, inconclusive_fails))
}

/// The exit code that the results come to.
fn verdict(results: &[CaseResult], inconclusive_fails: bool) -> Exit {
    let any = |verdict| results.iter().any(|result| result.verdict == verdict);
    if any(Verdict::Failed) {
        Exit::Violations
    } else if inconclusive_fails && any(Verdict::Inconclusive) {
        Exit::Inconclusive
    } else if any(Verdict::Passed) || any(Verdict::Inconclusive) {
        Exit::Fine
    } else {
        Exit::Nothing
    }
}

/// Prints; an output that is gone is reported by the reports.
fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// The texts of the suite files, built-in or not. One that cannot be read again is not shown.
fn sources(suites: &[Suite]) -> BTreeMap<String, String> {
    let builtin: BTreeMap<_, _> = builtin_files().into_iter().collect();
    let text = |suite: &Suite| match std::fs::read_to_string(&suite.file) {
        Ok(text) => Some(text),
        Err(_) => builtin.get(&suite.file).map(|text| (*text).to_owned()),
    };
    suites.iter().filter_map(|suite| Some((suite.file.clone(), text(suite)?))).collect()
}

/// The words that name the same target on the command line.
fn again(choice: &ChoiceArgs, toxiproxy: Option<&str>) -> String {
    let mut words = Vec::new();
    if let Some(target) = &choice.target {
        words.push(format!("--target {}", shell_word(&target.display().to_string())));
    }
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
