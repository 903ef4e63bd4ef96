//! One case: what the list says of it, and what is shown when it is opened.

use std::collections::BTreeMap;

use minijinja::{Environment, context, value::Serde};
use serde::Serialize;

use super::{
    axis::Order,
    exchange::exchanges,
    picture::{Lanes, Picture, draw, release},
    source::excerpt,
};
use crate::{
    history::{End, History},
    judge::{CaseResult, Decision, Verdict},
    report::terminal::{Origin, Style, commands, deciding, main_finding, millis},
};

/// What the list says of a case.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    pub(super) verdict: &'static str,
    #[serde(skip)]
    pub(super) order: (Verdict, String, u32),
    pub(super) name: String,
    pub(super) title: String,
    /// The rule that is broken, or why it is skipped or inconclusive.
    pub(super) why: String,
    pub(super) took: String,
    /// How its attempts ended: `1 × 201, 7 × 409`.
    pub(super) signature: String,
}

/// A case of the page.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) row: Row,
    /// What is shown when it is opened, as HTML.
    pub(super) body: String,
}

/// The word of a verdict.
pub(super) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "passed",
        Verdict::Skipped => "skipped",
        Verdict::Inconclusive => "inconclusive",
        Verdict::Failed => "failed",
    }
}

/// What the answers of a history came to, for telling cases apart.
pub(super) fn signature(history: &History) -> String {
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for attempt in &history.attempts {
        let end = match (&attempt.end, &attempt.response) {
            (End::Answered, Some(response)) => response.status.to_string(),
            (End::NotSent(_), _) => "not sent".to_owned(),
            (End::Lost(_), _) => "lost".to_owned(),
            (End::TimedOut, _) => "timed out".to_owned(),
            _ => "unreadable".to_owned(),
        };
        *ends.entry(end).or_default() += 1;
    }
    ends.into_iter().map(|(end, count)| format!("{count} × {end}")).collect::<Vec<_>>().join(", ")
}

impl Entry {
    /// Renders a case. Secrets must have been masked in it and in the suite files.
    pub(super) fn new(
        case: &CaseResult,
        origin: &Origin,
        sources: &BTreeMap<String, String>,
        templates: &Environment<'_>,
    ) -> Result<Self, minijinja::Error> {
        let main = main_finding(case);
        let why = match (&case.reason, main) {
            (Some(reason), _) => reason.why.clone(),
            (None, Some(finding)) => finding.rule.to_string(),
            (None, None) => String::new(),
        };
        let row = Row {
            verdict: word(case.verdict),
            order: (case.verdict, case.file.clone(), case.place.line),
            name: case.id.to_string(),
            title: case.title.clone(),
            why,
            took: if case.rounds == 0 { String::new() } else { millis(case.millis.saturating_mul(1_000)) },
            signature: case.history.as_ref().map(signature).unwrap_or_default(),
        };
        let findings: Vec<_> = case
            .findings
            .iter()
            .map(|finding| {
                let rule = finding.rule.rule();
                context! {
                    decision => decision(finding.decision), rule => rule.id, score => rule.score.to_string(),
                    statement => rule.statement, source => rule.source, message => finding.message.as_str(),
                }
            })
            .collect();
        let names = main.map_or(&[][..], |finding| &finding.attempts);
        let style = Style { color: false, unicode: true, width: 110 };
        let commands = commands(case, main, &style, origin);
        let shown = if case.verdict == Verdict::Passed { Vec::new() } else { deciding(case, main) };
        let shown = match &case.history {
            Some(history) if shown.is_empty() => history.attempts.iter().collect(),
            _ => shown,
        };
        let (exchanges, more) = exchanges(&shown);
        let place = main.and_then(|finding| finding.place).unwrap_or(case.place);
        let body = templates.get_template("case.html")?.render(context! {
            verdict => word(case.verdict),
            title => case.title.as_str(),
            main => main.map(|finding| context! {
                rule => finding.rule.as_str(), score => finding.rule.rule().score.to_string(),
                statement => finding.rule.rule().statement, source => finding.rule.rule().source,
                message => finding.message.as_str(), expected => finding.expected.clone(), observed => finding.observed.clone(),
                broken => finding.decision == Decision::Broken,
            }),
            reason => Serde(&case.reason),
            stopped => case.history.as_ref().and_then(|history| history.stopped.clone()),
            place => format!("{}:{}", case.file, place.line),
            rounds => case.rounds,
            failed => case.failed_rounds,
            rate => rate(case.failed_rounds, case.rounds),
            round => case.history.as_ref().map(|history| history.round.saturating_add(1)),
            pictures => Serde(case.history.as_ref().map(|history| pictures(history, names)).unwrap_or_default()),
            release => case.history.as_ref().and_then(release).map(|picture| picture.svg),
            instants => Serde(case.history.as_ref().map(instants).unwrap_or_default()),
            exchanges => Serde(&exchanges), more,
            findings,
            yaml => sources.get(&case.file).and_then(|text| excerpt(text, case.place.line)),
            vary => Serde(&case.id.vary),
            again => (case.rounds > 0).then(|| commands.again.join("\n")),
            call => commands.call.map(|(note, lines)| context! { note, lines => lines.join("\n") }),
        })?;
        Ok(Self { row, body })
    }
}

/// How often a case failed, with the range in which its true rate lies with 95 % confidence (Wilson's interval);
/// empty for a single round.
fn rate(failed: u32, rounds: u32) -> String {
    if rounds < 2 || failed > rounds {
        return String::new();
    }
    const Z: f64 = 1.96;
    let (n, p) = (f64::from(rounds), f64::from(failed) / f64::from(rounds));
    let middle = (p + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt() / (1.0 + Z * Z / n);
    let percent = |rate: f64| format!("{:.0}", rate.clamp(0.0, 1.0) * 100.0);
    format!(
        "failed in {failed} of {rounds} rounds, so in {} to {} % of all with 95 % confidence",
        percent(middle - half),
        percent(middle + half)
    )
}

fn decision(decision: Decision) -> &'static str {
    match decision {
        Decision::Held => "held",
        Decision::Broken => "broken",
        Decision::Deviation => "deviation",
        Decision::Undecided => "undecided",
    }
}

/// A picture and what it is called.
#[derive(Debug, Serialize)]
struct Shown {
    label: &'static str,
    svg: String,
    left_out: usize,
}

/// The core first, if it is smaller than the whole; then everything in true time, and in the order of events.
fn pictures(history: &History, names: &[String]) -> Vec<Shown> {
    let shown = |label, picture: Picture| Shown { label, svg: picture.svg, left_out: picture.left_out };
    let all = draw(history, names, Lanes::All, Order::Time);
    let core = draw(history, names, Lanes::Core, Order::Time)
        .filter(|core| all.as_ref().is_some_and(|all| core.lanes < all.lanes) && !names.is_empty());
    let mut pictures = Vec::new();
    pictures.extend(core.map(|picture| shown("The core", picture)));
    pictures.extend(all.map(|picture| shown("All, in true time", picture)));
    let ordered = draw(history, names, Lanes::All, Order::Events);
    pictures.extend(ordered.map(|picture| shown("All, by event order", picture)));
    pictures
}

/// One line of the table of instants; milliseconds since the first.
#[derive(Debug, Serialize)]
struct Instants {
    name: String,
    how: String,
    cells: Vec<String>,
    out: u64,
    back: u64,
}

/// At most so many lines.
const MOST_INSTANTS: usize = 100;

fn instants(history: &History) -> Vec<Instants> {
    let first = history.attempts.iter().map(|attempt| attempt.timing.opened).min().unwrap_or_default();
    let cell = |at: Option<u64>| {
        at.map_or_else(
            || "–".to_owned(),
            |at| {
                let since = at.saturating_sub(first);
                format!("{}.{:03}", since / 1_000, since % 1_000)
            },
        )
    };
    history
        .attempts
        .iter()
        .take(MOST_INSTANTS)
        .map(|attempt| {
            let timing = attempt.timing;
            let all = [Some(timing.opened), timing.first_out, timing.last_out, timing.first_in, Some(timing.ended)];
            let status = attempt.response.as_ref().map(|response| response.status.to_string());
            let how = match &attempt.end {
                End::Answered => status.unwrap_or_default(),
                End::NotSent(_) => "not sent".to_owned(),
                End::Lost(_) => "lost".to_owned(),
                End::TimedOut => "timed out".to_owned(),
                End::Unreadable(_) => "unreadable".to_owned(),
            };
            Instants {
                name: attempt.name.clone(),
                how,
                cells: all.into_iter().map(cell).collect(),
                out: attempt.bytes_out,
                back: attempt.bytes_in,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::rate;

    #[test]
    fn a_rate_has_an_interval() {
        assert_eq!(rate(1, 1), "");
        assert_eq!(rate(3, 10), "failed in 3 of 10 rounds, so in 11 to 60 % of all with 95 % confidence");
        assert_eq!(rate(10, 10), "failed in 10 of 10 rounds, so in 72 to 100 % of all with 95 % confidence");
    }
}
