//! The reports of shards put together.

use std::collections::{BTreeMap, BTreeSet};

use super::{Document, RunInfo, Summary};
use crate::judge::CaseResult;

/// Why reports cannot be put together. Each text names the report by the name that it was given under.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// There is none.
    #[error("there is no report to merge")]
    None,
    /// A shard did not end.
    #[error("`{0}` is the report of a run that did not end; run that shard again")]
    Incomplete(String),
    /// They are of different targets.
    #[error("`{name}` is about the target `{target}`, the others are about `{other}`")]
    Target {
        /// The report.
        name: String,
        /// Its target.
        target: String,
        /// The target of the first one.
        other: String,
    },
    /// One part is there twice, or parts of different wholes.
    #[error("`{name}` is {what}; every shard of one --shard INDEX/COUNT is needed once")]
    Twice {
        /// The report.
        name: String,
        /// What is wrong with it.
        what: String,
    },
    /// A part is missing.
    #[error("the report of shard {0} is missing; a part that did not run must not look like a pass")]
    Missing(String),
}

/// Puts the reports of all shards of a run together. A case that several of them have counts once, with the worst of
/// its verdicts.
///
/// # Errors
/// When a shard is missing, given twice or did not end, or the reports are of different targets.
pub fn merge(reports: Vec<(String, Document)>) -> Result<(RunInfo, Summary, Vec<CaseResult>), MergeError> {
    let Some((_, first)) = reports.first() else { return Err(MergeError::None) };
    let mut run = first.run.clone();
    let mut parts: BTreeSet<u32> = BTreeSet::new();
    let mut count = None;
    for (name, report) in &reports {
        if !report.complete {
            return Err(MergeError::Incomplete(name.clone()));
        }
        if report.run.target != run.target {
            let (target, other) = (report.run.target.clone(), run.target.clone());
            return Err(MergeError::Target { name: name.clone(), target, other });
        }
        let twice = |what: String| MergeError::Twice { name: name.clone(), what };
        let shard = report.run.shard.as_deref().and_then(|shard| shard.split_once('/'));
        let numbers = shard.and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        let Some((index, of)) = numbers else {
            return Err(twice("not the report of a shard".to_owned()));
        };
        if *count.get_or_insert(of) != of {
            return Err(twice(format!("one of {of} shards, others are of another count")));
        }
        if !parts.insert(index) {
            return Err(twice(format!("the second report of shard {index}/{of}")));
        }
    }
    let count: u32 = count.unwrap_or_default();
    if let Some(missing) = (1..=count).find(|index| !parts.contains(index)) {
        return Err(MergeError::Missing(format!("{missing}/{count}")));
    }
    let runs: Vec<_> = reports.iter().map(|(_, report)| report.run.run.clone()).collect();
    run.run = runs.join("+");
    run.shard = None;
    run.nodes = reports
        .iter()
        .flat_map(|(_, report)| report.run.nodes.iter().cloned())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    run.began_unix = reports.iter().map(|(_, report)| report.run.began_unix).min().unwrap_or_default();
    let interrupted = reports.iter().any(|(_, report)| report.summary.interrupted);
    let millis = reports.iter().map(|(_, report)| report.summary.millis).max().unwrap_or_default();
    let mut cases: Vec<CaseResult> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for case in reports.into_iter().flat_map(|(_, report)| report.cases) {
        match places.get(&format!("{} {}", case.file, case.id)).and_then(|place| cases.get_mut(*place)) {
            Some(known) if known.verdict < case.verdict => *known = case,
            Some(_) => {}
            None => {
                places.insert(format!("{} {}", case.file, case.id), cases.len());
                cases.push(case);
            }
        }
    }
    run.cases = cases.len();
    let summary = Summary::of(&cases, interrupted, millis);
    Ok((run, summary, cases))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::{judge::Verdict, report::fixture};

    fn part(shard: Option<&str>, cases: Vec<CaseResult>) -> (String, Document) {
        let run = RunInfo { shard: shard.map(str::to_owned), cases: cases.len(), ..fixture::run() };
        let document = Document::new(&run, true, Summary::of(&cases, false, 5), &cases);
        (shard.unwrap_or("whole").to_owned(), document)
    }

    #[test]
    fn the_whole_has_every_case_once_with_the_worst_verdict() {
        let mut passed = fixture::race(8);
        passed.verdict = Verdict::Passed;
        let one = part(Some("1/2"), vec![passed, fixture::passed()]);
        let two = part(Some("2/2"), vec![fixture::race(8), fixture::skipped()]);
        let (run, summary, cases) = merge(vec![one, two]).unwrap();
        assert_eq!((run.cases, cases.len(), summary.failed, summary.passed, summary.skipped), (3, 3, 1, 1, 1));
        assert_eq!((run.shard, run.run.as_str()), (None, "7f3a2b+7f3a2b"));
    }

    #[test]
    fn what_is_not_the_whole_is_refused() {
        let said = |parts: Vec<(String, Document)>| merge(parts).unwrap_err().to_string();
        let of = |shard| part(Some(shard), vec![fixture::passed()]);
        assert!(said(vec![]).contains("no report"));
        assert!(said(vec![of("1/3"), of("3/3")]).contains("shard 2/3 is missing"));
        assert!(said(vec![of("1/2"), of("1/2")]).contains("the second report of shard 1/2"));
        assert!(said(vec![of("1/2"), of("2/3")]).contains("another count"));
        assert!(said(vec![part(None, vec![])]).contains("not the report of a shard"));
        let mut other = of("2/2");
        other.1.run.target = "x".into();
        assert!(said(vec![of("1/2"), other]).contains("the target `x`"));
        let mut open = of("2/2");
        open.1.complete = false;
        assert!(said(vec![of("1/2"), open]).contains("did not end"));
    }
}
