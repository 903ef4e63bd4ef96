//! The `Idempotency-Key` field: an Item Structured Field whose value must be a String.

use ::http::HeaderMap;
use sfv::{BareItem, Item, Parser};

/// The longest key taken, in characters.
const LONGEST: usize = 255;

/// A key as the client means it: the string without its quotes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key(pub(super) String);

/// A request without a usable key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum KeyError {
    #[error(
        "this operation needs an Idempotency-Key field, such as Idempotency-Key: \"8e03978e-40d5-43dd-bc93-6894a57f9324\""
    )]
    Missing,
    #[error("Idempotency-Key must be sent in one field line, not in several")]
    SeveralLines,
    #[error("Idempotency-Key must be a Structured Field String, that is ASCII text in double quotes")]
    NotAString,
    #[error("Idempotency-Key must not be empty")]
    Empty,
    #[error("Idempotency-Key must have at most {LONGEST} characters")]
    TooLong,
}

impl Key {
    /// Reads the key of a request. Parameters of the item are allowed and mean nothing.
    pub(super) fn read(headers: &HeaderMap) -> Result<Self, KeyError> {
        let mut lines = headers.get_all("idempotency-key").iter();
        let line = lines.next().ok_or(KeyError::Missing)?;
        if lines.next().is_some() {
            return Err(KeyError::SeveralLines);
        }
        let item: Item = Parser::new(line.as_bytes()).parse().map_err(|_| KeyError::NotAString)?;
        let BareItem::String(text) = item.bare_item else { return Err(KeyError::NotAString) };
        match text.as_str().len() {
            0 => Err(KeyError::Empty),
            1..=LONGEST => Ok(Self(text.as_str().to_owned())),
            _ => Err(KeyError::TooLong),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use ::http::HeaderValue;

    fn read(lines: &[&[u8]]) -> Result<String, KeyError> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("Idempotency-Key", HeaderValue::from_bytes(line).unwrap());
        }
        Key::read(&headers).map(|key| key.0)
    }

    #[test]
    fn a_string_is_a_key() {
        assert_eq!(read(&[b"\"abc\""]).unwrap(), "abc");
        assert_eq!(read(&[b"  \"a \\\" \\\\ b\" "]).unwrap(), "a \" \\ b");
        assert_eq!(read(&[b"\"abc\";v=1"]).unwrap(), "abc");
        assert_eq!(read(&[b"\" \""]).unwrap(), " ");
        let longest = "k".repeat(255);
        assert_eq!(read(&[format!("\"{longest}\"").as_bytes()]).unwrap(), longest);
    }

    #[test]
    fn everything_else_is_refused() {
        assert_eq!(read(&[]), Err(KeyError::Missing));
        assert_eq!(read(&[b"\"a\"", b"\"a\""]), Err(KeyError::SeveralLines));
        assert_eq!(read(&[b"\"\""]), Err(KeyError::Empty));
        assert_eq!(read(&[format!("\"{}\"", "k".repeat(256)).as_bytes()]), Err(KeyError::TooLong));
        let odd: [&[u8]; 10] = [
            b"",
            b"abc",
            b"8e03978e-40d5-43dd-bc93-6894a57f9324",
            b"12",
            b"?1",
            b":YQ==:",
            b"\"abc",
            b"\"a\" \"b\"",
            b"\"a\", \"b\"",
            b"\"\xc3\xa9\"",
        ];
        for line in odd {
            assert_eq!(read(&[line]), Err(KeyError::NotAString), "{:?}", String::from_utf8_lossy(line));
        }
    }
}
