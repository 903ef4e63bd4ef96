//! One case as a block: what broke, where it says so, who did what when, what came back, how to see it again.

use std::collections::BTreeMap;

use super::{
    answers::answers,
    curl::{curl, quote, shell_lines},
    lanes::timeline,
    style::{Line, Paint, Style, labelled, render},
    text::{millis, pad, width},
};
use crate::{
    history::Attempt,
    judge::{CaseResult, Decision, Finding, Verdict},
    report::RunInfo,
    spec::{Rule, Score},
};

/// What it takes to send the requests of a run again.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The words to run idemproof with to see the same target: `--target FILE`.
    pub again: String,
    /// The base URLs by node, credentials masked.
    pub nodes: Vec<String>,
    /// The name of the key's header field by operation; `Idempotency-Key` for operations that are not in it.
    pub key_fields: BTreeMap<String, String>,
}

impl Origin {
    /// The origin that a run tells of itself.
    pub fn of(run: &RunInfo, key_fields: BTreeMap<String, String>) -> Self {
        Self { again: run.again.clone(), nodes: run.nodes.clone(), key_fields }
    }
}

/// A failed or inconclusive case as a block, any other one as a line; ends in a line break.
///
/// No line is wider than the style's width, except those to be copied into a shell, which must stay whole.
/// Secrets must have been masked before. Control characters from servers are shown escaped.
pub fn render_case(case: &CaseResult, style: &Style, origin: &Origin) -> String {
    let mut lines = vec![];
    let main = main_finding(case);
    match case.verdict {
        Verdict::Failed => {
            lines.extend(head(case, main, style));
            lines.extend(about(case, main, style));
            lines.extend(evidence(case, main, style));
            lines.extend(others(case, main, style));
            lines.extend(see_again(case, main, style, origin));
        }
        Verdict::Inconclusive => {
            lines.extend(head(case, None, style));
            lines.extend(about(case, None, style));
            lines.extend(evidence(case, main, style));
            lines.extend(others(case, None, style));
            lines.extend(see_again(case, main, style, origin));
        }
        Verdict::Passed | Verdict::Skipped => lines.push(case_line(case, style)),
    }
    render(&lines, style)
}

/// A case as one line: verdict, name, time, and why it is skipped or inconclusive.
pub(crate) fn case_line(case: &CaseResult, style: &Style) -> Line {
    let (word, paint) = verdict_word(case.verdict);
    let mut line = Line::of(paint, pad(word, 6));
    let why = match (&case.reason, main_finding(case)) {
        (Some(reason), _) => style.clean(&reason.why),
        (None, Some(finding)) if case.verdict == Verdict::Failed => finding.rule.to_string(),
        _ => overlaps(case),
    };
    let name = style.clean(&case.id.to_string());
    let took = if case.verdict == Verdict::Skipped { String::new() } else { time(case) };
    line.push(Paint::Plain, style.fit(&name, style.columns() - line.width()));
    for (paint, text) in [(Paint::Dim, took), (Paint::Dim, why)] {
        let room = style.columns().saturating_sub(line.width() + 2);
        if !text.is_empty() && room > 3 {
            line.push(paint, format!("  {}", style.fit(&text, room)));
        }
    }
    line
}

/// What was measured of attempts that were to be in flight together.
fn overlaps(case: &CaseResult) -> String {
    let each = case.overlaps.iter().map(|overlap| format!("{} of {}", overlap.together, overlap.of));
    let all = each.collect::<Vec<_>>().join(", ");
    if all.is_empty() { all } else { format!("{all} in flight together") }
}

/// The finding shown in full: the first broken one of the weightiest score; in inconclusive cases the first that
/// could not be decided.
pub(crate) fn main_finding(case: &CaseResult) -> Option<&Finding> {
    let weight = |finding: &&Finding| {
        let decision = match finding.decision {
            Decision::Broken => 0,
            Decision::Undecided => 1,
            Decision::Deviation | Decision::Held => return None,
        };
        let score = match finding.rule.rule().score {
            Score::Invariants => 0,
            Score::Contract => 1,
            Score::Draft => 2,
        };
        Some((decision, score))
    };
    let weighed = case.findings.iter().filter_map(|finding| Some((weight(&finding)?, finding)));
    weighed.min_by_key(|(weight, _)| *weight).map(|(_, finding)| finding)
}

fn verdict_word(verdict: Verdict) -> (&'static str, Paint) {
    match verdict {
        Verdict::Passed => ("PASS", Paint::Green),
        Verdict::Skipped => ("SKIP", Paint::Dim),
        Verdict::Inconclusive => ("INCONCLUSIVE  ", Paint::YellowBold),
        Verdict::Failed => ("FAIL", Paint::RedBold),
    }
}

fn time(case: &CaseResult) -> String {
    millis(case.millis.saturating_mul(1_000))
}

/// Whether the source of a rule fits into the first line.
fn has_short_source(rule: &Rule) -> bool {
    rule.source.len() <= 24
}

/// The first line, complete on its own; what does not fit goes to the next.
fn head(case: &CaseResult, main: Option<&Finding>, style: &Style) -> Vec<Line> {
    let (word, paint) = verdict_word(case.verdict);
    let mut line = Line::of(paint, pad(word, 6));
    line.push(Paint::Bold, style.fit(&style.clean(&case.id.to_string()), style.columns() - line.width()));
    let mut pieces = Vec::new();
    if let Some(finding) = main {
        let rule = finding.rule.rule();
        pieces.push((Paint::RedBold, rule.id.to_owned()));
        let source = if has_short_source(rule) { format!("; {}", rule.source) } else { String::new() };
        pieces.push((Paint::Plain, format!("({}{source})", rule.score)));
    }
    pieces.push((Paint::Dim, time(case)));
    if case.rounds > 1 {
        let round = case.history.as_ref().map(|history| format!("round {} of ", history.round.saturating_add(1)));
        let text = round.map_or_else(|| format!("{} rounds", case.rounds), |round| format!("{round}{}", case.rounds));
        pieces.push((Paint::Dim, text));
    }
    let mut lines = Vec::new();
    for (paint, text) in pieces {
        if line.width() + 2 + width(&text) > style.columns() {
            lines.push(std::mem::replace(&mut line, Line::of(Paint::Plain, "    ")));
        }
        line.push(paint, format!("  {}", style.fit(&text, style.columns() - 6)));
    }
    lines.push(line);
    lines
}

/// The rule's sentence, what was seen, and where the case stands.
fn about(case: &CaseResult, main: Option<&Finding>, style: &Style) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut say = |label: &str, text: &str, paint, most| {
        lines.extend(labelled(label, &style.clean(text), paint, most, style));
    };
    if let Some(finding) = main {
        say("rule", finding.rule.rule().statement, Paint::Plain, 3);
        if !has_short_source(finding.rule.rule()) {
            say("source", finding.rule.rule().source, Paint::Plain, 2);
        }
        say("seen", &finding.message, Paint::Bold, 4);
    }
    if let Some(reason) = &case.reason {
        say("why", &reason.why, Paint::Yellow, 4);
        say("remedy", &reason.remedy, Paint::Plain, 4);
    }
    say("case", &case.title, Paint::Plain, 2);
    let place = main.and_then(|finding| finding.place).unwrap_or(case.place);
    let mut place = format!("{}:{}", case.file, place.line);
    let shown: Vec<_> = deciding(case, main);
    if let Some((key, field)) = shown.first().and_then(|a| Some((a.key.as_deref()?, a.key_field.as_deref()?))) {
        place += &format!(", key {key} = {}", shortened(field, style));
    }
    say("place", &place, Paint::Plain, 2);
    lines
}

/// A key that can be told from others without filling the line.
fn shortened(key: &str, style: &Style) -> String {
    let key = key.trim_matches('"');
    let count = key.chars().count();
    if count <= 16 {
        return key.to_owned();
    }
    let head: String = key.chars().take(8).collect();
    let tail: String = key.chars().skip(count - 4).collect();
    format!("{head}{}{tail}", style.ellipsis())
}

/// The timeline, what was expected and observed, and what came back.
fn evidence(case: &CaseResult, main: Option<&Finding>, style: &Style) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(history) = &case.history {
        let names = main.map_or(&[][..], |finding| &finding.attempts);
        let picture = timeline(history, names, style);
        if !picture.is_empty() {
            lines.push(Line::default());
            lines.extend(picture);
        }
        if let Some(stopped) = &history.stopped {
            lines.extend(labelled("stopped", &style.clean(stopped), Paint::Yellow, 3, style));
        }
    }
    let mut said = Vec::new();
    if let Some(finding) = main {
        for (index, text) in finding.expected.iter().enumerate() {
            let label = if index == 0 { "expected" } else { "      or" };
            said.extend(labelled(label, &style.clean(text), Paint::Plain, 3, style));
        }
        const MOST_OBSERVED: usize = 4;
        for (index, text) in finding.observed.iter().take(MOST_OBSERVED).enumerate() {
            let label = if index == 0 { "observed" } else { "" };
            said.extend(labelled(label, &style.clean(text), Paint::Plain, 3, style));
        }
        if finding.observed.len() > MOST_OBSERVED {
            let more = format!("+ {} more", finding.observed.len() - MOST_OBSERVED);
            said.extend(labelled("", &more, Paint::Dim, 1, style));
        }
    }
    said.extend(answers(&deciding(case, main), style));
    if !said.is_empty() {
        lines.push(Line::default());
        lines.extend(said);
    }
    lines
}

/// The attempts that decide, or all of a short history if none is named.
pub(crate) fn deciding<'a>(case: &'a CaseResult, main: Option<&Finding>) -> Vec<&'a Attempt> {
    let Some(history) = &case.history else { return Vec::new() };
    let names = main.map_or(&[][..], |finding| &finding.attempts);
    let named =
        |attempt: &&Attempt| names.iter().any(|name| *name == attempt.name || Some(name) == attempt.burst.as_ref());
    let found: Vec<_> = history.attempts.iter().filter(named).collect();
    if found.is_empty() { history.attempts.iter().collect() } else { found }
}

/// Every other finding that is not as it should be, one line each.
fn others(case: &CaseResult, main: Option<&Finding>, style: &Style) -> Vec<Line> {
    let mut lines = Vec::new();
    let wanted = [(Decision::Broken, "also"), (Decision::Deviation, "deviates"), (Decision::Undecided, "undecided")];
    for (decision, label) in wanted {
        let of = case.findings.iter().filter(|f| f.decision == decision && !main.is_some_and(|m| std::ptr::eq(m, *f)));
        for (index, finding) in of.enumerate() {
            let Rule { id, score, .. } = finding.rule.rule();
            let what = if decision == Decision::Broken { " broken" } else { "" };
            let text = format!("{id}{what} ({score}): {}", finding.message);
            let paint = if decision == Decision::Broken { Paint::Red } else { Paint::Plain };
            let label = if index == 0 { label } else { "" };
            lines.extend(labelled(label, &style.clean(&text), paint, 3, style));
        }
    }
    if !lines.is_empty() {
        lines.insert(0, Line::default());
    }
    lines
}

/// How to run the case again, and how to send its deciding request alone.
fn see_again(case: &CaseResult, main: Option<&Finding>, style: &Style, origin: &Origin) -> Vec<Line> {
    let commands = commands(case, main, style, origin);
    let mut lines = vec![Line::default()];
    lines.extend(command("again", "", &commands.again, style));
    if let Some((note, call)) = &commands.call {
        lines.extend(command("one call", note, call, style));
    }
    lines
}

/// What to type to see a case again; lines for a POSIX shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commands {
    /// The case.
    pub(crate) again: Vec<String>,
    /// The last deciding request alone, with a note about it.
    pub(crate) call: Option<(String, Vec<String>)>,
}

/// What to type to see a case again, for lines of the style's width.
pub(crate) fn commands(case: &CaseResult, main: Option<&Finding>, style: &Style, origin: &Origin) -> Commands {
    let room = style.columns() - COMMAND_INDENT;
    let mut words = vec!["idemproof run".to_owned()];
    words.extend((!origin.again.is_empty()).then(|| style.clean(&origin.again)));
    words.push(quote(&format!("{}/{}", case.id.suite, case.id.case)));
    let again = shell_lines(&words, room);
    let call = deciding(case, main).into_iter().next_back().and_then(|attempt| {
        let (method, path) = attempt.request.lines().next().unwrap_or_default().split_once(' ')?;
        let base = origin.nodes.get(attempt.node).map_or("", |node| node.trim_end_matches('/'));
        let key_name = origin.key_fields.get(&attempt.operation).map_or("Idempotency-Key", String::as_str);
        let mut fields = Vec::new();
        if !attempt.payload.is_empty() {
            fields.push(("Content-Type", "application/json"));
        }
        if let Some(value) = &attempt.key_field {
            fields.push((key_name, value.as_str()));
        }
        let words = curl(method, &format!("{base}{path}"), &fields, &attempt.payload);
        let note = format!("{}, without the header fields of tenant {}", attempt.name, attempt.tenant);
        Some((note, shell_lines(&words, room)))
    });
    Commands { again, call }
}

/// The indent of lines to be copied. Small, so that most of them fit.
const COMMAND_INDENT: usize = 8;

/// A label, a note, and below them lines to be copied, which are never cut.
fn command(label: &str, note: &str, lines: &[String], style: &Style) -> Vec<Line> {
    let mut out = if note.is_empty() {
        vec![Line::of(Paint::Dim, format!("      {label}"))]
    } else {
        labelled(label, &style.clean(note), Paint::Dim, 1, style)
    };
    out.extend(lines.iter().map(|text| Line::of(Paint::Plain, pad("", COMMAND_INDENT) + text)));
    out
}
