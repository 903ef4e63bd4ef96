//! Runs the built-in suites against every fault of the reference server, in every store, with and without an effect
//! probe, and writes which case convicts which fault, and by which finding: `reports/mutations.md` and `.json`.
//!
//! ```text
//! cargo run --example mutation-table                        # everything
//! cargo run --example mutation-table -- --quick             # in memory and with effect probe only, shown and not written
//! cargo run --example mutation-table -- --fault NAME ...    # some faults only, shown and not written
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use idemproof::judge::{CaseResult, Decision, Gate, Verdict};
use idemproof::reference::{Config, Fault, FaultSet, Need, StoreChoice};
use idemproof::run::{
    Limits, Reference, RunOptions, Runner, Selection, Stage, StageOptions, TargetSource, plan, select,
};
use idemproof::schedule::Allowed;
use idemproof::text::Span;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What the suites find with one fault on: broken rules, and the cases that found them.
type Findings = BTreeMap<String, BTreeSet<String>>;

/// How one run is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Setup {
    store: &'static str,
    probe: bool,
}

impl std::fmt::Display for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {} effect probe", self.store, if self.probe { "with" } else { "without" })
    }
}

/// How many runs go on at once. They mostly wait.
const SIDE_BY_SIDE: usize = 6;

const SETUPS: &[Setup] = &[
    Setup { store: "memory", probe: true },
    Setup { store: "memory", probe: false },
    Setup { store: "sqlite", probe: true },
];

fn main() -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no async runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(table()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Makes the table, and tells whether every fault is convicted in every setup with a probe, and no fault in none.
async fn table() -> Result<bool, Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let setups = if quick { &SETUPS[..1] } else { SETUPS };
    let names = arguments.iter().filter(|argument| !["--fault", "--quick"].contains(&argument.as_str()));
    let wanted = names.map(|name| name.parse()).collect::<Result<Vec<Fault>, _>>()?;
    let faults = if wanted.is_empty() { Fault::ALL.to_vec() } else { wanted.clone() };
    let none = if wanted.is_empty() { vec![None] } else { Vec::new() };
    let mut runs = JoinSet::new();
    let places = Arc::new(Semaphore::new(SIDE_BY_SIDE));
    for fault in none.into_iter().chain(faults.iter().copied().map(Some)) {
        for setup in setups {
            let places = Arc::clone(&places);
            runs.spawn(async move {
                let _place = places.acquire().await;
                (fault, *setup, run(fault, *setup).await.map_err(|error| error.to_string()))
            });
        }
    }
    let mut sound = true;
    let mut table: BTreeMap<Fault, BTreeMap<Setup, Findings>> = BTreeMap::new();
    while let Some(done) = runs.join_next().await {
        let (fault, setup, result) = done?;
        let (findings, counts) = result?;
        let name = fault.map_or("without faults", Fault::name);
        println!("{name} ({setup}): {} [{counts}]", short(&findings));
        match fault {
            None => sound &= findings.is_empty(),
            Some(fault) => {
                sound &= !setup.probe || !findings.is_empty() || beyond(fault).is_some();
                table.entry(fault).or_default().insert(setup, findings);
            }
        }
    }
    let rows: Vec<_> = table.into_iter().collect();
    if wanted.is_empty() && !quick {
        std::fs::create_dir_all("reports")?;
        std::fs::write("reports/mutations.md", markdown(&rows))?;
        std::fs::write("reports/mutations.json", format!("{:#}\n", machine(&rows)))?;
    }
    Ok(sound)
}

/// What no suite can do yet and it would take to see a fault.
fn beyond(fault: Fault) -> Option<&'static Need> {
    fault.needs().iter().find(|need| matches!(need, Need::SecondOperation | Need::StoreOutage | Need::Preflight))
}

/// Runs every suite once with a fault on.
async fn run(fault: Option<Fault>, setup: Setup) -> Result<(Findings, String), Failure> {
    let folder = tempfile::tempdir()?;
    let store = match setup.store {
        "sqlite" => StoreChoice::Sqlite(folder.path().join("store.db")),
        _ => StoreChoice::Memory,
    };
    let config = Config { store, faults: fault.into_iter().collect::<FaultSet>(), ..Config::default() };
    let source = TargetSource::Reference(Box::new(Reference { config, profile: None }));
    let mut stage = Stage::set_up(&StageOptions { source, toxiproxy: None }).await?;
    if !setup.probe {
        let mut target = (*stage.target).clone();
        target.operations.iter_mut().for_each(|operation| operation.effects = None);
        stage.target = Arc::new(target);
    }
    let planned = plan(&select(&[])?, &stage.target, Allowed { max_wait: Span::from_secs(10) }, &Selection::default());
    let options = RunOptions {
        rounds: 1,
        jobs: 8,
        gate: Gate { strict_draft: false },
        wait_for_target: Duration::from_secs(5),
        again: String::new(),
        faults: Vec::new(),
        limits: Limits::default(),
        shard: None,
    };
    let runner = Runner::new(&stage, options).await?;
    let results = runner.run(planned, &mut |_| {}).await;
    stage.tear_down().await;
    let count = |verdict| results.iter().filter(|result| result.verdict == verdict).count();
    let counts = format!(
        "{} failed, {} passed, {} inconclusive",
        count(Verdict::Failed),
        count(Verdict::Passed),
        count(Verdict::Inconclusive)
    );
    if fault.is_none() {
        for result in results.iter().filter(|result| matches!(result.verdict, Verdict::Inconclusive | Verdict::Failed))
        {
            eprintln!("  {} {:?} {:?}", result.id, result.verdict, result.reason);
        }
    }
    Ok((broken(&results), counts))
}

fn broken(results: &[CaseResult]) -> Findings {
    let mut findings = Findings::new();
    for result in results.iter().filter(|result| result.verdict == Verdict::Failed) {
        let case = format!("{}/{}", result.id.suite, result.id.case);
        for finding in result.findings.iter().filter(|finding| finding.decision == Decision::Broken) {
            findings.entry(finding.rule.to_string()).or_default().insert(case.clone());
        }
    }
    findings
}

/// The rules with the number of cases that found them broken, most of them first.
fn short(findings: &Findings) -> String {
    let mut rules: Vec<_> = findings.iter().map(|(rule, cases)| (cases.len(), rule)).collect();
    rules.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let rules: Vec<_> = rules.iter().map(|(count, rule)| format!("{rule} ({count})")).collect();
    if rules.is_empty() { "nothing".to_owned() } else { rules.join(", ") }
}

fn markdown(rows: &[(Fault, BTreeMap<Setup, Findings>)]) -> String {
    let mut text = String::from(
        "# Which case convicts which fault\n\n\
         Made by `cargo run --example mutation-table`. Each fault of the reference server is switched on alone, and all \
         built-in suites are run. The number after a rule is that of the cases which found it broken.\n\n\
         | fault | class | memory, with effect probe | memory, without | sqlite, with effect probe |\n\
         |---|---|---|---|---|\n",
    );
    for (fault, found) in rows {
        let cells = SETUPS.iter().map(|setup| match (short(&found[setup]), beyond(*fault)) {
            (rules, Some(need)) if found[setup].is_empty() => format!("{rules}: no suite has a {need}"),
            (rules, _) => rules,
        });
        let cells: Vec<_> = cells.collect();
        let _ = writeln!(text, "| `{}` | `{}` | {} |", fault.name(), fault.class(), cells.join(" | "));
    }
    text.push_str("\n## The cases, in memory with effect probe\n");
    for (fault, found) in rows {
        let _ = writeln!(text, "\n### `{}`\n\n{}.\n", fault.name(), fault.help());
        for (rule, cases) in &found[&SETUPS[0]] {
            let cases: Vec<_> = cases.iter().map(String::as_str).collect();
            let _ = writeln!(text, "* `{rule}`: {}", cases.join(", "));
        }
    }
    text
}

fn machine(rows: &[(Fault, BTreeMap<Setup, Findings>)]) -> Value {
    let rows = rows.iter().map(|(fault, found)| {
        let found = found
            .iter()
            .map(|(setup, findings)| json!({ "store": setup.store, "effect_probe": setup.probe, "broken": findings }));
        json!({
            "fault": fault.name(),
            "class": fault.class().name(),
            "convicted": found.collect::<Vec<_>>(),
        })
    });
    rows.collect()
}
