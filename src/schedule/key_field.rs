//! A key as the value of its header field.

use sfv::{BareItem, FieldType, Item};

use crate::target::KeySyntax;

/// A key that no Structured Field String can hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` has characters that a Structured Field String cannot have; write it with `raw_key`")]
pub struct NotAString(pub String);

/// The field value of a key, as the policy writes keys.
///
/// # Errors
/// When the policy writes keys as Structured Field Strings and this one has other characters than visible ASCII and
/// spaces.
pub fn key_field(characters: &str, syntax: KeySyntax) -> Result<String, NotAString> {
    match syntax {
        KeySyntax::Bare => Ok(characters.to_owned()),
        KeySyntax::SfString => {
            let text = sfv::String::from_string(characters.to_owned())
                .map_err(|(_, text)| NotAString(text.escape_default().to_string()))?;
            Ok(Item::new(BareItem::String(text)).serialize())
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use proptest::prelude::*;
    use sfv::Parser;

    use super::*;

    /// What a raw field value is, by RFC 8941 or its successor.
    #[derive(Debug, PartialEq, Eq)]
    enum Is {
        Text(&'static str),
        OtherType,
        Failure,
    }

    fn parse(lines: &[&[u8]]) -> Result<Item, sfv::Error> {
        // All lines of one name are joined with commas before they are parsed (RFC 8941 section 4.2).
        Parser::new(&lines.join(&b", "[..])).parse::<Item>()
    }

    #[test]
    fn the_table_of_raw_values() {
        let table: &[(&[&[u8]], Is)] = &[
            (&[b"\"8e03978e-40d5-43e8-bc93-6894a57f9324\""], Is::Text("8e03978e-40d5-43e8-bc93-6894a57f9324")),
            (&[b"c1700de3-cdb8-4d8a-9990-e4ebf052e9aa"], Is::OtherType),
            (&[b"8e03978e-40d5-43e8-bc93-6894a57f9324"], Is::Failure),
            (&[b"\"\""], Is::Text("")),
            (&[b""], Is::Failure),
            (&[b"\"a\\\"b\""], Is::Text("a\"b")),
            (&[b"\"a\\\\b\""], Is::Text("a\\b")),
            (&[b"\"a\\b\""], Is::Failure),
            (&[b"\"a"], Is::Failure),
            (&[b"\"k\";v=1"], Is::Text("k")),
            (&[b"\"k\";V=1"], Is::Failure),
            (&[b"\"k1\", \"k2\""], Is::Failure),
            (&[b"\"k1\"", b"\"k2\""], Is::Failure),
            (&[b"\"k\"", b"\"k\""], Is::Failure),
            (&[b"\"foo", b"bar\""], Is::Text("foo, bar")),
            (&["\"caf\u{e9}\"".as_bytes()], Is::Failure),
            (&[b"\"a\tb\""], Is::Failure),
            (&[b"\"a\x7fb\""], Is::Failure),
            (&[b"%\"caf%c3%a9\""], Is::OtherType),
            (&[b"@1700000000"], Is::OtherType),
        ];
        for (lines, is) in table {
            let found = parse(lines);
            let found = match &found {
                Err(_) => Is::Failure,
                Ok(Item { bare_item: BareItem::String(text), .. }) => match is {
                    Is::Text(wanted) if *wanted == text.as_str() => Is::Text(wanted),
                    _ => panic!("{lines:?} is the text {text:?}"),
                },
                Ok(_) => Is::OtherType,
            };
            assert_eq!(found, *is, "{:?}", String::from_utf8_lossy(&lines.join(&b" | "[..])));
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(text in "[ -~]{0,1100}") {
            let field = key_field(&text, KeySyntax::SfString).unwrap();
            match Parser::new(&field).parse::<Item>().unwrap().bare_item {
                BareItem::String(read) => prop_assert_eq!(read.as_str(), text.as_str()),
                other => prop_assert!(false, "{:?}", other),
            }
        }

        #[test]
        fn nothing_else_is_written(text in "[ -~]{0,9}[^ -~][ -~]{0,9}") {
            prop_assert!(key_field(&text, KeySyntax::SfString).is_err());
            prop_assert_eq!(key_field(&text, KeySyntax::Bare).unwrap(), text);
        }
    }
}
