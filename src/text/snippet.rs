//! The lines of a source text that a diagnostic may show.

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

/// A text that shows whole lines, and only those that a label stands on, however much context is asked for.
#[derive(Debug)]
pub(super) struct Code {
    /// The name that people know the file by.
    pub(super) name: String,
    /// The text, with its secrets masked.
    pub(super) text: String,
}

impl SourceCode for Code {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let (mut start, mut end) = (span.offset(), span.offset() + span.len());
        let (head, tail) = self.text.get(..start).zip(self.text.get(end..)).ok_or(MietteError::OutOfBounds)?;
        let line_start = head.rfind('\n').map_or(0, |index| index + 1);
        let line = head.bytes().filter(|byte| *byte == b'\n').count();
        let mut column = head[line_start..].chars().count();
        // No context at all is asked for only to learn the line and the column of a label.
        if before + after > 0 {
            start = line_start;
            end += tail.find(['\n', '\r']).unwrap_or(tail.len());
            column = 0;
        }
        let shown = &self.text[start..end];
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            shown.as_bytes(),
            (start, end - start).into(),
            line,
            column,
            shown.matches('\n').count() + 1,
        )))
    }
}
