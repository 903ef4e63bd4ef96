//! `report.html`: one file that shows a run to people, with nothing loaded from elsewhere.
//!
//! The page is readable without its script: the summary, the rules, every case as a line, and the first failed
//! cases in full. The script opens the others, filters the list and answers the keyboard. What a case shows is
//! rendered once, when it ends, and lies in the page as inert text until it is opened, so that thousands of cases
//! cost the reader nothing.

mod axis;
mod band;
mod case;
mod exchange;
mod picture;
mod source;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use minijinja::{AutoEscape, Environment, Value, context, value::Serde};

use self::case::{Entry, Row};
use super::{Document, RunInfo, Summary, terminal::Origin, time::utc};
use crate::{
    judge::{CaseResult, Verdict},
    report::terminal::millis,
};

/// Cases that are written out in the page itself, and so can be read without its script.
const OPEN_WITHOUT_SCRIPT: usize = 40;

/// The page, as it grows.
#[derive(Debug)]
pub(super) struct Html {
    templates: Environment<'static>,
    /// The suite files by name, secrets masked.
    sources: BTreeMap<String, String>,
    entries: Vec<Entry>,
}

impl Html {
    /// A page without cases.
    pub(super) fn new(sources: BTreeMap<String, String>) -> Result<Self, minijinja::Error> {
        let mut templates = Environment::new();
        templates.set_auto_escape_callback(|_| AutoEscape::Html);
        templates.add_template("case.html", include_str!("case.html"))?;
        templates.add_template("page.html", include_str!("page.html"))?;
        Ok(Self { templates, sources, entries: Vec::new() })
    }

    /// Takes in a case that is over. Secrets must have been masked in it.
    pub(super) fn add(&mut self, case: &CaseResult, origin: &Origin) -> Result<(), minijinja::Error> {
        let entry = Entry::new(case, origin, &self.sources, &self.templates)?;
        self.entries.push(entry);
        Ok(())
    }

    /// The whole page.
    pub(super) fn page(
        &self,
        run: &RunInfo,
        complete: bool,
        summary: &Summary,
        cases: &[CaseResult],
    ) -> Result<String, minijinja::Error> {
        let rules = Document::new(run, complete, summary.clone(), cases).rules;
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        order.sort_by(|a, b| {
            let key = |index: &usize| self.entries.get(*index).map(|entry| &entry.row.order);
            let (a, b) = (key(a), key(b));
            b.map(|b| b.0).cmp(&a.map(|a| a.0)).then_with(|| a.map(|a| (&a.1, a.2)).cmp(&b.map(|b| (&b.1, b.2))))
        });
        let entries: Vec<&Entry> = order.iter().filter_map(|index| self.entries.get(*index)).collect();
        let places: BTreeMap<&str, usize> =
            entries.iter().enumerate().map(|(place, entry)| (entry.row.name.as_str(), place)).collect();
        let scores: Vec<_> = summary
            .scores
            .iter()
            .map(|line| {
                let mut of: Vec<_> = rules.iter().filter(|rule| rule.score == line.score).collect();
                // The broken ones first, then by the section of their source.
                of.sort_by_key(|rule| (rule.broken == 0, &rule.source, rule.id));
                let rules: Vec<_> = of
                    .iter()
                    .map(|rule| {
                        let broken_in: Vec<_> = rule
                            .broken_in
                            .iter()
                            .take(24)
                            .map(|name| context! { name, place => places.get(name.as_str()) })
                            .collect();
                        context! {
                            id => rule.id.as_str(), statement => rule.statement.as_str(), source => rule.source.as_str(),
                            held => rule.held, broken => rule.broken, deviations => rule.deviations,
                            undecided => rule.undecided, broken_in, more => rule.broken_in.len().saturating_sub(24),
                        }
                    })
                    .collect();
                context! { name => line.score.to_string(), line => Serde(line), rules }
            })
            .collect();
        let rows: Vec<_> = entries
            .iter()
            .enumerate()
            .map(|(place, entry)| context! { place, row => Serde(&entry.row), body => entry.body.as_str(), open => place < OPEN_WITHOUT_SCRIPT })
            .collect();
        let began = utc(run.began_unix);
        self.templates.get_template("page.html")?.render(context! {
            run => Serde(run), complete, summary => Serde(summary), scores, rows, began,
            took => millis(summary.millis.saturating_mul(1_000)),
            state => if summary.failed > 0 { "failed" } else if summary.passed > 0 { "passed" } else { "inconclusive" },
            reasons => reasons(cases, &places),
            signatures => signatures(entries.iter().map(|entry| &entry.row)),
            rounds => cases.iter().filter(|case| case.verdict == Verdict::Passed).map(|case| case.rounds).min(),
            style => include_str!("page.css"), script => include_str!("page.js"),
        })
    }
}

/// Why cases are inconclusive or skipped: verdict, reason, remedy and the cases, the most important first.
fn reasons(cases: &[CaseResult], places: &BTreeMap<&str, usize>) -> Vec<Value> {
    let mut found: BTreeMap<(std::cmp::Reverse<Verdict>, &str, &str), Vec<String>> = BTreeMap::new();
    for case in cases {
        let Some(reason) = &case.reason else { continue };
        let key = (std::cmp::Reverse(case.verdict), reason.why.as_str(), reason.remedy.as_str());
        found.entry(key).or_default().push(case.id.to_string());
    }
    found
        .into_iter()
        .map(|((verdict, why, remedy), names)| {
            let shown: Vec<_> =
                names.iter().take(24).map(|name| context! { name, place => places.get(name.as_str()) }).collect();
            context! { verdict => case::word(verdict.0), why, remedy, count => names.len(), names => shown }
        })
        .collect()
}

/// How the attempts of passed cases ended, by how often: what a run without failures has really seen.
fn signatures<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows.filter(|row| row.verdict == "passed") {
        *counts.entry(&row.signature).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().map(|(signature, count)| (signature.to_owned(), count)).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.truncate(20);
    counts
}
