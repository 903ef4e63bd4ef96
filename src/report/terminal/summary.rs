//! What stands at the end: failures by rule, what else was found, why cases say nothing, the scores, the counts.

use std::{collections::BTreeMap, path::PathBuf};

use super::{
    style::{Line, Paint, Style, labelled},
    text::{count, millis, pad, width, wrap},
};
use crate::{
    judge::{CaseResult, Decision, Verdict},
    report::Summary,
    spec::{RuleId, Score},
};

/// The cases listed under one rule.
const MOST_CASES: usize = 12;

/// The reasons listed for one verdict.
const MOST_REASONS: usize = 12;

/// The closing lines of a run.
pub(super) fn closing(results: &[CaseResult], summary: &Summary, files: &[PathBuf], style: &Style) -> Vec<Line> {
    let mut lines = Vec::new();
    let failed = |case: &CaseResult| case.verdict == Verdict::Failed;
    lines.extend(by_rule("Broken", Paint::RedBold, results, style, |case, decision| {
        failed(case) && decision == Decision::Broken
    }));
    lines.extend(by_rule(
        "Broken, and not counted against these cases",
        Paint::YellowBold,
        results,
        style,
        |case, d| !failed(case) && d == Decision::Broken,
    ));
    lines.extend(by_rule("Deviations that the API documents", Paint::Bold, results, style, |_, decision| {
        decision == Decision::Deviation
    }));
    lines.extend(reasons("Inconclusive", Verdict::Inconclusive, Paint::YellowBold, results, style));
    lines.extend(reasons("Skipped", Verdict::Skipped, Paint::Bold, results, style));
    lines.extend(scores(summary));
    lines.push(Line::default());
    lines.extend(counts(summary, style));
    if !files.is_empty() {
        let names: Vec<_> = files.iter().map(|file| style.clean(&file.display().to_string())).collect();
        lines.extend(labelled("written", &names.join("  "), Paint::Plain, 20, style));
    }
    lines
}

fn by_rule(
    title: &str,
    paint: Paint,
    results: &[CaseResult],
    style: &Style,
    wanted: impl Fn(&CaseResult, Decision) -> bool,
) -> Vec<Line> {
    let mut rules: BTreeMap<(Score, RuleId), Vec<&CaseResult>> = BTreeMap::new();
    for case in results {
        for finding in case.findings.iter().filter(|finding| wanted(case, finding.decision)) {
            let cases = rules.entry((finding.rule.rule().score, finding.rule)).or_default();
            // One case may break a rule in several ways; its findings stand together.
            if cases.last().is_none_or(|last| !std::ptr::eq(*last, case)) {
                cases.push(case);
            }
        }
    }
    if rules.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![Line::of(paint, title)];
    for ((score, rule), cases) in rules {
        let mut line = Line::of(Paint::Plain, "  ");
        line.push(Paint::Bold, rule.as_str());
        line.push(Paint::Dim, format!("  {score}, {}", count(cases.len(), "case")));
        lines.push(line);
        for case in cases.iter().take(MOST_CASES) {
            let name = style.fit(&style.clean(&case.id.to_string()), style.columns() - 6);
            let mut line = Line::of(Paint::Plain, format!("      {name}"));
            let place = style.clean(&format!("  {}:{}", case.file, case.place.line));
            if line.width() + width(&place) <= style.columns() {
                line.push(Paint::Dim, place);
            }
            lines.push(line);
        }
        if cases.len() > MOST_CASES {
            lines.push(Line::of(Paint::Dim, format!("      + {} more", cases.len() - MOST_CASES)));
        }
    }
    lines.push(Line::default());
    lines
}

fn reasons(title: &str, verdict: Verdict, paint: Paint, results: &[CaseResult], style: &Style) -> Vec<Line> {
    let mut groups: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for case in results.iter().filter(|case| case.verdict == verdict) {
        let reason = case.reason.as_ref().map_or(("no reason was given", ""), |r| (r.why.as_str(), r.remedy.as_str()));
        *groups.entry(reason).or_default() += 1;
    }
    if groups.is_empty() {
        return Vec::new();
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, cases)| std::cmp::Reverse(*cases));
    let mut lines = vec![Line::of(paint, title)];
    let more: usize = groups.iter().skip(MOST_REASONS).map(|(_, cases)| cases).sum();
    for ((why, remedy), cases) in groups.into_iter().take(MOST_REASONS) {
        lines.extend(labelled(&count(cases, "case"), &style.clean(why), Paint::Plain, 3, style));
        if !remedy.is_empty() {
            lines.extend(labelled("", &style.clean(remedy), Paint::Cyan, 3, style));
        }
    }
    if more > 0 {
        lines.push(Line::of(Paint::Dim, format!("      + {} for other reasons", count(more, "case"))));
    }
    lines.push(Line::default());
    lines
}

fn scores(summary: &Summary) -> Vec<Line> {
    let head = format!("{:<12}{:>7}{:>8}{:>12}{:>11}", "rules", "held", "broken", "deviations", "undecided");
    let mut lines = vec![Line::of(Paint::Dim, head)];
    for row in &summary.scores {
        let paint = |number: usize, paint| if number > 0 { paint } else { Paint::Dim };
        let mut line = Line::of(Paint::Plain, pad(&row.score.to_string(), 12));
        line.push(paint(row.held, Paint::Green), format!("{:>7}", row.held));
        line.push(paint(row.broken, Paint::RedBold), format!("{:>8}", row.broken));
        line.push(paint(row.deviations, Paint::Yellow), format!("{:>12}", row.deviations));
        line.push(paint(row.undecided, Paint::Yellow), format!("{:>11}", row.undecided));
        lines.push(line);
    }
    lines
}

fn counts(summary: &Summary, style: &Style) -> Vec<Line> {
    let numbers = [
        (summary.passed, "passed"),
        (summary.failed, "failed"),
        (summary.inconclusive, "inconclusive"),
        (summary.skipped, "skipped"),
    ];
    let said: Vec<_> =
        numbers.iter().filter(|(number, _)| *number > 0).map(|(number, word)| format!("{number} {word}")).collect();
    let said = if said.is_empty() { "no case was run".to_owned() } else { said.join(", ") };
    let took = millis(summary.millis.saturating_mul(1_000));
    let until = if summary.interrupted { ", interrupted" } else { "" };
    let paint = match summary {
        Summary { failed: 1.., .. } => Paint::RedBold,
        Summary { inconclusive: 1.., .. } | Summary { interrupted: true, .. } | Summary { passed: 0, .. } => {
            Paint::YellowBold
        }
        _ => Paint::Green,
    };
    let text = format!("{said} in {took}{until}");
    wrap(&text, style.columns()).into_iter().map(|line| Line::of(paint, line)).collect()
}
