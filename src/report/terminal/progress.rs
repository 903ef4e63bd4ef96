//! The reporter that a person watches: progress while the run goes on, blocks for what is wrong, a summary.

use std::{
    collections::BTreeSet,
    io::{self, Write},
    path::PathBuf,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{
    case::{Origin, case_line, render_case},
    style::{Line, Paint, Style, labelled, render},
    summary::closing,
    text::{count, fit},
};
use crate::{
    judge::{CaseResult, Verdict},
    report::{RunInfo, Summary},
    schedule::CaseId,
    text::Redactor,
};

/// How much is said about what is well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// Nothing: only failed and inconclusive cases and the summary.
    Quiet,
    /// One line per case, or a progress bar in their place.
    Normal,
}

/// Writes what happens to a terminal or a log.
pub struct Terminal {
    out: Box<dyn Write + Send>,
    style: Style,
    verbosity: Verbosity,
    redactor: Redactor,
    bar: Option<ProgressBar>,
    running: BTreeSet<CaseId>,
    failed: usize,
    inconclusive: usize,
    /// Whether the last thing written was set off by an empty line.
    set_off: bool,
}

impl Terminal {
    /// A reporter that writes to `out`. With a draw target there is a progress bar and no line for cases that
    /// are well.
    pub fn new(
        out: Box<dyn Write + Send>,
        style: Style,
        verbosity: Verbosity,
        redactor: Redactor,
        bar: Option<ProgressDrawTarget>,
    ) -> Self {
        let bar = bar.map(|target| {
            let bar = ProgressBar::with_draw_target(None, target);
            let (template, ticks) =
                if style.unicode { ("{bar:20.cyan}", "━╸─") } else { ("{bar:20.cyan}", "=>-") };
            if let Ok(look) = ProgressStyle::with_template(&format!("{template} {{pos}}/{{len}}  {{msg}}")) {
                bar.set_style(look.progress_chars(ticks));
            }
            bar
        });
        Self {
            out,
            style,
            verbosity,
            redactor,
            bar,
            running: BTreeSet::new(),
            failed: 0,
            inconclusive: 0,
            set_off: true,
        }
    }

    /// The run begins. Secrets in `run` must have been masked, here and below.
    ///
    /// # Errors
    /// When nothing can be written to `out`; so everywhere below.
    pub fn started(&mut self, run: &RunInfo) -> io::Result<()> {
        if let Some(bar) = &self.bar {
            bar.set_length(run.cases as u64);
        }
        let style = self.style;
        let mut first = Line::of(Paint::Bold, style.fit(&style.clean(&format!("idemproof {}", run.version)), 30));
        let text = style.clean(&format!("  {} on {}", count(run.cases, "case"), run.target));
        first.push(Paint::Plain, style.fit(&text, style.columns().saturating_sub(first.width())));
        let mut lines = vec![first];
        let mut say = |label: &str, text: &str| {
            lines.extend(labelled(label, &style.clean(text), Paint::Plain, 3, &style));
        };
        say("at", &run.nodes.join("  "));
        say("profile", &run.profile);
        say("proxy", &run.proxy);
        say("run", &run.run);
        if !run.reference_faults.is_empty() {
            say("faults on", &run.reference_faults.join(", "));
        }
        lines.push(Line::default());
        self.write(&render(&lines, &style))
    }

    /// A case begins.
    pub fn case_started(&mut self, id: &CaseId) {
        self.running.insert(id.clone());
        self.show_progress();
    }

    /// A case is over.
    ///
    /// # Errors
    /// When nothing can be written.
    pub fn case_finished(&mut self, case: &CaseResult, origin: &Origin) -> io::Result<()> {
        self.running.remove(&case.id);
        let text = match case.verdict {
            Verdict::Failed | Verdict::Inconclusive => {
                let counter = if case.verdict == Verdict::Failed { &mut self.failed } else { &mut self.inconclusive };
                *counter += 1;
                let gap = if std::mem::replace(&mut self.set_off, true) { "" } else { "\n" };
                format!("{gap}{}\n", render_case(case, &self.style, origin))
            }
            Verdict::Passed | Verdict::Skipped if self.verbosity == Verbosity::Quiet || self.bar.is_some() => {
                String::new()
            }
            Verdict::Passed | Verdict::Skipped => {
                self.set_off = false;
                render(&[case_line(case, &self.style)], &self.style)
            }
        };
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
        self.show_progress();
        self.write(&text)
    }

    /// The run was asked to stop.
    ///
    /// # Errors
    /// When nothing can be written.
    pub fn interrupted(&mut self) -> io::Result<()> {
        let text = "Interrupted: no more cases are begun, and reports are written for those that are over.";
        let lines: Vec<_> = super::text::wrap(text, self.style.columns())
            .into_iter()
            .map(|line| Line::of(Paint::YellowBold, line))
            .collect();
        self.write(&render(&lines, &self.style))
    }

    /// The run is over.
    ///
    /// # Errors
    /// When nothing can be written.
    pub fn finished(&mut self, results: &[CaseResult], summary: &Summary, files: &[PathBuf]) -> io::Result<()> {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        let gap = if self.set_off { "" } else { "\n" };
        let text = render(&closing(results, summary, files, &self.style), &self.style);
        self.write(&format!("{gap}{text}"))
    }

    fn show_progress(&self) {
        let Some(bar) = &self.bar else { return };
        let mut message = String::new();
        for (number, word) in [(self.failed, "failed"), (self.inconclusive, "inconclusive")] {
            if number > 0 {
                message += &format!("{number} {word}  ");
            }
        }
        let mut names = self.running.iter().map(|id| self.style.clean(&id.to_string()));
        message += &names.next().unwrap_or_default();
        if self.running.len() > 1 {
            message += &format!(" + {} more", self.running.len() - 1);
        }
        let room = self.style.columns().saturating_sub(32);
        bar.set_message(self.redactor.redact(&fit(&message, room, self.style.unicode)));
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let text = self.redactor.redact(text);
        let out = &mut self.out;
        let mut write = || out.write_all(text.as_bytes()).and_then(|()| out.flush());
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

impl std::fmt::Debug for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terminal")
            .field("style", &self.style)
            .field("verbosity", &self.verbosity)
            .finish_non_exhaustive()
    }
}
