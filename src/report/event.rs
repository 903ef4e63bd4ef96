//! The stream of events that every reporter reads.

use serde::{Deserialize, Serialize};

use crate::{
    judge::{CaseResult, Decision, Verdict},
    schedule::CaseId,
    spec::Score,
};

/// Something that reporters may want to show.
#[derive(Debug, Clone)]
pub enum Event {
    /// The run begins.
    Started(RunInfo),
    /// A case begins to be performed.
    CaseStarted(CaseId),
    /// A case is over.
    CaseFinished(Box<CaseResult>),
    /// The run was asked to stop; what is under way is let end or given up.
    Interrupted,
    /// The run is over. Nothing follows.
    Finished(Summary),
}

/// What is known when a run begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInfo {
    /// The run's id: part of every key's reference, of the User-Agent and of a request header field.
    pub run: String,
    /// The target's name.
    pub target: String,
    /// The base URLs, credentials masked.
    pub nodes: Vec<String>,
    /// The profile of the target.
    pub profile: String,
    /// The version of idemproof.
    pub version: String,
    /// The faults of the reference server, if it is the target.
    pub reference_faults: Vec<String>,
    /// The Toxiproxy in use: `embedded`, or the URL and version of another one.
    pub proxy: String,
    /// The part of the whole that this run is: `2/5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// How many cases there are, skipped ones included.
    pub cases: usize,
    /// When the run began: seconds since 1970, UTC.
    pub began_unix: u64,
    /// The words to run idemproof with to see the same target again, secrets left out: `--target FILE`, `--fault NAME`.
    pub again: String,
}

/// The three scores and the counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Cases by verdict.
    pub passed: usize,
    /// Cases by verdict.
    pub failed: usize,
    /// Cases by verdict.
    pub inconclusive: usize,
    /// Cases by verdict.
    pub skipped: usize,
    /// One line per score.
    pub scores: Vec<ScoreLine>,
    /// Whether the run was stopped before all cases were performed.
    pub interrupted: bool,
    /// How long the run took, in milliseconds.
    pub millis: u64,
}

/// How the rules of one score came out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScoreLine {
    /// Which score.
    pub score: Score,
    /// Rules that were decided and hold in every case.
    pub held: usize,
    /// Rules that are broken in some case.
    pub broken: usize,
    /// Rules that deviate as documented, and are broken nowhere.
    pub deviations: usize,
    /// Rules that no case could decide.
    pub undecided: usize,
}

impl Summary {
    /// Counts results. A rule counts once per score line, with the worst that any case found.
    pub fn of(results: &[CaseResult], interrupted: bool, millis: u64) -> Self {
        let count = |verdict| results.iter().filter(|result| result.verdict == verdict).count();
        let worst = |rule: crate::spec::RuleId| {
            let rank = |decision| match decision {
                Decision::Broken => 3,
                Decision::Deviation => 2,
                Decision::Held => 1,
                Decision::Undecided => 0,
            };
            let of_rule = results.iter().flat_map(|r| &r.findings).filter(move |finding| finding.rule == rule);
            of_rule.map(|finding| finding.decision).max_by_key(|decision| rank(*decision))
        };
        let rules: std::collections::BTreeSet<_> = results
            .iter()
            .flat_map(|r| r.rules.iter().copied().chain(r.findings.iter().map(|finding| finding.rule)))
            .collect();
        let scores = [Score::Invariants, Score::Draft, Score::Contract]
            .into_iter()
            .map(|score| {
                let decisions: Vec<_> =
                    rules.iter().filter(|rule| rule.rule().score == score).map(|rule| worst(*rule)).collect();
                let of = |wanted| decisions.iter().filter(|decision| **decision == wanted).count();
                ScoreLine {
                    score,
                    held: of(Some(Decision::Held)),
                    broken: of(Some(Decision::Broken)),
                    deviations: of(Some(Decision::Deviation)),
                    undecided: of(Some(Decision::Undecided)) + of(None),
                }
            })
            .collect();
        Self {
            passed: count(Verdict::Passed),
            failed: count(Verdict::Failed),
            inconclusive: count(Verdict::Inconclusive),
            skipped: count(Verdict::Skipped),
            scores,
            interrupted,
            millis,
        }
    }
}
