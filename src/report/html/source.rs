//! A case as it stands in its suite file.

/// The lines of the case that begins at `line` (from 1): up to the next line that is indented no further than its dash.
pub(super) fn excerpt(text: &str, line: u32) -> Option<String> {
    let mut lines = text.lines().skip(usize::try_from(line).ok()?.checked_sub(1)?);
    let first = lines.next()?;
    let indent = width(first);
    let mut out = vec![first];
    for line in lines {
        if !line.trim().is_empty() && width(line) <= indent {
            break;
        }
        out.push(line);
    }
    while out.last().is_some_and(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        out.pop();
    }
    let shown: Vec<_> = out.iter().take(120).map(|line| line.get(indent..).unwrap_or(line.trim_start())).collect();
    (!shown.is_empty()).then(|| shown.join("\n"))
}

fn width(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_case_ends_where_the_next_one_begins() {
        let text = "suite: s\ncases:\n  - case: one\n    title: x\n\n    steps: []\n\n  # about two\n  - case: two\n    title: y\n";
        assert_eq!(excerpt(text, 3).unwrap(), "- case: one\n  title: x\n\n  steps: []");
        assert_eq!(excerpt(text, 9).unwrap(), "- case: two\n  title: y");
        assert_eq!(excerpt(text, 0), None);
        assert_eq!(excerpt(text, 99), None);
        assert_eq!(excerpt("", 1), None);
    }
}
