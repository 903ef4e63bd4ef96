//! Reading the pieces that many parts of a target file are made of.

use http::{HeaderName, HeaderValue, Method};
use serde_json::Value;
use serde_json_path::JsonPath;

use super::{
    HeaderTemplate, Lookup, StatusSet,
    file::{Statuses, Text},
};
use crate::text::{
    At, Check, Diagnostic, Entries, JsonTemplate, Redactor, Spanned, Template, TemplateError, closest, is_secret_name,
    one_of,
};

/// Values that a request is made with: a fresh unique text, the key's characters, the name of the run.
pub(super) const REQUEST_VARS: &[&str] = &["reference", "key", "run"];

/// Header fields that the HTTP client writes, because they say where a request ends and where it goes.
const RESERVED: [&str; 7] =
    ["host", "content-length", "transfer-encoding", "connection", "te", "upgrade", "proxy-authorization"];

/// Reads pieces of a target file and collects what is wrong with them.
pub(super) struct Reader<'a, 'b> {
    pub(super) check: &'a mut Check<'b>,
    pub(super) env: Lookup<'a>,
    pub(super) redactor: &'a Redactor,
}

impl Reader<'_, '_> {
    /// A text with placeholders; those of the environment are replaced, and their values are secrets from now on.
    pub(super) fn template(&mut self, text: &Text, vars: &[&str]) -> Option<Template> {
        let template = match Template::parse(&text.value) {
            Ok(template) => template,
            Err(error) => {
                self.template_error(&error, text.at);
                return None;
            }
        };
        let names: Vec<_> = template.names().map(str::to_owned).collect();
        let env: Vec<_> = template.env_names().map(str::to_owned).collect();
        self.placeholders(&names, &env, text.at, vars)?;
        template.resolve_env(&|name| (self.env)(name)).ok()
    }

    /// A JSON value with placeholders.
    pub(super) fn json(&mut self, value: &Spanned<Value>, vars: &[&str]) -> Option<JsonTemplate> {
        let mut good = true;
        for text in strings(&value.value) {
            match Template::parse(text) {
                Ok(template) => {
                    let names: Vec<_> = template.names().map(str::to_owned).collect();
                    let env: Vec<_> = template.env_names().map(str::to_owned).collect();
                    good &= self.placeholders(&names, &env, value.at, vars).is_some();
                }
                Err(error) => {
                    self.template_error(&error, value.at);
                    good = false;
                }
            }
        }
        let template = JsonTemplate::parse(value.value.clone()).ok()?.resolve_env(&|name| (self.env)(name)).ok();
        template.filter(|_| good)
    }

    fn template_error(&mut self, error: &TemplateError, at: At) {
        let near = match error {
            TemplateError::BadName(name) => self.check.source().find(at, &format!("${{{name}}}")),
            _ => self.check.source().find(at, "${"),
        };
        self.check.error(error.to_string(), near, "here", "placeholders look like ${reference} and ${env:NAME}");
    }

    /// Whether every placeholder has a value.
    fn placeholders(&mut self, names: &[String], env: &[String], at: At, vars: &[&str]) -> Option<()> {
        let mut good = true;
        for name in names.iter().filter(|name| !vars.contains(&name.as_str())) {
            good = false;
            if self.check.full() {
                break;
            }
            let near = self.check.source().find(at, &format!("${{{name}}}"));
            let known: Vec<_> = vars.iter().map(|var| format!("${{{var}}}")).collect();
            let known: Vec<_> = known.iter().map(String::as_str).collect();
            let help = if (self.env)(name).is_some() {
                format!("for the environment variable write ${{env:{name}}}")
            } else if let Some(near) = closest(name, vars.iter().copied()) {
                format!("did you mean `${{{near}}}`?")
            } else if known.is_empty() {
                "only ${env:NAME} has a value here".to_owned()
            } else {
                format!("{}, or ${{env:NAME}}", one_of(&known))
            };
            self.check.error(format!("nothing gives `${{{name}}}` a value here"), near, "unknown placeholder", help);
        }
        for name in env {
            match (self.env)(name) {
                Some(value) => self.redactor.add(&value),
                None => {
                    good = false;
                    let near = self.check.source().find(at, &format!("${{env:{name}}}"));
                    self.env_missing(name, near);
                }
            }
        }
        good.then_some(())
    }

    /// Notes an environment variable that is not set.
    pub(super) fn env_missing(&mut self, name: &str, at: At) {
        let title = format!("the environment variable `{name}` is not set");
        self.check.error(title, at, "has no value", format!("set it before the run: `export {name}=...`"));
    }

    /// Header fields in the order of the file.
    pub(super) fn headers(&mut self, entries: &Entries<Text>, vars: &[&str]) -> Vec<HeaderTemplate> {
        let mut seen: Vec<(HeaderName, At)> = Vec::new();
        let mut headers = Vec::new();
        for (name_text, value_text) in &entries.0 {
            let name = self.header_name(name_text);
            let value = self.header_value(name_text, value_text, vars);
            let Some(name) = name else { continue };
            if let Some((_, first)) = seen.iter().find(|(other, _)| *other == name) {
                self.check.push(
                    Diagnostic::new(format!("the header field `{}` stands here twice", name_text.value))
                        .at(name_text.at, "again; upper and lower case are the same")
                        .at(*first, "first here")
                        .help("remove one of them"),
                );
            }
            if RESERVED.contains(&name.as_str()) {
                let title = format!("the header field `{}` cannot be set", name_text.value);
                self.check.error(title, name_text.at, "written by the HTTP client", "remove it");
            }
            seen.push((name.clone(), name_text.at));
            headers.extend(value.map(|value| HeaderTemplate { name, value }));
        }
        headers
    }

    /// A header field name.
    pub(super) fn header_name(&mut self, text: &Text) -> Option<HeaderName> {
        let name = HeaderName::from_bytes(text.value.as_bytes()).ok();
        if name.is_none() {
            let title = format!("`{}` is not a header field name", text.value);
            self.check.error(title, text.at, "here", "write letters, digits and hyphens, such as `X-Request-Id`");
        }
        name
    }

    fn header_value(&mut self, name: &Text, text: &Text, vars: &[&str]) -> Option<Template> {
        let template = self.template(text, vars)?;
        if is_secret_name(&name.value) {
            self.secret(&text.value);
        }
        let sample = vars.iter().map(|var| ((*var).to_owned(), crate::text::Var::Number(0))).collect();
        let sent = template.render(&sample).ok()?;
        if HeaderValue::from_str(&sent).is_err() || sent.trim() != sent {
            let help = if text.value.contains("${env:") {
                "the environment variable has a line break, a control character, or spaces around its value"
            } else {
                "write visible ASCII characters and single spaces on one line"
            };
            let title = format!("no header field can carry this value of `{}`", name.value);
            self.check.error(title, text.at, "here", help);
            return None;
        }
        Some(template)
    }

    /// Keeps a literal value out of every output: the whole, and what follows a scheme such as `Bearer`.
    fn secret(&self, value: &str) {
        if !value.contains("${") {
            self.redactor.add(value);
            if let Some((_, credentials)) = value.split_once(' ') {
                self.redactor.add(credentials.trim());
            }
        }
    }

    /// A method and a path, such as `POST /payments`.
    pub(super) fn request(&mut self, text: &Text, methods: &[Method], vars: &[&str]) -> Option<(Method, Template)> {
        let written: Vec<_> = methods.iter().map(Method::as_str).collect();
        let Some((method_text, path_text)) = text.value.trim().split_once(' ') else {
            let title = format!("`{}` is not a method and a path", text.value);
            self.check.error(title, text.at, "here", "write both, such as `POST /payments`");
            return None;
        };
        let method = methods.iter().find(|method| method.as_str() == method_text).cloned();
        if method.is_none() {
            let near = self.check.source().find(text.at, method_text);
            let title = format!("the method `{method_text}` cannot be used here");
            self.check.error(title, near, "here", one_of(&written));
        }
        let path_text = path_text.trim();
        let path = Text { value: path_text.to_owned(), at: self.check.source().find(text.at, path_text) };
        let path = self.path(&path, vars);
        Some((method?, path?))
    }

    /// A path and query.
    pub(super) fn path(&mut self, text: &Text, vars: &[&str]) -> Option<Template> {
        let template = self.template(text, vars)?;
        let bad = |c: char| c.is_control() || c.is_whitespace() || matches!(c, '#' | '"' | '<' | '>' | '\\');
        let sample = vars.iter().map(|var| ((*var).to_owned(), crate::text::Var::Number(0))).collect();
        let sent = template.render(&sample).ok()?;
        let (title, help) = if text.value.contains("://") && !text.value.starts_with('/') {
            ("a path is needed, not a whole URL", "write what follows the host, and the rest in `base_url`")
        } else if !sent.starts_with('/') {
            ("a path starts with `/`", "it is appended to `base_url`")
        } else if sent.chars().any(bad) || !sent.is_ascii() {
            ("the path has characters that a URL cannot have", "percent-encode them, such as %20 for a space")
        } else {
            return Some(template);
        };
        self.check.error(title, text.at, "here", help);
        None
    }

    /// A set of statuses.
    pub(super) fn statuses(&mut self, statuses: &Statuses) -> Option<StatusSet> {
        let items = statuses.items();
        if items.is_empty() {
            self.check.error("no status is given", statuses.at, "an empty list", "write one, such as 409 or 2xx");
            return None;
        }
        let mut sets = Vec::new();
        for item in &items {
            match item.value.parse::<StatusSet>() {
                Ok(set) => sets.push(set),
                Err(_) => self.check.error(
                    format!("`{}` is not a status", item.value),
                    item.at,
                    "here",
                    "write a code from 200 to 599, such as 409, or a class, such as 2xx",
                ),
            }
        }
        (sets.len() == items.len()).then(|| StatusSet::union(sets))
    }

    /// A JSONPath query.
    pub(super) fn json_path(&mut self, text: &Text) -> Option<JsonPath> {
        let path = JsonPath::parse(&text.value).ok();
        if path.is_none() {
            let title = format!("`{}` is not a JSONPath query", text.value);
            self.check.error(title, text.at, "here", "write a query such as `$.id` or `$.items[*].id` (RFC 9535)");
        }
        path
    }

    /// A whole number of at least 1.
    pub(super) fn number(&mut self, text: &Text, most: u32) -> Option<u32> {
        let number = text.value.parse().ok().filter(|number| (1..=most).contains(number));
        if number.is_none() {
            let title = format!("`{}` is not a number that can stand here", text.value);
            self.check.error(title, text.at, "here", format!("write a whole number from 1 to {most}"));
        }
        number
    }
}

/// Every string in a value.
fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(members) => members.values().flat_map(strings).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
