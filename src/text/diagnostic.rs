//! What is wrong with a file, told the way a compiler tells it.

use std::fmt;

use super::{Redactor, mask, snippet::Code, yaml::Source};

/// Where something stands in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct At {
    /// Bytes from the start of the file's text.
    pub offset: usize,
    /// Length in bytes; 0 if unknown.
    pub len: usize,
    /// Line, from 1; 0 if the place is unknown.
    pub line: u32,
    /// Column in characters, from 1; 0 if the place is unknown.
    pub column: u32,
}

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    title: String,
    labels: Vec<(At, String)>,
    help: Option<String>,
}

impl Diagnostic {
    /// A problem of the file as a whole.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), labels: Vec::new(), help: None }
    }

    /// Points at a place, saying in a few words what is there. The first one given is the place of the problem.
    #[must_use]
    pub fn at(mut self, at: At, label: impl Into<String>) -> Self {
        self.labels.push((at, label.into()));
        self
    }

    /// Says what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The problem in one line.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The place of the problem, if it has one.
    pub fn place(&self) -> Option<At> {
        self.labels.first().map(|(at, _)| *at)
    }
}

/// Everything that is wrong with a file, at least one thing, in the order of the file.
///
/// A snippet shows only the lines that are pointed at, and no value that stands under a name such as
/// `Authorization`, `token` or `password`.
#[derive(Debug, Clone)]
pub struct Problems {
    source: Source,
    list: Vec<Diagnostic>,
    redactor: Redactor,
}

impl Problems {
    /// The problems of a file, if there are any. Texts are passed through the redactor when they are rendered.
    ///
    /// # Errors
    /// The problems themselves, if the list is not empty.
    pub fn check(source: &Source, mut list: Vec<Diagnostic>, redactor: &Redactor) -> Result<(), Self> {
        if list.is_empty() {
            return Ok(());
        }
        list.sort_by_key(|diagnostic| diagnostic.place().map_or(0, |at| at.offset));
        list.dedup();
        Err(Self { source: source.clone(), list, redactor: redactor.clone() })
    }

    /// One problem of a file.
    pub fn one(source: &Source, diagnostic: Diagnostic) -> Self {
        Self { source: source.clone(), list: vec![diagnostic], redactor: Redactor::new() }
    }

    /// The problems, in the order of the file.
    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// The name of the file.
    pub fn file(&self) -> &str {
        self.source.name()
    }

    /// All problems as text for people, `width` columns wide, ending with a line that counts them.
    pub fn render(&self, color: bool, width: usize) -> String {
        let masked = mask::masked(self.source.text());
        for secret in &masked.secrets {
            self.redactor.add(secret);
        }
        let theme = if color { miette::GraphicalTheme::unicode() } else { miette::GraphicalTheme::unicode_nocolor() };
        let handler = miette::GraphicalReportHandler::new_themed(theme)
            .with_width(width.max(40))
            .with_context_lines(1)
            .with_links(false)
            .without_cause_chain();
        let code = Code { name: clean(self.source.name()), text: masked.text };
        let mut out = String::new();
        for diagnostic in &self.list {
            let view = View::new(diagnostic, &self.source, &code, &self.redactor);
            if handler.render_report(&mut out, &view).is_err() {
                out.push_str(&view.title);
            }
            out.push('\n');
        }
        let count = self.list.len();
        let count = match count {
            1 => "1 problem".to_owned(),
            MOST_PROBLEMS.. => format!("{count} problems, and perhaps more"),
            _ => format!("{count} problems"),
        };
        out.push_str(&format!("{}: {count}\n", clean(self.file())));
        out.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
    }
}

/// Short enough for one line of a log; [`Problems::render`] says more.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let masked = mask::masked(self.source.text());
        for secret in &masked.secrets {
            self.redactor.add(secret);
        }
        f.write_str(&clean(self.file()))?;
        let Some(first) = self.list.first() else { return Ok(()) };
        if let Some(at) = first.place().filter(|at| at.line > 0) {
            write!(f, ":{}:{}", at.line, at.column)?;
        }
        write!(f, ": {}", self.redactor.redact(&clean(&first.title)))?;
        match self.list.len() - 1 {
            0 => Ok(()),
            more => write!(f, " (and {more} more)"),
        }
    }
}

impl std::error::Error for Problems {}

/// No more problems of one file than this are kept.
pub(super) const MOST_PROBLEMS: usize = 100;

/// Lines longer than this are named instead of shown.
const LONGEST_LINE: usize = 300;

/// Titles, labels and helps are cut after this many characters.
const LONGEST_TEXT: usize = 400;

/// A diagnostic as miette wants to see it.
#[derive(Debug)]
struct View<'a> {
    title: String,
    help: Option<String>,
    labels: Vec<miette::LabeledSpan>,
    code: &'a Code,
}

impl<'a> View<'a> {
    fn new(diagnostic: &Diagnostic, source: &Source, code: &'a Code, redactor: &Redactor) -> Self {
        let safe = |text: &str| redactor.redact(&clean(text));
        let mut title = safe(&diagnostic.title);
        let mut labels = Vec::new();
        for (index, (at, label)) in diagnostic.labels.iter().enumerate() {
            match source.range(*at) {
                Some((start, len)) if source.line_len(start) <= LONGEST_LINE => {
                    let label = Some(safe(label)).filter(|label| !label.is_empty());
                    labels.push(if index == 0 {
                        miette::LabeledSpan::new_primary_with_span(label, (start, len))
                    } else {
                        miette::LabeledSpan::new_with_span(label, (start, len))
                    });
                }
                _ if at.line > 0 && index == 0 => {
                    title.push_str(&format!(" (line {}, column {} of {})", at.line, at.column, clean(source.name())));
                }
                _ => {}
            }
        }
        if diagnostic.labels.is_empty() {
            title = format!("{}: {title}", clean(source.name()));
        }
        Self { title, help: diagnostic.help.as_deref().map(safe), labels, code }
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.title)
    }
}

impl std::error::Error for View<'_> {}

impl miette::Diagnostic for View<'_> {
    fn severity(&self) -> Option<miette::Severity> {
        Some(miette::Severity::Error)
    }

    fn help<'b>(&'b self) -> Option<Box<dyn fmt::Display + 'b>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        if self.labels.is_empty() { None } else { Some(self.code) }
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = miette::LabeledSpan> + '_>> {
        if self.labels.is_empty() { None } else { Some(Box::new(self.labels.iter().cloned())) }
    }
}

/// The text on one line, without control characters and not too long.
fn clean(text: &str) -> String {
    let mut out: String =
        text.chars().take(LONGEST_TEXT).map(|c| if c.is_control() || is_bidi(c) { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(LONGEST_TEXT).is_some() {
        out.push('…');
    }
    out
}

/// Characters that change the order in which a terminal shows the others.
pub(super) fn is_bidi(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(source: &str, what: &str) -> At {
        let offset = source.find(what).unwrap();
        let line = source[..offset].matches('\n').count() as u32 + 1;
        At { offset, len: what.len(), line, column: 1 }
    }

    #[test]
    fn shows_only_the_line_and_no_secret_of_it() {
        let text = "a: 1\nheaders: { Authorization: Bearer sesame-sesame, X: wrong }\npassword: next-door\n";
        let source = Source::new("t.yaml", text);
        let problem = Diagnostic::new("`Bearer sesame-sesame` and wrong").at(at(text, "wrong"), "here").help("do");
        let problems = Problems::check(&source, vec![problem], &Redactor::new()).unwrap_err();
        let shown = problems.render(false, 100);
        assert!(shown.contains("wrong") && shown.contains("t.yaml:2"), "{shown}");
        for hidden in ["sesame", "next-door", "a: 1"] {
            assert!(!shown.contains(hidden), "{hidden} in {shown}");
        }
        assert!(!problems.to_string().contains("sesame"), "{problems}");
    }

    #[test]
    fn a_huge_line_is_named_and_not_shown() {
        let text = format!("a: {}wrong", "x".repeat(100_000));
        let source = Source::new("t.yaml", &text);
        let problem = Diagnostic::new("bad").at(at(&text, "wrong"), "");
        let shown = Problems::one(&source, problem).render(false, 100);
        assert!(shown.len() < 500 && shown.contains("line 1"), "{shown}");
    }

    #[test]
    fn control_characters_of_a_file_do_not_reach_the_terminal() {
        let text = "a: \u{1b}[31mred\u{7}\n";
        let source = Source::new("t.yaml", text);
        let problem = Diagnostic::new("bad \u{1b}[2J").at(at(text, "red"), "\u{1b}");
        let shown = Problems::one(&source, problem).render(false, 100);
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{7}'), "{shown:?}");
    }

    #[test]
    fn counts_and_sorts() {
        let text = "a: 1\nb: 2\n";
        let source = Source::new("t.yaml", text);
        let list =
            vec![Diagnostic::new("second").at(at(text, "2"), ""), Diagnostic::new("first").at(at(text, "1"), "")];
        let problems = Problems::check(&source, list, &Redactor::new()).unwrap_err();
        assert_eq!(problems.list()[0].title(), "first");
        assert!(problems.render(false, 80).ends_with("t.yaml: 2 problems\n"));
        assert_eq!(problems.to_string(), "t.yaml:1:1: first (and 1 more)");
    }
}
