//! `--dry-run`: what would be sent, for people. Nothing is sent.

use std::fmt::Write;

use crate::{
    schedule::{AttemptPlan, Mint, Planned, PlannedKey, Schedule, Step},
    target::{KeySyntax, Target},
    text::{Var, Vars},
};

/// Everything that the planned cases would send, with keys and references of a run of this id.
pub(super) fn render(planned: &[Planned], target: &Target, run: &str) -> String {
    let mut out = String::new();
    let mut requests = 0;
    for plan in planned {
        // Writing to a String cannot fail.
        let _ = match plan {
            Planned::Run(schedule) => {
                requests += case(&mut out, schedule, target, run);
                Ok(())
            }
            Planned::Skip(skipped) => writeln!(out, "{}\n    skipped: {}", skipped.id, skipped.why),
        };
    }
    let _ = writeln!(out, "\nat least {requests} requests would be sent, effect probes excepted");
    target.redactor.redact(&out)
}

fn case(out: &mut String, schedule: &Schedule, target: &Target, run: &str) -> usize {
    let mint = Mint::new(run, &schedule.id, 0);
    let mut requests = 0;
    let _ = writeln!(out, "{}\n    {}", schedule.id, schedule.title);
    for step in &schedule.steps {
        match step {
            Step::Send { attempt, until_settled } => {
                let again = if *until_settled { ", again while refused as in flight" } else { "" };
                line(out, "send", again, attempt, schedule, target, &mint);
                requests += 1;
            }
            Step::Start(attempt) => {
                line(out, "start", "", attempt, schedule, target, &mint);
                requests += 1;
            }
            Step::Join(name) => {
                let _ = writeln!(out, "    join   {name}");
            }
            Step::Burst { attempts, .. } => {
                for attempt in attempts.iter().take(1) {
                    line(out, "burst", &format!(", {} together", attempts.len()), attempt, schedule, target, &mint);
                }
                requests += attempts.len();
            }
            Step::Time(moved) => {
                let how = if moved.by_hook { "by the clock hook" } else { "by waiting" };
                let _ = writeln!(out, "    time   {} {how}", moved.span);
            }
        }
    }
    requests
}

fn line(
    out: &mut String,
    verb: &str,
    note: &str,
    attempt: &AttemptPlan,
    schedule: &Schedule,
    target: &Target,
    mint: &Mint,
) {
    let operation = &schedule.operation;
    let vars = variables(attempt, mint);
    let path = operation.path.render(&vars).unwrap_or_else(|error| format!("({error})"));
    let key = match &attempt.key {
        PlannedKey::None => "no key".to_owned(),
        PlannedKey::Symbol(name) => {
            let key = mint.key(name);
            let field = &operation.policy.key.header;
            match operation.policy.key.syntax {
                KeySyntax::SfString => format!("{field}: \"{key}\""),
                KeySyntax::Bare => format!("{field}: {key}"),
            }
        }
        PlannedKey::Raw(template) => {
            let value = template.render(&vars).unwrap_or_else(|error| format!("({error})"));
            format!("{}: {value}", operation.policy.key.header)
        }
    };
    let body = attempt.payload.as_ref().map_or_else(String::new, |payload| match payload.render(&vars) {
        Ok(value) => String::from_utf8_lossy(&attempt.encoding.bytes(&value)).into_owned(),
        Err(error) => format!("({error})"),
    });
    let node = target.nodes.get(attempt.node).map(ToString::to_string).unwrap_or_default();
    let fault = attempt.fault.map_or_else(String::new, |fault| format!(", {}", fault_name(fault)));
    let _ = writeln!(
        out,
        "    {verb:6} {} as {}{note}{fault}\n           {} {}{path}\n           {key}\n           {body}",
        attempt.name,
        attempt.tenant,
        operation.method,
        node.trim_end_matches('/'),
    );
}

fn variables(attempt: &AttemptPlan, mint: &Mint) -> Vars {
    let key = match &attempt.key {
        PlannedKey::Symbol(name) => mint.key(name),
        PlannedKey::None | PlannedKey::Raw(_) => mint.key(&attempt.name),
    };
    Vars::from([
        ("reference".to_owned(), Var::Text(mint.reference(&attempt.intent))),
        ("key".to_owned(), Var::Text(key)),
        ("run".to_owned(), Var::Text(mint.run().to_owned())),
    ])
}

fn fault_name(fault: crate::suite::NetworkFault) -> String {
    serde_json::to_value(fault).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
