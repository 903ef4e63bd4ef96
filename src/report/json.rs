//! `report.json`: everything about a run in one document.
//!
//! The format is stable: within version 1, members are only added. Durations are in milliseconds, instants inside
//! a history in microseconds since the run began, `began_unix` in seconds since 1970.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{RunInfo, Summary};
use crate::{
    judge::{CaseResult, Decision},
    spec::{Keyword, RuleId, Score},
};

/// The version of the format.
pub const VERSION: u32 = 1;

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// The version of the format.
    pub idemproof_report: u32,
    /// The run.
    pub run: RunInfo,
    /// Whether the run is over; else this is a snapshot of a run under way, or of one that was killed.
    pub complete: bool,
    /// The counts and the three scores.
    pub summary: Summary,
    /// Every rule that a case tests or a finding names, in the order of its id.
    pub rules: Vec<RuleReport>,
    /// The cases, in the order in which they ended.
    pub cases: Vec<CaseResult>,
}

/// One rule, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuleReport {
    /// Its id.
    pub id: RuleId,
    /// The score that it counts for.
    pub score: Score,
    /// The requirement word of its source.
    pub keyword: Keyword,
    /// Its sentence.
    pub statement: String,
    /// Where it comes from.
    pub source: String,
    /// The number of findings of each decision.
    pub held: usize,
    /// As above.
    pub broken: usize,
    /// As above.
    pub deviations: usize,
    /// As above.
    pub undecided: usize,
    /// The cases in which it is broken: `suite/case [operation]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken_in: Vec<String>,
}

impl Document {
    /// The document of these results. Secrets must have been masked in them.
    pub fn new(run: &RunInfo, complete: bool, summary: Summary, cases: &[CaseResult]) -> Self {
        let named = cases.iter().flat_map(|case| case.rules.iter().copied());
        let found = cases.iter().flat_map(|case| case.findings.iter().map(|finding| finding.rule));
        let rules: BTreeSet<_> = named.chain(found).collect();
        Self {
            idemproof_report: VERSION,
            run: run.clone(),
            complete,
            summary,
            rules: rules.into_iter().map(|rule| RuleReport::of(rule, cases)).collect(),
            cases: cases.to_vec(),
        }
    }
}

impl RuleReport {
    fn of(id: RuleId, cases: &[CaseResult]) -> Self {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut broken_in = Vec::new();
        for case in cases {
            for finding in case.findings.iter().filter(|finding| finding.rule == id) {
                let word = match finding.decision {
                    Decision::Held => "held",
                    Decision::Broken => "broken",
                    Decision::Deviation => "deviations",
                    Decision::Undecided => "undecided",
                };
                *counts.entry(word).or_default() += 1;
                let name = case.id.to_string();
                if finding.decision == Decision::Broken && broken_in.last() != Some(&name) {
                    broken_in.push(name);
                }
            }
        }
        let rule = id.rule();
        let of = |word| counts.get(word).copied().unwrap_or_default();
        Self {
            id,
            score: rule.score,
            keyword: rule.keyword,
            statement: rule.statement.to_owned(),
            source: rule.source.to_owned(),
            held: of("held"),
            broken: of("broken"),
            deviations: of("deviations"),
            undecided: of("undecided"),
            broken_in,
        }
    }
}
