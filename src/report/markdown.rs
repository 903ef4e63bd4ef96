//! `summary.md`: the run in a few lines of Markdown, for a pull request or the step summary of GitHub actions.

use std::collections::BTreeMap;

use super::{
    RunInfo, Summary,
    terminal::{clean, fit, main_finding, millis},
};
use crate::judge::{CaseResult, Verdict};

/// The rows of one table; a step summary may have 1 MiB.
const MOST_ROWS: usize = 50;

/// The columns of one cell.
const MOST_COLUMNS: usize = 160;

/// The summary. Secrets must have been masked in the results.
pub(super) fn summary(run: &RunInfo, complete: bool, summary: &Summary, cases: &[CaseResult]) -> String {
    let verdict = match summary {
        Summary { failed: 1.., .. } => "failed",
        Summary { passed: 0, .. } => "nothing was decided",
        _ => "passed",
    };
    let mut out = format!("## idemproof: {verdict} ({})\n\n", cell(&run.target));
    let Summary { passed, failed, inconclusive, skipped, .. } = summary;
    out += &format!(
        "{passed} passed, {failed} failed, {inconclusive} inconclusive, {skipped} skipped in {}.\n",
        millis(summary.millis.saturating_mul(1_000))
    );
    if !complete {
        out += "The run is under way, or was ended from outside.\n";
    } else if summary.interrupted {
        out += "The run was interrupted before all cases were performed.\n";
    }
    out += "\n| score | held | broken | deviations | undecided |\n|---|---:|---:|---:|---:|\n";
    for line in &summary.scores {
        let numbers = [line.held, line.broken, line.deviations, line.undecided].map(|number| number.to_string());
        out += &format!("| {} | {} |\n", line.score, numbers.join(" | "));
    }
    let of = |verdict| cases.iter().filter(move |case: &&CaseResult| case.verdict == verdict);
    if *failed > 0 {
        out += "\n| failed case | rule | seen |\n|---|---|---|\n";
        for case in of(Verdict::Failed).take(MOST_ROWS) {
            let finding = main_finding(case);
            let rule = finding.map_or("", |finding| finding.rule.as_str());
            let seen = finding.map_or("", |finding| &finding.message);
            out += &format!("| {} | {rule} | {} |\n", cell(&case.id.to_string()), cell(seen));
        }
        out += &more(*failed);
    }
    for (verdict, word) in [(Verdict::Inconclusive, "inconclusive"), (Verdict::Skipped, "skipped")] {
        let mut reasons: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for reason in of(verdict).filter_map(|case| case.reason.as_ref()) {
            *reasons.entry((&reason.why, &reason.remedy)).or_default() += 1;
        }
        if !reasons.is_empty() {
            out += &format!("\n| {word} | because | to decide it |\n|---:|---|---|\n");
            let count = reasons.len();
            for ((why, remedy), cases) in reasons.into_iter().take(MOST_ROWS) {
                out += &format!("| {cases} | {} | {} |\n", cell(why), cell(remedy));
            }
            out += &more(count);
        }
    }
    out
}

fn more(count: usize) -> String {
    if count > MOST_ROWS { format!("\n{} more are in `report.json`.\n", count - MOST_ROWS) } else { String::new() }
}

/// Text that stays inside a cell: no mark-up of Markdown or HTML acts in it.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in fit(&clean(text, true), MOST_COLUMNS, true).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // An at sign would call people, a number sign would link issues.
            '@' | '#' => out.push_str(&format!("&#{};", u32::from(c))),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' | '$' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::report::fixture;

    #[test]
    fn the_summary() {
        let mut cases = vec![fixture::race(8), fixture::inconclusive(), fixture::skipped(), fixture::passed()];
        cases[0].findings[2].message = "a | b <img> @team `x`\n## no".into();
        let text = summary(&fixture::run(), true, &Summary::of(&cases, false, 1_843), &cases);
        insta::assert_snapshot!(text);
        assert!(text.lines().filter(|line| line.starts_with('#')).count() == 1);
    }

    #[test]
    fn long_runs_stay_short() {
        let cases: Vec<_> = (0..500).map(|_| fixture::race(2)).collect();
        let text = summary(&fixture::run(), true, &Summary::of(&cases, false, 1), &cases);
        assert!(text.contains("450 more are in") && text.len() < 64 * 1024);
    }
}
