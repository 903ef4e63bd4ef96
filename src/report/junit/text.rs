//! Text that every XML 1.0 reader accepts and that shows what was in the original.

use crate::{report::terminal::push_escaped, text::Redactor};

/// Longer text is cut, with a note.
const MOST_BYTES: usize = 64 * 1024;

/// Masks, filters and cuts the texts of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filter<'a>(pub(super) &'a Redactor);

impl Filter<'_> {
    /// Text of several lines, for the content of an element.
    pub(super) fn block(&self, text: &str) -> String {
        cut(xml(&self.0.redact(text)))
    }

    /// One line, for an attribute: readers turn line breaks in attributes into blanks.
    pub(super) fn line(&self, text: &str) -> String {
        self.block(text).replace('\n', " ")
    }

    /// The first line that is not empty, for a `message`.
    pub(super) fn first_line(&self, text: &str) -> String {
        self.line(text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default())
    }
}

/// The text with every character that XML 1.0 forbids, and every other control character, written out visibly:
/// in a report about broken servers, control bytes are evidence. Tabs become blanks.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push('\n'),
            '\t' => out.push_str("    "),
            '\u{fffe}' | '\u{ffff}' => push_escaped(&mut out, c),
            _ if c.is_control() => push_escaped(&mut out, c),
            _ => out.push(c),
        }
    }
    out
}

fn cut(mut text: String) -> String {
    if text.len() > MOST_BYTES {
        let end = (0..=MOST_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        let more = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("\n[cut here: {more} more bytes]"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_characters_stay_visible() {
        let redactor = Redactor::new();
        let filter = Filter(&redactor);
        assert_eq!(filter.block("\u{1b}[31m\0\u{fffe}\u{85}\ta\nb"), "\\u{1b}[31m\\u{0}\\u{fffe}\\u{85}    a\nb");
        assert_eq!(filter.line("a\nb"), "a b");
        assert_eq!(filter.first_line("\n  \nfirst\nsecond"), "first");
    }

    #[test]
    fn long_text_is_cut_with_a_note() {
        let redactor = Redactor::new();
        let text = Filter(&redactor).block(&"ü".repeat(MOST_BYTES));
        assert!(text.len() < MOST_BYTES + 100 && text.ends_with("more bytes]"), "{}", text.len());
    }

    #[test]
    fn a_secret_is_masked_before_the_text_is_cut() {
        let redactor = Redactor::new();
        redactor.add("s3cret-value");
        let text = format!("{}s3cret-value", "x".repeat(MOST_BYTES - 4));
        assert!(!Filter(&redactor).block(&text).contains("s3cr"));
    }
}
