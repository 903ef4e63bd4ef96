//! Request bodies read the way Toxiproxy reads them: the first JSON value counts, what follows is ignored, keys match
//! in any letter case, unknown keys are ignored and `null` means absent.

use serde_json::{Map, Value};

/// A call that the API answers with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) text: String,
}

impl Refusal {
    pub(super) fn new(status: u16, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    /// The body could not be read.
    pub(super) fn body(why: impl std::fmt::Display) -> Self {
        Self::new(400, format!("bad request body: {why}"))
    }
}

/// The members of a JSON object.
#[derive(Debug, Default)]
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    /// Reads the first JSON value of a body as an object.
    pub(super) fn decode(body: &[u8]) -> Result<Self, Refusal> {
        Self::from_value(first_value(body)?)
    }

    /// Reads the first JSON value of a body as an array of objects; `null` is an empty one.
    pub(super) fn decode_list(body: &[u8]) -> Result<Vec<Self>, Refusal> {
        match first_value(body)? {
            Value::Null => Ok(vec![]),
            Value::Array(items) => items.into_iter().map(Self::from_value).collect(),
            other => Err(Refusal::body(format!("json: cannot unmarshal {} into an array", kind(&other)))),
        }
    }

    fn from_value(value: Value) -> Result<Self, Refusal> {
        match value {
            Value::Null => Ok(Self::default()),
            Value::Object(members) => Ok(Self(members)),
            other => Err(Refusal::body(format!("json: cannot unmarshal {} into an object", kind(&other)))),
        }
    }

    /// The last member of that name in any letter case, unless it is null.
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().rev().find(|(key, value)| key.eq_ignore_ascii_case(name) && !value.is_null()).map(|(_, v)| v)
    }

    fn read<'a, T>(
        &'a self,
        name: &str,
        wanted: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let wrong =
            || Refusal::body(format!("json: cannot unmarshal {} into field {name} of type {wanted}", kind(value)));
        read(value).map(Some).ok_or_else(wrong)
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Refusal> {
        self.read(name, "string", |value| value.as_str().map(str::to_owned))
    }

    pub(super) fn boolean(&self, name: &str) -> Result<Option<bool>, Refusal> {
        self.read(name, "bool", Value::as_bool)
    }

    pub(super) fn integer(&self, name: &str) -> Result<Option<i64>, Refusal> {
        self.read(name, "int64", Value::as_i64)
    }

    pub(super) fn float(&self, name: &str) -> Result<Option<f32>, Refusal> {
        self.read(name, "float32", |value| value.as_f64().map(|wide| wide as f32).filter(|narrow| narrow.is_finite()))
    }

    /// The members of an inner object; an empty one when it is absent.
    pub(super) fn object(&self, name: &str) -> Result<Self, Refusal> {
        Ok(Self(self.read(name, "object", |value| value.as_object().cloned())?.unwrap_or_default()))
    }
}

fn first_value(body: &[u8]) -> Result<Value, Refusal> {
    match serde_json::Deserializer::from_slice(body).into_iter::<Value>().next() {
        None => Err(Refusal::body("EOF")),
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) if error.is_eof() => Err(Refusal::body("unexpected EOF")),
        Some(Err(error)) => Err(Refusal::body(error)),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn empty_cut_and_wrong_bodies_say_what_is_wrong() {
        let text = |body: &str| Fields::decode(body.as_bytes()).unwrap_err().text;
        assert_eq!(text(""), "bad request body: EOF");
        assert_eq!(text("  "), "bad request body: EOF");
        assert_eq!(text("{\"a\":"), "bad request body: unexpected EOF");
        assert!(text("[1]").starts_with("bad request body: json: cannot unmarshal array"));
        assert!(text("nonsense").starts_with("bad request body: "));
        assert!(text(&"[".repeat(100_000)).starts_with("bad request body: "));
    }

    #[test]
    fn keys_match_in_any_case_and_null_is_absent() {
        let fields = Fields::decode(br#"{"NAME":"a","Name":null,"enabled":null,"x":1} trailing"#).unwrap();
        assert_eq!(fields.text("name").unwrap().as_deref(), Some("a"));
        assert_eq!(fields.boolean("enabled").unwrap(), None);
    }

    #[test]
    fn numbers_must_be_whole_where_whole_ones_are_meant() {
        let fields = Fields::decode(br#"{"a":1.5,"b":"1","c":7,"d":99999999999999999999,"e":1e300}"#).unwrap();
        assert!(fields.integer("a").is_err());
        assert!(fields.integer("b").is_err());
        assert_eq!(fields.integer("c").unwrap(), Some(7));
        assert!(fields.integer("d").is_err());
        assert!(fields.float("e").is_err());
    }
}
