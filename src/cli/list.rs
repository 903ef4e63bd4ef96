//! `idemproof list`: which cases would run, and why others would not.

use serde_json::json;

use super::{Exit, args::ListArgs, run::selection, terminal};
use crate::{
    run::{StageError, plan, reference_target, select},
    schedule::{Allowed, Planned},
    spec::{RULES, RuleId},
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
    terminal::say(&match (args.coverage, args.json) {
        (true, json) => coverage(&planned, json),
        (false, true) => as_json(&planned),
        (false, false) => as_text(&planned),
    })
}

fn target(args: &ListArgs) -> Result<Target, StageError> {
    match &args.choice.target {
        Some(path) => Ok(Target::load(path, &process_env, BaseUrl::Required)?),
        None => reference_target(&[([127, 0, 0, 1], 0).into()], &args.choice.reference().config),
    }
}

fn as_text(planned: &[Planned]) -> String {
    let mut runs = 0;
    let mut text = String::new();
    for plan in planned {
        match plan {
            Planned::Run(schedule) => {
                runs += 1;
                text += &format!("{}\n    {}\n", schedule.id, schedule.title);
            }
            Planned::Skip(skipped) => {
                text += &format!(
                    "{}  (skipped)\n    {}\n    because {}; {}\n",
                    skipped.id, skipped.title, skipped.why, skipped.remedy
                );
            }
        }
    }
    text + &format!("\n{runs} would run, {} would be skipped\n", planned.len() - runs)
}

/// For each rule how many cases test it, and how many of them would run.
fn coverage(planned: &[Planned], json: bool) -> String {
    let count = |id: &str| {
        let tests = |rules: &[RuleId]| rules.iter().any(|rule| rule.as_str() == id);
        let runs = planned.iter().filter(|plan| matches!(plan, Planned::Run(s) if tests(&s.rules))).count();
        let skips = planned.iter().filter(|plan| matches!(plan, Planned::Skip(s) if tests(&s.rules))).count();
        (runs, skips)
    };
    let counted: Vec<_> = RULES.iter().map(|rule| (rule.id, count(rule.id))).collect();
    if json {
        let rules: Vec<_> = counted
            .iter()
            .map(|(rule, (run, skipped))| json!({ "rule": rule, "run": run, "skipped": skipped }))
            .collect();
        return format!("{:#}\n", json!({ "rules": rules }));
    }
    let mut text: String =
        counted.iter().map(|(rule, (run, skipped))| format!("{run:5} run {skipped:5} skipped   {rule}\n")).collect();
    let of =
        |wanted: &dyn Fn(usize, usize) -> bool| counted.iter().filter(|(_, (run, skip))| wanted(*run, *skip)).count();
    text += &format!(
        "\n{} rules: {} exercised, {} only by skipped cases, {} by no case\n",
        counted.len(),
        of(&|run, _| run > 0),
        of(&|run, skipped| run == 0 && skipped > 0),
        of(&|run, skipped| run == 0 && skipped == 0)
    );
    text
}

fn as_json(planned: &[Planned]) -> String {
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
    format!("{:#}\n", json!({ "cases": cases }))
}
