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

    /// The names of the environment variables that are still to be resolved.
    pub fn env_names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| if let Part::Env(name) = part { Some(name.as_str()) } else { None })
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
///
/// It is kept as a tree whose leaves are parsed templates, so that an inserted value is never read as a template.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonTemplate(Node);

#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// Null, a boolean or a number.
    Fixed(Value),
    Text(Template),
    Array(Vec<Node>),
    /// The members in the order of the file.
    Object(Vec<(String, Node)>),
}

impl JsonTemplate {
    /// Takes a value, parsing every string in it.
    ///
    /// # Errors
    /// When a string is not a template.
    pub fn parse(value: Value) -> Result<Self, TemplateError> {
        Node::parse(value).map(Self)
    }

    /// Replaces every `${env:NAME}` with what `lookup` gives.
    ///
    /// # Errors
    /// When `lookup` does not know a name.
    pub fn resolve_env(self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, TemplateError> {
        self.0.map(&|template| template.resolve_env(lookup)).map(Self)
    }

    /// The names of the placeholders in it, in order, repeated ones included.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.0.each(&mut |template| names.extend(template.names().map(str::to_owned)));
        names
    }

    /// The names of the environment variables that are still to be resolved, in order, repeated ones included.
    pub fn env_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.0.each(&mut |template| names.extend(template.env_names().map(str::to_owned)));
        names
    }

    /// The value with every placeholder replaced. A string that is one placeholder of a number becomes a number.
    ///
    /// # Errors
    /// When a placeholder has no value.
    pub fn render(&self, vars: &Vars) -> Result<Value, TemplateError> {
        self.0.render(vars)
    }

    /// How many members the value has; 0 if it is no object.
    pub fn member_count(&self) -> usize {
        if let Node::Object(members) = &self.0 { members.len() } else { 0 }
    }

    /// The first member that is a whole number, and the number.
    pub fn first_whole_number(&self) -> Option<(&str, i64)> {
        let Node::Object(members) = &self.0 else { return None };
        members.iter().find_map(|(name, member)| match member {
            Node::Fixed(value) => Some((name.as_str(), value.as_i64()?)),
            Node::Text(_) | Node::Array(_) | Node::Object(_) => None,
        })
    }

    /// The value changed by a JSON merge patch (RFC 7396): members of the patch replace those of the value, and
    /// `null` removes them.
    pub fn merged(&self, patch: &Self) -> Self {
        Self(self.0.clone().merged(&patch.0))
    }
}

impl Node {
    fn parse(value: Value) -> Result<Self, TemplateError> {
        Ok(match value {
            Value::String(text) => Self::Text(Template::parse(&text)?),
            Value::Array(items) => Self::Array(items.into_iter().map(Self::parse).collect::<Result<_, _>>()?),
            Value::Object(members) => Self::Object(
                members.into_iter().map(|(name, member)| Ok((name, Self::parse(member)?))).collect::<Result<_, _>>()?,
            ),
            fixed @ (Value::Null | Value::Bool(_) | Value::Number(_)) => Self::Fixed(fixed),
        })
    }

    fn map(self, f: &dyn Fn(Template) -> Result<Template, TemplateError>) -> Result<Self, TemplateError> {
        Ok(match self {
            Self::Text(template) => Self::Text(f(template)?),
            Self::Array(items) => Self::Array(items.into_iter().map(|item| item.map(f)).collect::<Result<_, _>>()?),
            Self::Object(members) => Self::Object(
                members.into_iter().map(|(name, member)| Ok((name, member.map(f)?))).collect::<Result<_, _>>()?,
            ),
            fixed @ Self::Fixed(_) => fixed,
        })
    }

    fn each(&self, f: &mut dyn FnMut(&Template)) {
        match self {
            Self::Text(template) => f(template),
            Self::Array(items) => items.iter().for_each(|item| item.each(f)),
            Self::Object(members) => members.iter().for_each(|(_, member)| member.each(f)),
            Self::Fixed(_) => {}
        }
    }

    fn render(&self, vars: &Vars) -> Result<Value, TemplateError> {
        Ok(match self {
            Self::Fixed(value) => value.clone(),
            Self::Text(template) => match template.alone().and_then(|name| vars.get(name)) {
                Some(Var::Number(number)) => Value::Number(Number::from(*number)),
                _ => Value::String(template.render(vars)?),
            },
            Self::Array(items) => Value::Array(items.iter().map(|item| item.render(vars)).collect::<Result<_, _>>()?),
            Self::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(name, member)| Ok((name.clone(), member.render(vars)?)))
                    .collect::<Result<_, _>>()?,
            ),
        })
    }

    fn merged(self, patch: &Self) -> Self {
        let Self::Object(changes) = patch else { return patch.clone() };
        let mut members = if let Self::Object(members) = self { members } else { Vec::new() };
        for (name, change) in changes {
            let place = members.iter().position(|(member, _)| member == name);
            if matches!(change, Self::Fixed(Value::Null)) {
                members.retain(|(member, _)| member != name);
            } else if let Some(place) = place {
                let old = std::mem::replace(&mut members[place].1, Self::Fixed(Value::Null));
                members[place].1 = old.merged(change);
            } else {
                members.push((name.clone(), Self::Fixed(Value::Null).merged(change)));
            }
        }
        Self::Object(members)
    }
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

    #[test]
    fn an_environment_value_in_json_is_never_read_as_a_template() {
        let template = JsonTemplate::parse(json!({"a": "${env:T}", "b": ["${n}"]})).unwrap();
        assert_eq!(template.env_names(), ["T"]);
        let resolved = template.resolve_env(&|_| Some("${n} ${".to_owned())).unwrap();
        assert_eq!(resolved.names(), ["n"]);
        assert_eq!(resolved.render(&vars()).unwrap(), json!({"a": "${n} ${", "b": [8]}));
    }

    /// The examples of RFC 7396, appendix A.
    #[test]
    fn merges_as_the_examples_of_the_rfc() {
        for (original, patch, result) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!({"a": "foo"}), json!("bar"), json!("bar")),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            let merged =
                JsonTemplate::parse(original.clone()).unwrap().merged(&JsonTemplate::parse(patch.clone()).unwrap());
            assert_eq!(merged.render(&Vars::new()).unwrap(), result, "{original} with {patch}");
        }
    }

    #[test]
    fn a_merge_keeps_the_order_of_members() {
        let base = JsonTemplate::parse(json!({"z": 1, "a": "${n}", "m": 3})).unwrap();
        let merged = base.merged(&JsonTemplate::parse(json!({"a": "x", "b": 4})).unwrap());
        assert_eq!(merged.render(&vars()).unwrap().to_string(), r#"{"z":1,"a":"x","m":3,"b":4}"#);
    }
}
