//! `${name}` and `${env:NAME}` in texts and JSON values.

use std::{collections::BTreeMap, fmt};

use serde_json::{Number, Value};

/// The values that placeholders are replaced with.
pub type Vars = BTreeMap<String, Var>;

/// One value for a placeholder.
#[derive(Debug, Clone, PartialEq)]
pub enum Var {
    /// A text.
    Text(String),
    /// A whole number; it stays a number where it stands alone in a JSON value.
    Number(u64),
}

impl fmt::Display for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

/// What is wrong with a template or with the values given to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A `${` without its `}`.
    #[error("`${{` without a closing `}}` in `{0}`")]
    Unclosed(String),
    /// A placeholder whose name is empty or has characters other than letters, digits, `_`, `-` and one `env:`.
    #[error("`${{{0}}}` is not a placeholder: write ${{name}} or ${{env:NAME}}")]
    BadName(String),
    /// An environment variable that is not set.
    #[error("the environment variable `{0}` is not set: set it, or write the value in the file")]
    NoEnv(String),
    /// A variable that nothing gives a value to.
    #[error("nothing gives `${{{0}}}` a value here")]
    Unknown(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Name(String),
    Env(String),
}

/// A text with placeholders, parsed once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Part>);

impl Template {
    /// Parses a text.
    ///
    /// # Errors
    /// When a placeholder is not closed or has no proper name.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            if start > 0 {
                parts.push(Part::Literal(rest[..start].to_owned()));
            }
            let after = &rest[start + 2..];
            let end = after.find('}').ok_or_else(|| TemplateError::Unclosed(text.to_owned()))?;
            let name = &after[..end];
            let (env, bare) = name.strip_prefix("env:").map_or((false, name), |bare| (true, bare));
            let proper = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if bare.is_empty() || !bare.chars().all(proper) {
                return Err(TemplateError::BadName(name.to_owned()));
            }
            parts.push(if env { Part::Env(bare.to_owned()) } else { Part::Name(bare.to_owned()) });
            rest = &after[end + 1..];
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Ok(Self(parts))
    }

    /// A template that is this text, whatever stands in it.
    pub fn literal(text: &str) -> Self {
        Self(vec![Part::Literal(text.to_owned())])
    }

    /// Replaces every `${env:NAME}` with what `lookup` gives.
    ///
    /// # Errors
    /// When `lookup` does not know a name.
    pub fn resolve_env(self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, TemplateError> {
        let resolve = |part| match part {
            Part::Env(name) => lookup(&name).map(Part::Literal).ok_or(TemplateError::NoEnv(name)),
            other => Ok(other),
        };
        self.0.into_iter().map(resolve).collect::<Result<_, _>>().map(Self)
    }

    /// The names of the placeholders, environment variables excluded.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| if let Part::Name(name) = part { Some(name.as_str()) } else { None })
    }

    /// Whether the text holds an `${env:...}` that is still to be resolved.
    pub fn has_env(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Env(_)))
    }

    /// The text with every placeholder replaced.
    ///
    /// # Errors
    /// When a placeholder has no value, or an environment variable was not resolved before.
    pub fn render(&self, vars: &Vars) -> Result<String, TemplateError> {
        self.render_with(vars, &|value| value)
    }

    /// As [`render`](Self::render), with every inserted value passed through `encode`, for use inside a URL.
    ///
    /// # Errors
    /// As [`render`](Self::render).
    pub fn render_with(&self, vars: &Vars, encode: &dyn Fn(String) -> String) -> Result<String, TemplateError> {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Literal(text) => out.push_str(text),
                Part::Env(name) => return Err(TemplateError::NoEnv(name.clone())),
                Part::Name(name) => {
                    let value = vars.get(name).ok_or_else(|| TemplateError::Unknown(name.clone()))?;
                    out.push_str(&encode(value.to_string()));
                }
            }
        }
        Ok(out)
    }

    fn alone(&self) -> Option<&str> {
        if let [Part::Name(name)] = self.0.as_slice() { Some(name) } else { None }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            Part::Literal(text) => f.write_str(text),
            Part::Name(name) => write!(f, "${{{name}}}"),
            Part::Env(name) => write!(f, "${{env:{name}}}"),
        })
    }
}

/// A JSON value whose strings are templates. Member names are taken as they are.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonTemplate(Value);

impl JsonTemplate {
    /// Takes a value, checking every string in it.
    ///
    /// # Errors
    /// When a string is not a template.
    pub fn parse(value: Value) -> Result<Self, TemplateError> {
        each_string(&value, &mut |text| Template::parse(text).map(drop))?;
        Ok(Self(value))
    }

    /// Replaces every `${env:NAME}` with what `lookup` gives.
    ///
    /// # Errors
    /// When `lookup` does not know a name.
    pub fn resolve_env(self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, TemplateError> {
        map_strings(&self.0, &|text| Ok(Value::String(Template::parse(text)?.resolve_env(lookup)?.to_string())))
            .map(Self)
    }

    /// The names of the placeholders in it, in order, repeated ones included.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let collected = each_string(&self.0, &mut |text| {
            names.extend(Template::parse(text)?.names().map(str::to_owned));
            Ok(())
        });
        debug_assert!(collected.is_ok(), "the strings were checked when the template was made");
        names
    }

    /// The value with every placeholder replaced. A string that is one placeholder of a number becomes a number.
    ///
    /// # Errors
    /// When a placeholder has no value.
    pub fn render(&self, vars: &Vars) -> Result<Value, TemplateError> {
        map_strings(&self.0, &|text| {
            let template = Template::parse(text)?;
            match template.alone().and_then(|name| vars.get(name)) {
                Some(Var::Number(number)) => Ok(Value::Number(Number::from(*number))),
                _ => template.render(vars).map(Value::String),
            }
        })
    }

    /// The value with a JSON merge patch (RFC 7396) applied.
    #[must_use]
    pub fn merged(&self, patch: &Self) -> Self {
        let mut value = self.0.clone();
        merge(&mut value, &patch.0);
        Self(value)
    }

    /// The value as written, with its placeholders.
    pub fn as_value(&self) -> &Value {
        &self.0
    }
}

fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(serde_json::Map::new());
    }
    let Value::Object(members) = value else { return };
    for (name, change) in changes {
        if change.is_null() {
            members.shift_remove(name);
        } else {
            merge(members.entry(name.clone()).or_insert(Value::Null), change);
        }
    }
}

fn each_string(value: &Value, f: &mut dyn FnMut(&str) -> Result<(), TemplateError>) -> Result<(), TemplateError> {
    match value {
        Value::String(text) => f(text),
        Value::Array(items) => items.iter().try_for_each(|item| each_string(item, f)),
        Value::Object(members) => members.values().try_for_each(|member| each_string(member, f)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

fn map_strings(value: &Value, f: &dyn Fn(&str) -> Result<Value, TemplateError>) -> Result<Value, TemplateError> {
    Ok(match value {
        Value::String(text) => f(text)?,
        Value::Array(items) => Value::Array(items.iter().map(|item| map_strings(item, f)).collect::<Result<_, _>>()?),
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, member)| Ok((name.clone(), map_strings(member, f)?)))
                .collect::<Result<_, _>>()?,
        ),
        other => other.clone(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn vars() -> Vars {
        Vars::from([("n".to_owned(), Var::Number(8)), ("who".to_owned(), Var::Text("a&b".to_owned()))])
    }

    #[test]
    fn renders_names_and_keeps_other_text() {
        let template = Template::parse("x ${n} $5 {y} ${who}").unwrap();
        assert_eq!(template.render(&vars()).unwrap(), "x 8 $5 {y} a&b");
        assert_eq!(template.names().collect::<Vec<_>>(), ["n", "who"]);
        assert_eq!(template.to_string(), "x ${n} $5 {y} ${who}");
    }

    #[test]
    fn resolves_the_environment_once_and_never_reads_a_value_as_a_template() {
        let lookup = |name: &str| (name == "T").then(|| "${n}".to_owned());
        let template = Template::parse("Bearer ${env:T}").unwrap();
        assert!(template.has_env());
        let resolved = template.resolve_env(&lookup).unwrap();
        assert_eq!(resolved.render(&vars()).unwrap(), "Bearer ${n}");
        let missing = Template::parse("${env:U}").unwrap().resolve_env(&lookup);
        assert_eq!(missing, Err(TemplateError::NoEnv("U".to_owned())));
    }

    #[test]
    fn refuses_broken_placeholders() {
        assert!(matches!(Template::parse("${n"), Err(TemplateError::Unclosed(_))));
        for text in ["${}", "${a b}", "${env:}", "${a:b}"] {
            assert!(matches!(Template::parse(text), Err(TemplateError::BadName(_))), "{text}");
        }
        assert_eq!(Template::parse("${zz}").unwrap().render(&vars()), Err(TemplateError::Unknown("zz".to_owned())));
    }

    #[test]
    fn a_number_alone_stays_a_number_in_json() {
        let template = JsonTemplate::parse(json!({"a": "${n}", "b": ["x${n}"], "c": 1, "d": {"e": "${who}"}})).unwrap();
        assert_eq!(template.render(&vars()).unwrap(), json!({"a": 8, "b": ["x8"], "c": 1, "d": {"e": "a&b"}}));
        assert_eq!(template.names(), ["n", "n", "who"]);
    }
}
