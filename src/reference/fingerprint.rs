//! What a request asks for, reduced to a digest: method, path and the canonical form of its JSON body.
//!
//! The canonical form sorts the members of objects by name, drops insignificant white space and writes every string
//! with the same escapes. Numbers keep the spelling of the client: `1` and `1.0` may or may not mean the same to an
//! API, and a fingerprint must never take two intents for one.

use super::core::Fingerprint;
use sha2::{Digest, Sha256};

/// The fingerprint of a request. `path` includes the query; `body` must be JSON that `serde_json` accepts, and `None` says that it is not.
pub(super) fn fingerprint(method: &str, path: &str, body: &[u8]) -> Option<Fingerprint> {
    let mut reader = Reader { rest: body };
    let canonical = reader.value()?;
    reader.skip_space();
    if !reader.rest.is_empty() {
        return None;
    }
    Some(digest(&[method.as_bytes(), path.as_bytes(), &canonical]))
}

/// The digest of several parts.
pub(super) fn digest(parts: &[&[u8]]) -> Fingerprint {
    let mut hash = Sha256::new();
    // The length in front keeps two different splits of the same bytes apart.
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    Fingerprint(hash.finalize().into())
}

/// Reads JSON text that is known to be well formed; on anything else it gives up.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// The canonical form of the next value. The nesting is bounded by the parser that accepted the text.
    fn value(&mut self) -> Option<Vec<u8>> {
        self.skip_space();
        match self.rest.first()? {
            b'{' => self.object(),
            b'[' => self.array(),
            b'"' => self.string(),
            _ => self.word(),
        }
    }

    fn object(&mut self) -> Option<Vec<u8>> {
        let mut members = self.items(b'}', |reader| {
            let name = reader.string()?;
            reader.skip_space();
            reader.eat(b':')?;
            Some((name, reader.value()?))
        })?;
        // A stable sort: members of one name keep their order, because the last one may win.
        members.sort_by(|(a, _), (b, _)| a.cmp(b));
        let members: Vec<_> = members.into_iter().map(|(name, value)| [name, value].join(&b':')).collect();
        Some([b"{", members.join(&b',').as_slice(), b"}"].concat())
    }

    fn array(&mut self) -> Option<Vec<u8>> {
        let items = self.items(b']', Self::value)?;
        Some([b"[", items.join(&b',').as_slice(), b"]"].concat())
    }

    /// What stands between an opening byte and `close`, with commas between the items.
    fn items<T>(&mut self, close: u8, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.rest = self.rest.get(1..)?;
        let mut items = Vec::new();
        self.skip_space();
        while *self.rest.first()? != close {
            if !items.is_empty() {
                self.eat(b',')?;
                self.skip_space();
            }
            items.push(item(self)?);
            self.skip_space();
        }
        self.eat(close)?;
        Some(items)
    }

    /// A string, read and written again, so that every spelling of it comes out the same.
    fn string(&mut self) -> Option<Vec<u8>> {
        let mut escaped = false;
        let end = self.rest.iter().skip(1).position(|byte| {
            let closes = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            closes
        })? + 2;
        let text: String = serde_json::from_slice(self.take(end)).ok()?;
        serde_json::to_vec(&text).ok()
    }

    /// A number or a literal, as it is spelled.
    fn word(&mut self) -> Option<Vec<u8>> {
        let end = self.rest.iter().position(|byte| b",]} \t\r\n".contains(byte)).unwrap_or(self.rest.len());
        (end > 0).then(|| self.take(end).to_vec())
    }

    fn eat(&mut self, byte: u8) -> Option<()> {
        (self.rest.first() == Some(&byte)).then(|| self.rest = &self.rest[1..])
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn of(body: &str) -> Fingerprint {
        fingerprint("POST", "/payments", body.as_bytes()).unwrap()
    }

    #[test]
    fn order_space_and_escapes_do_not_matter() {
        let plain = of(r#"{"amount":100,"currency":"TRY","meta":{"a":[1,2],"b":null}}"#);
        assert_eq!(
            plain,
            of("{ \"meta\" : {\"b\":null ,\t\"a\":[ 1 , 2 ]},\r\n\"currency\":\"T\\u0052Y\",\"amount\":100 }\n")
        );
        assert_eq!(of(r#"{"a":"\/\u00e9"}"#), of(r#"{"a":"/é"}"#));
    }

    #[test]
    fn everything_that_may_mean_something_else_matters() {
        let bodies = [
            r#"{"a":1}"#,
            r#"{"a":1.0}"#,
            r#"{"a":1e0}"#,
            r#"{"a":10000000000000000000001}"#,
            r#"{"a":10000000000000000000002}"#,
            r#"{"a":"1"}"#,
            r#"{"a":1,"b":1}"#,
            r#"{"b":1}"#,
            r#"{"a":[1,2]}"#,
            r#"{"a":[2,1]}"#,
            r#"{"a":null}"#,
            r#"{"a":{}}"#,
            r#"{"a":[]}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"a":2,"a":1}"#,
            "[]",
            "{}",
            "1",
            r#""""#,
            r#"{"a":"\\\""}"#,
            r#"{"a":"x,\"b\":1"}"#,
        ];
        for (i, a) in bodies.iter().enumerate() {
            for b in &bodies[i + 1..] {
                assert_ne!(of(a), of(b), "{a} {b}");
            }
        }
        let base = fingerprint("POST", "/a", b"1").unwrap();
        assert_ne!(base, fingerprint("PATCH", "/a", b"1").unwrap());
        assert_ne!(base, fingerprint("POST", "/a?b=1", b"1").unwrap());
    }

    #[test]
    fn other_text_gives_nothing() {
        for text in ["", " ", "{", "[1", "[1 2]", "{\"a\"}", "{\"a\":}", "\"a", "1 2", "{\"a\":1,}x", "\"\\ud800\""] {
            assert_eq!(fingerprint("POST", "/", text.as_bytes()), None, "{text}");
        }
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".*".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map(".{0,3}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn reversed(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(reversed).collect(),
            Value::Object(members) => {
                Value::Object(members.iter().rev().map(|(name, value)| (name.clone(), reversed(value))).collect())
            }
            other => other.clone(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn other_bytes_of_one_value_agree(value in json()) {
            let pretty = serde_json::to_string_pretty(&reversed(&value)).unwrap();
            prop_assert_eq!(of(&value.to_string()), of(&pretty));
        }

        #[test]
        fn other_values_differ(a in json(), b in json()) {
            prop_assert_eq!(a == b, of(&a.to_string()) == of(&b.to_string()));
        }

        #[test]
        fn no_text_panics(text in proptest::collection::vec(proptest::sample::select(b"{}[]:,\"\\ \n1eau\xff".to_vec()), 0..40)) {
            let _ = fingerprint("POST", "/", &text);
        }
    }
}
