//! The key of a request: where the contract says it is, and as it says it is written.

use super::contract::{Charset, Empty, KeyContract, KeyFormat, Malformed, Place, Syntax};
use ::http::{HeaderMap, Uri};
use sfv::{BareItem, Item, Parser};

/// A key as the client means it.
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
    #[error("Idempotency-Key must be visible ASCII text")]
    NotText,
    #[error("Idempotency-Key must not be empty")]
    Empty,
    #[error("Idempotency-Key has too few characters")]
    TooShort,
    #[error("Idempotency-Key has too many characters")]
    TooLong,
    #[error("Idempotency-Key has characters that are not allowed")]
    BadCharacter,
    #[error("Idempotency-Key must be a UUID")]
    NotAUuid,
}

impl Key {
    /// Reads the key of a request. Where the contract ignores a malformed key, such a request has none.
    pub(super) fn read(contract: &KeyContract, headers: &HeaderMap, uri: &Uri, body: &[u8]) -> Result<Self, KeyError> {
        let lines = lines(contract, headers, uri, body);
        let Some(first) = lines.first() else { return Err(KeyError::Missing) };
        let read = if lines.len() > 1 { Err(KeyError::SeveralLines) } else { checked(contract, first) };
        match (read, contract.malformed) {
            (Err(_), Malformed::Ignore) => Err(KeyError::Missing),
            (Err(_), Malformed::Raw) => Ok(Self(String::from_utf8_lossy(&lines.join(&b", "[..])).trim().to_owned())),
            (read, _) => read,
        }
    }
}

/// What stands where the key is, line by line.
fn lines(contract: &KeyContract, headers: &HeaderMap, uri: &Uri, body: &[u8]) -> Vec<Vec<u8>> {
    let name = &contract.location.name;
    match contract.location.place {
        Place::Header => headers.get_all(name).iter().map(|line| line.as_bytes().to_vec()).collect(),
        Place::Query => {
            let pairs = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
            pairs.filter(|(key, _)| key == name).map(|(_, value)| value.into_owned().into_bytes()).collect()
        }
        Place::Body => {
            let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
            let member = body.get(name).map(|member| match member {
                serde_json::Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            member.map(String::into_bytes).into_iter().collect()
        }
    }
}

fn checked(contract: &KeyContract, line: &[u8]) -> Result<Key, KeyError> {
    let text = match contract.syntax {
        Syntax::SfString => string(line)?,
        Syntax::Bare => bare(line)?,
        Syntax::Either if contract.quotes_equal => string(line).or_else(|_| bare(line))?,
        Syntax::Either => bare(line)?,
    };
    let length = text.chars().count();
    if length == 0 {
        return if contract.empty == Empty::Accept { Ok(Key(text)) } else { Err(KeyError::Empty) };
    }
    if length < contract.min {
        return Err(KeyError::TooShort);
    }
    if length > contract.max {
        return Err(KeyError::TooLong);
    }
    let proper = |byte: u8| match contract.charset {
        Charset::Ascii => (0x20..0x7f).contains(&byte),
        Charset::Visible => (0x21..0x7f).contains(&byte),
        Charset::Name => byte.is_ascii_alphanumeric() || b"-_:".contains(&byte),
        Charset::NameOrSpace => byte.is_ascii_alphanumeric() || b"-_ ".contains(&byte),
    };
    if !text.bytes().all(proper) {
        return Err(KeyError::BadCharacter);
    }
    let version = || uuid::Uuid::try_parse(&text).ok().filter(|_| length == 36).map(|uuid| uuid.get_version_num());
    match contract.format {
        KeyFormat::Uuid if version().is_none() => Err(KeyError::NotAUuid),
        KeyFormat::Uuid4 if version() != Some(4) => Err(KeyError::NotAUuid),
        _ => Ok(Key(text)),
    }
}

/// A Structured Field String. Parameters of the item are allowed and mean nothing.
fn string(line: &[u8]) -> Result<String, KeyError> {
    let item: Item = Parser::new(line).parse().map_err(|_| KeyError::NotAString)?;
    match item.bare_item {
        BareItem::String(text) => Ok(text.as_str().to_owned()),
        _ => Err(KeyError::NotAString),
    }
}

fn bare(line: &[u8]) -> Result<String, KeyError> {
    let text = std::str::from_utf8(line).map_err(|_| KeyError::NotText)?.trim();
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) { Ok(text.to_owned()) } else { Err(KeyError::NotText) }
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
        Key::read(&KeyContract::default(), &headers, &Uri::from_static("/"), b"").map(|key| key.0)
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

    fn set(settings: &[&str]) -> KeyContract {
        let settings: Vec<_> = settings.iter().map(|text| text.parse().unwrap()).collect();
        crate::reference::contract::Contract::default().with(&settings).key
    }

    #[test]
    fn keys_are_where_and_what_the_contract_says() {
        let none = HeaderMap::new();
        let read = |settings: &[&str], uri: &'static str, body: &str| {
            Key::read(&set(settings), &none, &Uri::from_static(uri), body.as_bytes()).map(|key| key.0)
        };
        let body = &["key.loc=body:idempotency_key", "key.syntax=bare"];
        assert_eq!(read(body, "/", r#"{"idempotency_key":"k1"}"#).unwrap(), "k1");
        assert_eq!(read(body, "/", "{}"), Err(KeyError::Missing));
        assert_eq!(read(&["key.loc=query:Token", "key.syntax=bare"], "/?a=1&Token=k%201", "").unwrap(), "k 1");
        let mut headers = HeaderMap::new();
        let mut of = |settings: &[&str], value: &str| {
            headers.insert("idempotency-key", value.parse().unwrap());
            Key::read(&set(settings), &headers, &Uri::from_static("/"), b"").map(|key| key.0)
        };
        assert_eq!(of(&["key.syntax=bare"], "\"k\"").unwrap(), "\"k\"");
        assert_eq!(of(&["key.syntax=either"], "\"k\"").unwrap(), "k");
        assert_eq!(of(&["key.syntax=either", "key.quote_equiv=no"], "\"k\"").unwrap(), "\"k\"");
        assert_eq!(of(&["key.syntax=bare", "key.min=4"], "abc"), Err(KeyError::TooShort));
        assert_eq!(of(&["key.syntax=bare", "key.max=2"], "abc"), Err(KeyError::TooLong));
        assert_eq!(of(&["key.syntax=bare", "key.charset=name"], "a b"), Err(KeyError::BadCharacter));
        assert_eq!(of(&["key.syntax=bare", "key.format=uuid4"], "abc"), Err(KeyError::NotAUuid));
        assert!(of(&["key.syntax=bare", "key.format=uuid4"], "8e03978e-40d5-43dd-bc93-6894a57f9324").is_ok());
        assert_eq!(of(&["key.malformed=ignore"], "abc"), Err(KeyError::Missing));
        assert_eq!(of(&["key.malformed=raw"], "abc").unwrap(), "abc");
        assert_eq!(of(&["key.empty=accept"], "\"\"").unwrap(), "");
    }
}
