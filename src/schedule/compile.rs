//! From a case and a target to the schedules that it comes to. A pure function.

use std::sync::Arc;

use super::{CaseId, Schedule, compiler::Compiler, when};
use crate::{
    spec::RuleId,
    suite::{Case, Place, Suite},
    target::{Operation, Target},
    text::Span,
};

/// What the person who starts the run allows.
#[derive(Debug, Clone, Copy)]
pub struct Allowed {
    /// The longest time that one case may wait for a window to pass.
    pub max_wait: Span,
}

/// What a case comes to on one operation.
#[derive(Debug, Clone)]
pub enum Planned {
    /// It can be performed.
    Run(Box<Schedule>),
    /// It does not apply, or the target cannot do what it needs.
    Skip(Box<Skipped>),
}

/// A case that is not performed, and why.
#[derive(Debug, Clone)]
pub struct Skipped {
    /// Its name.
    pub id: CaseId,
    /// Its title.
    pub title: String,
    /// The suite file.
    pub file: String,
    /// Where it starts in it.
    pub place: Place,
    /// Its tags.
    pub tags: Vec<String>,
    /// The rules it would test.
    pub rules: Vec<RuleId>,
    /// What stands in the way.
    pub why: String,
    /// What would make it possible.
    pub remedy: String,
}

/// What stands in the way of a case, and what would remove it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Obstacle {
    pub(super) why: String,
    pub(super) remedy: String,
}

impl Obstacle {
    pub(super) fn new(why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { why: why.into(), remedy: remedy.into() }
    }
}

/// Compiles every case of a suite against a target, in the order of the file.
///
/// A case is planned once for each operation whose policy fits its `when`, and for each value of its `vary`. A
/// case that fits no operation is skipped once, with the reason.
pub fn compile(suite: &Suite, target: &Target, allowed: Allowed) -> Vec<Planned> {
    suite.cases.iter().flat_map(|case| compile_case(suite, case, target, allowed)).collect()
}

fn compile_case(suite: &Suite, case: &Case, target: &Target, allowed: Allowed) -> Vec<Planned> {
    let mut planned = Vec::new();
    let mut unfit: Option<(&Operation, Obstacle)> = None;
    for operation in &target.operations {
        if let Err(obstacle) = when::check(&case.when, &operation.policy) {
            unfit.get_or_insert((operation, obstacle));
            continue;
        }
        let shared = Arc::new(operation.clone());
        let values: Vec<Option<(String, u64)>> = match &case.vary {
            None => vec![None],
            Some((name, values)) => values.iter().map(|value| Some((name.clone(), *value))).collect(),
        };
        for vary in values {
            let compiler = Compiler { suite, case, target, operation: &shared, vary, allowed };
            planned.push(match compiler.schedule() {
                Ok(schedule) => Planned::Run(Box::new(schedule)),
                Err(obstacle) => compiler.skip(obstacle),
            });
        }
    }
    if planned.is_empty()
        && let Some((operation, obstacle)) = unfit
    {
        let compiler = Compiler { suite, case, target, operation: &Arc::new(operation.clone()), vary: None, allowed };
        planned.push(compiler.skip(obstacle));
    }
    planned
}
