//! Text from suites and servers, made safe to print and measured as a terminal shows it.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

/// The text with everything that could move the cursor, hide or reorder text written out visibly. Without
/// `unicode`, every character outside ASCII is written out as well. The result is one line.
pub(crate) fn clean(text: &str, unicode: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if is_hidden(c) || !(unicode || c.is_ascii()) => push_escaped(&mut out, c),
            _ => out.push(c),
        }
    }
    out
}

/// Writes a character as `\u{1b}`.
pub(crate) fn push_escaped(out: &mut String, c: char) {
    // Writing to a String cannot fail.
    let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
}

/// Whether a character is not seen as itself: controls, soft hyphens, zero-width and bidirectional marks, line
/// separators, tags and noncharacters.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
        || u32::from(c) & 0xfffe == 0xfffe
}

/// How many columns a character takes. The emoji selector may widen the character before it by one.
fn columns(c: char) -> usize {
    if c == '\u{fe0f}' { 1 } else { c.width().unwrap_or(0) }
}

/// How many columns a text takes at most.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// The text in at most `max` columns, cut with an ellipsis if it is longer.
pub(crate) fn fit(text: &str, max: usize, unicode: bool) -> String {
    if width(text) <= max {
        return text.to_owned();
    }
    let ellipsis = if unicode { "…" } else { ".." };
    let room = max.saturating_sub(width(ellipsis));
    let mut out = take(text, room).to_owned();
    if max >= width(ellipsis) {
        out.push_str(ellipsis);
    }
    out
}

/// The longest beginning of a text that takes at most `max` columns.
fn take(text: &str, max: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += columns(c);
        if used > max {
            return &text[..at];
        }
    }
    text
}

/// The text in lines of at most `max` columns (at least 2), broken at blanks where possible.
pub(crate) fn wrap(text: &str, max: usize) -> Vec<String> {
    let max = max.max(2);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut word = word;
        if !line.is_empty() && width(&line) + 1 + width(word) <= max {
            line.push(' ');
            line.push_str(word);
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        while width(word) > max {
            let head = take(word, max);
            lines.push(head.to_owned());
            word = &word[head.len()..];
        }
        line.push_str(word);
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// The text followed by blanks up to `columns`.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    let mut out = text.to_owned();
    out.extend(std::iter::repeat_n(' ', columns.saturating_sub(width(text))));
    out
}

/// A length of time for people: `0.4 ms`, `12 ms`, `1.84 s`, `3 min 20 s`.
pub(crate) fn millis(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100),
        1_000..1_000_000 => format!("{} ms", micros / 1_000),
        1_000_000..120_000_000 => format!("{}.{:02} s", micros / 1_000_000, micros % 1_000_000 / 10_000),
        _ => format!("{} min {} s", micros / 60_000_000, micros / 1_000_000 % 60),
    }
}

/// `1 case`, `2 cases`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use proptest::prelude::*;
    use unicode_width::UnicodeWidthStr;

    use super::*;

    #[test]
    fn control_and_bidirectional_characters_are_seen() {
        assert_eq!(clean("a\u{1b}[31mb\n\t\u{202e}c", true), "a\\u{1b}[31mb\\n\\t\\u{202e}c");
        assert_eq!(clean("支付", true), "支付");
        assert_eq!(clean("支付", false), "\\u{652f}\\u{4ed8}");
    }

    #[test]
    fn wide_characters_are_cut_by_columns() {
        assert_eq!(fit("支付支付", 5, true), "支付…");
        assert_eq!(fit("支付支付", 4, true), "支…");
        assert_eq!(fit("abcdef", 4, false), "ab..");
        assert_eq!(fit("abc", 1, false), "");
    }

    #[test]
    fn words_are_kept_together_where_they_fit() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrap("", 10), [""]);
    }

    #[test]
    fn lengths_of_time_read_well() {
        let all: Vec<_> = [0, 420, 12_900, 1_849_000, 200_000_000].map(millis).to_vec();
        assert_eq!(all, ["0.0 ms", "0.4 ms", "12 ms", "1.84 s", "3 min 20 s"]);
    }

    proptest! {
        #[test]
        fn nothing_is_wider_than_asked(text in any::<String>(), max in 2usize..60, unicode: bool) {
            let text = clean(&text, unicode);
            prop_assert!(fit(&text, max, unicode).width() <= max);
            prop_assert!(text.chars().all(|c| !c.is_control()));
            for line in wrap(&text, max) {
                prop_assert!(line.width() <= max);
            }
        }
    }
}
