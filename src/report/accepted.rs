//! Failures that do not fail the gate: those of a baseline, and flaky ones where that is allowed.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::file::{FileError, ReportFile};
use crate::judge::{CaseResult, Gate, Verdict};

/// The version of the format of baselines.
const VERSION: u32 = 1;

/// A larger file is no baseline of ours.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// Which failed cases do not fail the gate.
#[derive(Debug, Clone, Default)]
pub struct Accepted {
    /// What makes a case fail.
    pub gate: Gate,
    /// Whether a case that failed in some rounds only is accepted.
    pub allow_flaky: bool,
    /// The known findings.
    pub baseline: Option<Baseline>,
}

/// The findings that were known at some time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    idemproof_baseline: u32,
    findings: BTreeSet<Known>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    case: String,
    rule: String,
}

/// Why a baseline cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// There is none.
    #[error("there is no baseline `{}`; record today's findings with --record-baseline, look at the file, and commit it", .0.display())]
    Missing(PathBuf),
    /// It cannot be read.
    #[error("cannot read the baseline `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It has another form.
    #[error("`{}` is no baseline: {said}; record one with --record-baseline", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        said: String,
    },
}

impl Accepted {
    /// Why a failed case does not fail the gate, if it does not; one line.
    pub fn why(&self, case: &CaseResult) -> Option<String> {
        if case.verdict != Verdict::Failed {
            return None;
        }
        if self.allow_flaky && case.failed_rounds < case.rounds {
            return Some(format!("flaky: failed in {} of {} rounds", case.failed_rounds, case.rounds));
        }
        let baseline = self.baseline.as_ref()?;
        let mut failing = case.findings.iter().filter(|finding| finding.fails(self.gate)).peekable();
        failing.peek()?;
        failing.all(|finding| baseline.knows(case, finding.rule.as_str())).then(|| "known: in the baseline".to_owned())
    }

    /// Whether a case fails the gate.
    pub fn fails(&self, case: &CaseResult) -> bool {
        case.verdict == Verdict::Failed && self.why(case).is_none()
    }
}

impl Baseline {
    /// The findings that make these cases fail.
    pub fn of(cases: &[CaseResult], gate: Gate) -> Self {
        let findings = cases
            .iter()
            .flat_map(|case| case.findings.iter().map(move |finding| (case, finding)))
            .filter(|(_, finding)| finding.fails(gate))
            .map(|(case, finding)| Known { case: case.id.to_string(), rule: finding.rule.to_string() })
            .collect();
        Self { idemproof_baseline: VERSION, findings }
    }

    /// How many findings it has.
    pub fn len(&self) -> usize {
        self.findings.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// How many of its findings these cases no longer show although they were decided: they can be taken out.
    pub fn gone(&self, cases: &[CaseResult], gate: Gate) -> usize {
        let found = Self::of(cases, gate).findings;
        let decided: BTreeSet<String> = cases
            .iter()
            .filter(|case| matches!(case.verdict, Verdict::Passed | Verdict::Failed))
            .map(|case| case.id.to_string())
            .collect();
        self.findings.iter().filter(|known| decided.contains(&known.case) && !found.contains(known)).count()
    }

    fn knows(&self, case: &CaseResult, rule: &str) -> bool {
        self.findings.contains(&Known { case: case.id.to_string(), rule: rule.to_owned() })
    }

    /// Reads a baseline.
    ///
    /// # Errors
    /// When there is none, it cannot be read, or it is something else.
    pub fn read(path: &Path) -> Result<Self, BaselineError> {
        let read = |source| BaselineError::Read { path: path.to_owned(), source };
        let size = match fs::metadata(path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(BaselineError::Missing(path.to_owned()));
            }
            Err(error) => return Err(read(error)),
        };
        let form = |said: String| BaselineError::Form { path: path.to_owned(), said };
        if size > MOST_BYTES {
            return Err(form(format!("it has {size} bytes")));
        }
        let text = fs::read_to_string(path).map_err(read)?;
        let baseline: Self = serde_json::from_str(&text).map_err(|error| form(error.to_string()))?;
        if baseline.idemproof_baseline != VERSION {
            return Err(form(format!("it has version {}, this is version {VERSION}", baseline.idemproof_baseline)));
        }
        Ok(baseline)
    }

    /// Writes it, one finding per line, so that a difference can be reviewed.
    ///
    /// # Errors
    /// When the file cannot be written; it is then as it was.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        let lines: Vec<_> = self
            .findings
            .iter()
            .filter_map(|known| serde_json::to_string(known).ok())
            .map(|line| format!("    {line}"))
            .collect();
        let list = if lines.is_empty() { "[]".to_owned() } else { format!("[\n{}\n  ]", lines.join(",\n")) };
        let text = format!("{{\n  \"idemproof_baseline\": {VERSION},\n  \"findings\": {list}\n}}\n");
        ReportFile::beside(path).write(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::{judge::Decision, report::fixture, spec::id};

    #[test]
    fn only_new_findings_fail() {
        let cases = [fixture::race(8), fixture::passed(), fixture::lost_response()];
        let gate = Gate::default();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("baseline.json");
        assert!(matches!(Baseline::read(&path), Err(BaselineError::Missing(_))));
        let baseline = Baseline::of(&cases, gate);
        assert_eq!(baseline.len(), 3, "{baseline:?}");
        baseline.write(&path).unwrap();
        assert_eq!(Baseline::read(&path).unwrap(), baseline);
        let accepted = Accepted { gate, baseline: Some(baseline.clone()), ..Accepted::default() };
        assert!(cases.iter().all(|case| !accepted.fails(case)));
        // Another rule broken in a known case is news, and so is a known rule in another case.
        let mut worse = cases[2].clone();
        worse.findings.push(fixture::finding(id::KEY_NEVER_WEDGED, Decision::Broken, "", &[]));
        assert!(accepted.fails(&worse));
        assert!(accepted.fails(&fixture::race(2)));
        assert_eq!(baseline.gone(&cases[..2], gate), 0, "what was not performed is not gone");
        let mut better = cases[2].clone();
        (better.verdict, better.findings) = (Verdict::Passed, vec![]);
        assert_eq!(baseline.gone(&[better], gate), 1);
    }

    #[test]
    fn flaky_failures_fail_unless_allowed() {
        let mut case = fixture::race(8);
        (case.rounds, case.failed_rounds) = (5, 1);
        let mut accepted = Accepted::default();
        assert!(accepted.fails(&case));
        accepted.allow_flaky = true;
        assert_eq!(accepted.why(&case).unwrap(), "flaky: failed in 1 of 5 rounds");
        case.failed_rounds = 5;
        assert!(accepted.fails(&case));
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b.json");
        for text in [
            "",
            "{}",
            "[]",
            "{\"idemproof_baseline\": 2, \"findings\": []}",
            "{\"idemproof_baseline\":1,\"findings\":[{}]}",
        ] {
            fs::write(&path, text).unwrap();
            let error = Baseline::read(&path).unwrap_err().to_string();
            assert!(error.contains("is no baseline"), "{text}: {error}");
        }
    }
}
