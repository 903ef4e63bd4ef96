//! How a terminal may be written to, and lines that know their paint.

use super::text::{clean, fit, pad, width, wrap};

/// The narrowest width that blocks are laid out for.
const NARROWEST: usize = 40;

/// The widest; longer lines are hard to follow.
const WIDEST: usize = 200;

/// What the reader's terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether colours are shown.
    pub color: bool,
    /// Whether characters outside ASCII are shown.
    pub unicode: bool,
    /// Columns. Fewer than 40 count as 40, more than 200 as 200.
    pub width: usize,
}

/// How a piece of a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Paint {
    #[default]
    Plain,
    Bold,
    Dim,
    Red,
    RedBold,
    Green,
    Yellow,
    YellowBold,
    Cyan,
}

/// One line of output, measured without its colours.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line(Vec<(Paint, String)>);

impl Style {
    /// The columns that blocks are laid out for.
    pub(crate) fn columns(&self) -> usize {
        self.width.clamp(NARROWEST, WIDEST)
    }

    /// Text from elsewhere, safe to print.
    pub(crate) fn clean(&self, text: &str) -> String {
        clean(text, self.unicode)
    }

    /// Text of at most `max` columns.
    pub(crate) fn fit(&self, text: &str, max: usize) -> String {
        fit(text, max, self.unicode)
    }

    /// The mark that stands for text left out.
    pub(crate) fn ellipsis(&self) -> &'static str {
        if self.unicode { "…" } else { ".." }
    }
}

impl Line {
    /// A line of one piece.
    pub(crate) fn of(paint: Paint, text: impl Into<String>) -> Self {
        Self(vec![(paint, text.into())])
    }

    /// Adds a piece.
    pub(crate) fn push(&mut self, paint: Paint, text: impl Into<String>) {
        self.0.push((paint, text.into()));
    }

    /// The columns used so far.
    pub(crate) fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| width(text)).sum()
    }

    /// The line as it is written, without blanks at its end.
    pub(crate) fn render(&self, style: &Style) -> String {
        let mut pieces = self.0.clone();
        while let Some((_, last)) = pieces.last_mut() {
            last.truncate(last.trim_end().len());
            if !last.is_empty() {
                break;
            }
            pieces.pop();
        }
        pieces.iter().map(|(paint, text)| paint.wrap(text, style.color)).collect()
    }
}

/// Lines as one text that ends in a line break.
pub(crate) fn render(lines: &[Line], style: &Style) -> String {
    lines.iter().map(|line| line.render(style) + "\n").collect()
}

/// A label and wrapped text beside it, cut after `most` lines. The text must be clean.
pub(crate) fn labelled(label: &str, text: &str, paint: Paint, most: usize, style: &Style) -> Vec<Line> {
    const INDENT: usize = 6;
    const LABEL: usize = 11;
    let room = style.columns() - INDENT - LABEL;
    let mut lines = wrap(text, room);
    if lines.len() > most {
        let rest = lines.split_off(most.max(1) - 1).join(" ");
        lines.push(style.fit(&rest, room));
    }
    let shown = lines.into_iter().enumerate();
    shown
        .map(|(index, text)| {
            let mut line = Line::of(Paint::Dim, pad("", INDENT) + &pad(if index == 0 { label } else { "" }, LABEL));
            line.push(paint, text);
            line
        })
        .collect()
}

impl Paint {
    fn wrap(self, text: &str, color: bool) -> String {
        let code = match self {
            Self::Plain => return text.to_owned(),
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Red => "31",
            Self::RedBold => "1;31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::YellowBold => "1;33",
            Self::Cyan => "36",
        };
        if color && !text.trim().is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
