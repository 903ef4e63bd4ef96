//! The one way in for YAML. Only this file and `explain.rs` know which crate reads it.

use std::{io::Read, path::Path, sync::Arc};

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_saphyr::{DuplicateKeyPolicy, Location, Options, budget, options};

use super::{
    diagnostic::{At, Diagnostic, Problems},
    explain::explain,
};

/// The largest file that is read.
const LARGEST: usize = 1024 * 1024;

/// The deepest nesting, and the most values after the expansion of aliases. A suite needs a tenth of this.
const DEEPEST: usize = 32;
const MOST_NODES: usize = 20_000;

/// A file's name and text. Clones share the text.
#[derive(Debug, Clone)]
pub struct Source {
    name: Arc<str>,
    text: Arc<str>,
}

/// Whether opening it could wait for a writer without end. What a shell gives under `/dev` or `/proc` has a writer.
#[cfg(unix)]
fn is_named_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    let from_shell = path.starts_with("/dev") || path.starts_with("/proc");
    !from_shell && std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_named_pipe(_path: &Path) -> bool {
    false
}

impl Source {
    /// A text that is already there, under the name that people know it by. A byte order mark is dropped.
    pub fn new(name: &str, text: &str) -> Self {
        Self { name: name.into(), text: text.strip_prefix('\u{feff}').unwrap_or(text).into() }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, is larger than 1 MiB, or is not UTF-8.
    pub fn read(path: &Path) -> Result<Self, Problems> {
        let name = path.display().to_string();
        let fail = |diagnostic| Err(Problems::one(&Self::new(&name, ""), diagnostic));
        if is_named_pipe(path) {
            return fail(Diagnostic::new("this is a named pipe, not a file").help("name a file"));
        }
        // One byte more than allowed is enough to know; a device or a pipe may never end.
        let mut bytes = Vec::new();
        let read =
            std::fs::File::open(path).and_then(|file| file.take(LARGEST as u64 + 1).read_to_end(&mut bytes).map(drop));
        if let Err(error) = read {
            return fail(Diagnostic::new(format!("the file cannot be read: {error}")).help("check the path"));
        }
        Self::from_bytes(&name, &bytes)
    }

    /// Takes the bytes of a file.
    ///
    /// # Errors
    /// When they are more than 1 MiB, or not UTF-8.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self, Problems> {
        let fail = |diagnostic| Err(Problems::one(&Self::new(name, ""), diagnostic));
        if bytes.len() > LARGEST {
            return fail(
                Diagnostic::new("the file is larger than 1 MiB").help("split it, or check that it is the right file"),
            );
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self::new(name, text)),
            Err(error) => {
                let good = &bytes[..error.valid_up_to()];
                let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
                let bad = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
                fail(
                    Diagnostic::new(format!("line {line} is not UTF-8: it has a byte 0x{bad:02X}"))
                        .help("save the file with the encoding UTF-8"),
                )
            }
        }
    }

    /// The name that people know the file by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The place of the first `needle` at or after a place, else that place itself.
    pub fn find(&self, from: At, needle: &str) -> At {
        let Some(index) = self.text.get(from.offset..).and_then(|rest| rest.find(needle)) else { return from };
        self.place(from.offset + index, needle.len())
    }

    /// The place of a range of bytes.
    pub fn place(&self, offset: usize, len: usize) -> At {
        let Some(before) = self.text.get(..offset) else { return At::default() };
        let start = before.rfind('\n').map_or(0, |index| index + 1);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before[start..].chars().count() + 1;
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        At { offset, len, line: number(line), column: number(column) }
    }

    /// The same place, with its bytes found by line and column.
    pub(super) fn located(&self, at: At) -> At {
        let line = usize::try_from(at.line).unwrap_or_default();
        let column = usize::try_from(at.column).unwrap_or_default();
        let before = line.saturating_sub(1);
        let start: usize = self.text.split_inclusive('\n').take(before).map(str::len).sum();
        let text = self.text.split_inclusive('\n').nth(before).unwrap_or_default();
        let inside =
            text.char_indices().nth(column.saturating_sub(1)).map_or(text.trim_end().len(), |(index, _)| index);
        At { offset: start + inside, len: 0, ..at }
    }

    /// What to underline for a place: whole characters of one line, at least one.
    pub(super) fn range(&self, at: At) -> Option<(usize, usize)> {
        if at.line == 0 {
            return None;
        }
        let rest = self.text.get(at.offset..)?;
        let line = rest.split(['\n', '\r']).next().unwrap_or_default();
        let len = if at.len == 0 { word_len(line) } else { at.len.min(line.len()) };
        let shown = line.get(..len).unwrap_or(line);
        Some((at.offset, shown.trim_end().len()))
    }

    /// The length of the line that a byte stands in.
    pub(super) fn line_len(&self, offset: usize) -> usize {
        let (Some(before), Some(after)) = (self.text.get(..offset), self.text.get(offset..)) else { return usize::MAX };
        let start = before.rfind('\n').map_or(0, |index| index + 1);
        offset - start + after.find('\n').unwrap_or(after.len())
    }
}

fn word_len(line: &str) -> usize {
    let end = line.find([' ', ':', ',', '}', ']', '#']).unwrap_or(line.len());
    if end == 0 { line.chars().next().map_or(0, char::len_utf8) } else { end }
}

/// Reads the one document of a YAML text.
///
/// Duplicate keys are an error, only `true` and `false` are booleans, numbers with leading zeros or underscores
/// are texts, and nesting and size are bounded, aliases included.
///
/// # Errors
/// What is wrong with it: not YAML, or not of the wanted shape.
pub fn from_yaml<T: DeserializeOwned>(source: &Source) -> Result<T, Problems> {
    let blank = |line: &str| {
        let line = line.trim();
        line.is_empty() || line.starts_with('#') || line == "---" || line == "..."
    };
    if source.text().lines().all(blank) {
        return Err(Problems::one(
            source,
            Diagnostic::new("the file is empty")
                .help("a suite file starts with `suite: NAME`, a target file with `target: NAME`"),
        ));
    }
    let options: Options = options! {
        budget: budget! {
            max_depth: DEEPEST,
            max_nodes: MOST_NODES,
            max_events: 4 * MOST_NODES,
            max_documents: 2,
            max_total_scalar_bytes: 2 * LARGEST,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        with_snippet: false,
    };
    let fail = |error| Problems::one(source, explain(&error, source));
    // Broken YAML is told before the first wrong shape, which is often only what the break looks like.
    serde_saphyr::from_str_with_options::<serde::de::IgnoredAny>(source.text(), options.clone()).map_err(fail)?;
    serde_saphyr::from_str_with_options(source.text(), options).map_err(fail)
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it stands; for a map or a list, where that starts.
    pub at: At,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Spanned<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = serde_saphyr::Spanned::deserialize(deserializer)?;
        Ok(Self { value: spanned.value, at: at(spanned.referenced) })
    }
}

/// A place as the crate tells it.
pub(super) fn at(location: Location) -> At {
    if location == Location::UNKNOWN {
        return At::default();
    }
    let span = location.span();
    if span.byte_offset().is_none() {
        return At { offset: usize::MAX, ..at_line(location) };
    }
    let size = |n: Option<u64>| usize::try_from(n.unwrap_or_default()).unwrap_or_default();
    At { offset: size(span.byte_offset()), len: size(span.byte_len()), ..at_line(location) }
}

fn at_line(location: Location) -> At {
    let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    At { offset: 0, len: 0, line: small(location.line()), column: small(location.column()) }
}
