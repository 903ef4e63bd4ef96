//! Turning bytes into text for the record, within limits and without secrets.

use std::{borrow::Cow, error::Error, fmt::Write as _};

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The bytes as text; those that are not UTF-8 are written `\xNN`.
pub(super) fn escaped(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a `String` cannot fail.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    Cow::Owned(out)
}

/// The text, cut at a character's boundary to at most `limit` bytes.
pub(super) fn cut(mut text: String, limit: usize) -> String {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

/// The SHA-256 in lower-case hexadecimal digits.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// The value with the members of every object sorted by name.
pub(super) fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            Value::Object(sorted.into_iter().map(|(name, member)| (name.clone(), canonical(member))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        other => other.clone(),
    }
}

/// An error and its causes in one line.
pub(super) fn said(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let more = inner.to_string();
        // Wrappers often repeat the text of what they wrap.
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use serde_json::json;

    use super::*;

    #[test]
    fn escapes_only_what_is_not_utf8_and_cuts_between_characters() {
        assert_eq!(escaped("aé".as_bytes()), "aé");
        assert_eq!(escaped(b"a\xffb\xc3"), "a\\xffb\\xc3");
        assert_eq!(cut("aéb".to_owned(), 2), "a");
        assert_eq!(cut("aéb".to_owned(), 9), "aéb");
    }

    #[test]
    fn equal_values_have_one_canonical_form() {
        let (a, b) = (json!({"x": [{"c": 1, "b": 2}], "a": 1}), json!({"a": 1, "x": [{"b": 2, "c": 1}]}));
        assert_ne!(a.to_string(), b.to_string());
        assert_eq!(canonical(&a).to_string(), canonical(&b).to_string());
        assert_eq!(sha256(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
