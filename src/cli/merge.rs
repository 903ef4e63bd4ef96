//! `idemproof merge`: the reports of shards put together. Nothing is sent.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufReader, IsTerminal, Read},
    path::{Path, PathBuf},
};

use super::{
    Exit,
    args::{FailOn, MergeArgs, Strict},
    run::{Gates, finish, sources_of},
    terminal,
};
use crate::{
    judge::Gate,
    report::{Document, Event, Options, Reports, Terminal, Verbosity, merge as put_together},
    text::Redactor,
};

/// A larger report is none of ours.
const MOST_BYTES: u64 = 1 << 30;

pub(super) fn merge(args: &MergeArgs) -> Exit {
    let mut reports = Vec::new();
    for path in &args.reports {
        match read(path) {
            Ok(report) => reports.push((path.display().to_string(), report)),
            Err(said) => {
                eprintln!("error: {said}");
                return Exit::Usage;
            }
        }
    }
    let (run, summary, cases) = match put_together(reports) {
        Ok(merged) => merged,
        Err(error) => {
            eprintln!("error: {error}");
            return Exit::Usage;
        }
    };
    let gate = Gate { strict_draft: args.gate.strict == Some(Strict::Draft) };
    let gates = match Gates::of(&args.gate, gate) {
        Ok(gates) => gates,
        Err(exit) => return exit,
    };
    let file = |name: &str| Some(args.into.join(name));
    let options = Options {
        junit: file("junit.xml"),
        json: file("report.json"),
        html: file("report.html"),
        markdown: file("summary.md"),
        step_summary: super::run::step_summary(),
        history: file("history.jsonl"),
        sources: sources_of(cases.iter().map(|case| case.file.as_str())),
        inconclusive_fails: args.gate.fail_on == Some(FailOn::Inconclusive),
        accepted: gates.accepted.clone(),
        key_fields: BTreeMap::new(),
    };
    // Secrets were masked when the shards' reports were written.
    let redactor = Redactor::new();
    let style = terminal::style(args.color, std::io::stdout().is_terminal());
    let screen = Terminal::new(Box::new(std::io::stdout()), style, Verbosity::Quiet, redactor.clone(), None);
    let mut reports = match Reports::create(options, redactor, screen) {
        Ok(reports) => reports,
        Err(error) => {
            eprintln!("error: {error}");
            return Exit::Internal;
        }
    };
    let guard = run.run.clone();
    super::run::before(&guard);
    let events = std::iter::once(Event::Started(run))
        .chain(cases.iter().map(|case| Event::CaseFinished(Box::new(case.clone()))))
        .chain([Event::Finished(summary.clone())]);
    let mut trouble = None;
    for event in events {
        if let Err(error) = reports.handle(event) {
            trouble.get_or_insert(error);
        }
    }
    super::run::after(&guard, &reports);
    if let Some(error) = trouble {
        eprintln!("error: {error}");
        return Exit::Internal;
    }
    if summary.interrupted {
        eprintln!("error: a shard was stopped before all of its cases were performed");
        return if cases.iter().any(|case| gates.accepted.fails(case)) { Exit::Violations } else { Exit::Inconclusive };
    }
    finish(&cases, &gates)
}

/// The report in a file, or in the `report.json` of a folder.
fn read(path: &Path) -> Result<Document, String> {
    let path: PathBuf = if path.is_dir() { path.join("report.json") } else { path.to_owned() };
    let shown = path.display();
    let file = File::open(&path).map_err(|error| format!("cannot read the report `{shown}`: {error}"))?;
    let reader = BufReader::new(file).take(MOST_BYTES);
    serde_json::from_reader(reader)
        .map_err(|error| format!("`{shown}` is no report.json of this version of idemproof: {error}"))
}
