//! `idemproof list`: which cases would run, and why others would not.

use serde_json::json;

use super::{Exit, args::ListArgs, run::selection, terminal};
use crate::{
    run::{StageError, plan, reference_target, select},
    schedule::{Allowed, Planned},
    target::{BaseUrl, Target, process_env},
};

pub(super) async fn list(args: &ListArgs) -> Exit {
    let suites = match select(&args.choice.suites) {
        Ok(suites) => suites,
        Err(error) => return terminal::say_select_error(&error),
    };
    let target = match target(args) {
        Ok(target) => target,
        Err(error) => return terminal::say_stage_error(&error),
    };
    let planned = plan(&suites, &target, Allowed { max_wait: args.choice.max_wait }, &selection(&args.choice));
    if planned.is_empty() {
        eprintln!("no case matches");
        return Exit::Nothing;
    }
    if args.json {
        print_json(&planned)
    } else {
        print_text(&planned)
    }
    Exit::Fine
}

fn target(args: &ListArgs) -> Result<Target, StageError> {
    match &args.choice.target {
        Some(path) => Ok(Target::load(path, &process_env, BaseUrl::Required)?),
        None => reference_target(([127, 0, 0, 1], 0).into()),
    }
}

fn print_text(planned: &[Planned]) {
    let mut runs = 0;
    for plan in planned {
        match plan {
            Planned::Run(schedule) => {
                runs += 1;
                println!("{}\n    {}", schedule.id, schedule.title);
            }
            Planned::Skip(skipped) => {
                println!(
                    "{}  (skipped)\n    {}\n    because {}; {}",
                    skipped.id, skipped.title, skipped.why, skipped.remedy
                );
            }
        }
    }
    println!("\n{runs} would run, {} would be skipped", planned.len() - runs);
}

fn print_json(planned: &[Planned]) {
    let cases: Vec<_> = planned
        .iter()
        .map(|plan| match plan {
            Planned::Run(schedule) => json!({
                "id": schedule.id.to_string(), "suite": schedule.id.suite, "case": schedule.id.case,
                "operation": schedule.id.operation, "title": schedule.title, "file": schedule.file,
                "line": schedule.place.line, "rules": schedule.rules, "tags": schedule.tags, "skipped": null,
            }),
            Planned::Skip(skipped) => json!({
                "id": skipped.id.to_string(), "suite": skipped.id.suite, "case": skipped.id.case,
                "operation": skipped.id.operation, "title": skipped.title, "file": skipped.file,
                "line": skipped.place.line, "rules": skipped.rules, "tags": skipped.tags,
                "skipped": { "why": skipped.why, "remedy": skipped.remedy },
            }),
        })
        .collect();
    println!("{:#}", json!({ "cases": cases }));
}
