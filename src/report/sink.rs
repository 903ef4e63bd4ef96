//! Everything that becomes of the events of a run: the terminal, the files, and the one list of results.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    Accepted, Event, RunInfo, Summary,
    file::{FileError, ReportFile, make_folder},
    github,
    html::Html,
    json::Document,
    junit::Junit,
    markdown,
    mask::{mask_id, masked_case, masked_run},
    terminal::{Origin, Terminal},
};
use crate::{
    history::{Header, History, Writer},
    judge::CaseResult,
    text::Redactor,
};

/// Up to so many cases, the reports are written after every one of them.
const AT_ONCE: usize = 16;

/// Beyond that, they are written no more often than this while the run goes on ...
const EVERY: Duration = Duration::from_millis(250);

/// ... and less often the more cases there are, because every writing writes all of them.
const PER_CASE: Duration = Duration::from_millis(5);

/// Which reports are written, and how.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The JUnit file.
    pub junit: Option<PathBuf>,
    /// The JSON document.
    pub json: Option<PathBuf>,
    /// The page for people.
    pub html: Option<PathBuf>,
    /// The summary in Markdown.
    pub markdown: Option<PathBuf>,
    /// A file to which the summary in Markdown is added at the end: the step summary of GitHub actions.
    pub step_summary: Option<PathBuf>,
    /// The histories, one per line.
    pub history: Option<PathBuf>,
    /// The texts of the suite files by name; the page shows cases as they stand in them.
    pub sources: BTreeMap<String, String>,
    /// Whether the gate counts inconclusive cases: they are errors in the JUnit file then.
    pub inconclusive_fails: bool,
    /// The failures that do not fail the gate.
    pub accepted: Accepted,
    /// The name of the key's header field by operation.
    pub key_fields: BTreeMap<String, String>,
}

/// Why a report is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Results cannot be put into the form of a file.
    #[error("cannot make the report `{}`: {said}; this is a mistake in idemproof, please report it", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        said: String,
    },
    /// The terminal is gone.
    #[error("cannot write to the output: {0}; reports in files are written all the same")]
    Output(#[source] io::Error),
}

/// The receiver of a run's events.
#[derive(Debug)]
pub struct Reports {
    options: Options,
    redactor: Redactor,
    terminal: Option<Terminal>,
    junit: Option<ReportFile>,
    json: Option<ReportFile>,
    html: Option<(ReportFile, Html)>,
    markdown: Option<ReportFile>,
    history: Option<Lines>,
    run: Option<RunInfo>,
    origin: Origin,
    /// As they came: what verdict and exit code are made from.
    results: Vec<CaseResult>,
    /// The same without secrets: what is shown and written.
    shown: Vec<CaseResult>,
    began: Instant,
    written: Option<Instant>,
    interrupted: bool,
}

impl Reports {
    /// Prepares every file, before anything is sent: a folder that cannot be written is found now.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn create(options: Options, redactor: Redactor, terminal: Terminal) -> Result<Self, ReportError> {
        let file = |path: &Option<PathBuf>| path.as_deref().map(ReportFile::create).transpose();
        let junit = file(&options.junit)?;
        let json = file(&options.json)?;
        let html = match file(&options.html)? {
            Some(file) => {
                let sources = options.sources.iter().map(|(name, text)| (name.clone(), redactor.redact(text)));
                let html = Html::new(sources.collect()).map_err(|error| form(file.path(), &error))?;
                Some((file, html))
            }
            None => None,
        };
        let markdown = file(&options.markdown)?;
        let history = options.history.as_deref().map(Lines::create).transpose()?;
        Ok(Self {
            options,
            redactor,
            terminal: Some(terminal),
            junit,
            json,
            html,
            markdown,
            history,
            run: None,
            origin: Origin::default(),
            results: Vec::new(),
            shown: Vec::new(),
            began: Instant::now(),
            written: None,
            interrupted: false,
        })
    }

    /// The results so far, in the order in which the cases ended.
    pub fn results(&self) -> &[CaseResult] {
        &self.results
    }

    /// Takes in one event.
    ///
    /// # Errors
    /// The first thing that could not be written. Everything else is written all the same, and the next event is
    /// taken in as if nothing had happened; an output that is gone is reported once and left alone from then on.
    pub fn handle(&mut self, event: Event) -> Result<(), ReportError> {
        self.handle_at(event, Instant::now())
    }

    pub(super) fn handle_at(&mut self, event: Event, now: Instant) -> Result<(), ReportError> {
        match event {
            Event::Started(run) => {
                let run = masked_run(&self.redactor, &run);
                self.began = now;
                self.origin = Origin::of(&run, self.options.key_fields.clone());
                let said = self.say(|terminal| terminal.started(&run));
                let begun = self.history.as_mut().map_or(Ok(()), |lines| lines.begin(&run));
                self.run = Some(run);
                // Valid files without cases, so that a run killed now leaves no other run's report.
                said.and(begun).and(self.write_files(None, now))
            }
            Event::CaseStarted(mut id) => {
                mask_id(&self.redactor, &mut id);
                if let Some(terminal) = &mut self.terminal {
                    terminal.case_started(&id);
                }
                Ok(())
            }
            Event::CaseFinished(case) => {
                let shown = masked_case(&self.redactor, &case);
                let origin = std::mem::take(&mut self.origin);
                let said = self.say(|terminal| terminal.case_finished(&shown, &origin));
                let rendered = match &mut self.html {
                    Some((file, html)) => html.add(&shown, &origin).map_err(|error| form(file.path(), &error)),
                    None => Ok(()),
                };
                self.origin = origin;
                let appended = self.append(shown.history.as_ref());
                self.results.push(*case);
                self.shown.push(shown);
                let cases = u32::try_from(self.shown.len()).unwrap_or(u32::MAX);
                let pause = EVERY.saturating_add(PER_CASE.saturating_mul(cases));
                let due = self.shown.len() <= AT_ONCE
                    || self.written.is_none_or(|at| now.saturating_duration_since(at) >= pause);
                let written = if due { self.write_files(None, now) } else { Ok(()) };
                said.and(appended).and(rendered).and(written)
            }
            Event::Interrupted => {
                self.interrupted = true;
                let said = self.say(Terminal::interrupted);
                said.and(self.write_files(None, now))
            }
            Event::Finished(summary) => {
                // The files first: whoever reads the summary may open them.
                let written = self.write_files(Some(&summary), now).and(self.add_step_summary(&summary));
                let shown = std::mem::take(&mut self.shown);
                let files = self.files();
                let said = self.say(|terminal| terminal.finished(&shown, &summary, &files));
                self.shown = shown;
                written.and(said)
            }
        }
    }

    /// The lines that make GitHub actions show the failed cases beside the code.
    pub fn annotations(&self) -> String {
        github::annotations(&self.shown, &self.options.accepted, self.options.inconclusive_fails)
    }

    fn add_step_summary(&self, summary: &Summary) -> Result<(), ReportError> {
        let (Some(path), Some(run)) = (&self.options.step_summary, &self.run) else { return Ok(()) };
        let text = markdown::summary(run, true, summary, &self.shown);
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let added = file.and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()));
        added.map_err(|source| FileError::Write { path: path.clone(), source }.into())
    }

    fn files(&self) -> Vec<PathBuf> {
        let html = self.html.as_ref().map(|(file, _)| file);
        let files = [html, self.junit.as_ref(), self.json.as_ref(), self.markdown.as_ref()].into_iter().flatten();
        files.map(|file| file.path().to_owned()).chain(self.history.as_ref().map(|lines| lines.path.clone())).collect()
    }

    fn say(&mut self, say: impl FnOnce(&mut Terminal) -> io::Result<()>) -> Result<(), ReportError> {
        let Some(terminal) = &mut self.terminal else { return Ok(()) };
        say(terminal).map_err(|error| {
            self.terminal = None;
            ReportError::Output(error)
        })
    }

    fn append(&mut self, history: Option<&History>) -> Result<(), ReportError> {
        match (&mut self.history, history) {
            (Some(lines), Some(history)) => lines.append(history),
            _ => Ok(()),
        }
    }

    fn write_files(&mut self, finished: Option<&Summary>, now: Instant) -> Result<(), ReportError> {
        let Some(run) = &self.run else { return Ok(()) };
        let summary = finished.cloned().unwrap_or_else(|| {
            let millis = now.saturating_duration_since(self.began).as_millis();
            Summary::of(&self.shown, self.interrupted, u64::try_from(millis).unwrap_or(u64::MAX))
        });
        let mut outcome = Ok(());
        if let Some(file) = &self.junit {
            let junit = Junit {
                run,
                millis: summary.millis,
                results: &self.shown,
                origin: &self.origin,
                inconclusive_fails: self.options.inconclusive_fails,
                accepted: &self.options.accepted,
                redactor: &self.redactor,
            };
            let text = junit.to_xml().map_err(|error| form(file.path(), &error));
            outcome = outcome.and(text.and_then(|text| Ok(file.write(text.as_bytes())?)));
        }
        if let Some((file, html)) = &self.html {
            let page = html.page(run, finished.is_some(), &summary, &self.shown);
            let page = page.map_err(|error| form(file.path(), &error));
            outcome = outcome.and(page.and_then(|page| Ok(file.write(page.as_bytes())?)));
        }
        if let Some(file) = &self.markdown {
            let text = markdown::summary(run, finished.is_some(), &summary, &self.shown);
            outcome = outcome.and(file.write(text.as_bytes()).map_err(ReportError::from));
        }
        if let Some(file) = &self.json {
            let document = Document::new(run, finished.is_some(), summary, &self.shown);
            let text = serde_json::to_string_pretty(&document).map_err(|error| form(file.path(), &error));
            outcome = outcome.and(text.and_then(|text| Ok(file.write((text + "\n").as_bytes())?)));
        }
        self.written = Some(now);
        outcome
    }
}

fn form(path: &Path, error: &dyn std::error::Error) -> ReportError {
    ReportError::Form { path: path.to_owned(), said: error.to_string() }
}

/// The file of histories: made before the run, begun with the run's header, one line per case after that.
#[derive(Debug)]
struct Lines {
    path: PathBuf,
    file: File,
    writer: Option<Writer<File>>,
}

impl Lines {
    fn create(path: &Path) -> Result<Self, FileError> {
        make_folder(path)?;
        // A new file each time: what stands there may be a pipe, or may still be written by another run.
        match std::fs::remove_file(path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(FileError::Write { path: path.to_owned(), source });
            }
            _ => {}
        }
        let file = File::create(path).map_err(|source| FileError::Write { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), file, writer: None })
    }

    fn begin(&mut self, run: &RunInfo) -> Result<(), ReportError> {
        let begun = self.file.try_clone().and_then(|file| Writer::new(file, &Header::new(&run.run, &run.target)));
        self.writer = Some(begun.map_err(|source| self.error(source))?);
        Ok(())
    }

    fn append(&mut self, history: &History) -> Result<(), ReportError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let written = writer.write(history);
        written.map_err(|source| self.error(source))
    }

    fn error(&self, source: io::Error) -> ReportError {
        FileError::Write { path: self.path.clone(), source }.into()
    }
}
