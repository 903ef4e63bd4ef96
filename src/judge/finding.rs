//! What judging comes to.

use serde::{Deserialize, Serialize};

use super::Overlap;
use crate::{
    history::History,
    schedule::CaseId,
    spec::{Keyword, RuleId, Score},
    suite::Place,
};

/// One rule decided for one case, with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule.
    pub rule: RuleId,
    /// What was decided.
    pub decision: Decision,
    /// One line: what was seen, in plain words.
    pub message: String,
    /// What would have been right, as alternatives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<String>,
    /// What was observed, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed: Vec<String>,
    /// The names of the attempts that show it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<String>,
    /// Where the broken expectation stands in the suite file; `None` for what holds for every history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// What was decided about a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// It holds.
    Held,
    /// It is broken.
    Broken,
    /// It is not followed, and the API documents exactly that.
    Deviation,
    /// It could not be decided.
    Undecided,
}

/// Which broken rules make a case fail. Invariants and contract always do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Gate {
    /// Whether a broken SHOULD of the draft does.
    pub strict_draft: bool,
}

/// What a case comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every rule that it tests holds.
    Passed,
    /// It does not apply to this target.
    Skipped,
    /// It was performed and says nothing.
    Inconclusive,
    /// A rule is broken.
    Failed,
}

/// Why a case is skipped or inconclusive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// What stood in the way.
    pub why: String,
    /// What would make it decidable.
    pub remedy: String,
}

/// All that is known of a case once it is over. The one list that every report and the exit code are made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// Its name.
    pub id: CaseId,
    /// Its title.
    pub title: String,
    /// The suite file.
    pub file: String,
    /// Where the case starts in it.
    pub place: Place,
    /// The rules it tests.
    pub rules: Vec<RuleId>,
    /// What it comes to.
    pub verdict: Verdict,
    /// Why it is skipped or inconclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// What was found.
    pub findings: Vec<Finding>,
    /// How long it took, in milliseconds.
    pub millis: u64,
    /// How many rounds were performed.
    pub rounds: u32,
    /// What was measured of attempts that were to be in flight together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overlaps: Vec<Overlap>,
    /// In how many of them the case failed. Less than all of them: it is flaky.
    #[serde(default)]
    pub failed_rounds: u32,
    /// What happened in the round that decided it. `None` if nothing was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
}

impl Finding {
    /// Whether it makes its case fail.
    pub fn fails(&self, gate: Gate) -> bool {
        let rule = self.rule.rule();
        self.decision == Decision::Broken
            && match rule.score {
                Score::Invariants | Score::Contract => true,
                Score::Draft => match rule.keyword {
                    Keyword::Must => true,
                    Keyword::Should => gate.strict_draft,
                    Keyword::May | Keyword::None => false,
                },
            }
    }
}
