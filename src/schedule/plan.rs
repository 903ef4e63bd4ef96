//! What a case comes to on one operation of one target.

use std::{fmt, sync::Arc};

use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    spec::RuleId,
    suite::{Credentials, Effects, Expectation, NetworkFault, Place, ServerFault, Window, Wire},
    target::Operation,
    text::{Span, Template, TemplateError, Var, Vars},
};

/// The name of a case that runs: suite, case, operation, and the value of `vary`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CaseId {
    /// The suite's name.
    pub suite: String,
    /// The case's name.
    pub case: String,
    /// The operation's name.
    pub operation: String,
    /// The name of `vary` and its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vary: Option<(String, u64)>,
}

impl fmt::Display for CaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} [{}", self.suite, self.case, self.operation)?;
        if let Some((name, value)) = &self.vary {
            write!(f, ", {name}={value}")?;
        }
        f.write_str("]")
    }
}

/// Everything that is to be done for one case, and how it is to be judged.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// Its name.
    pub id: CaseId,
    /// The title for people.
    pub title: String,
    /// The suite file.
    pub file: String,
    /// Where the case starts in it.
    pub place: Place,
    /// The tags of the case.
    pub tags: Vec<String>,
    /// The rules it tests; the first is the one that an expectation without a rule of its own breaks.
    pub rules: Vec<RuleId>,
    /// The operation that it is run on.
    pub operation: Arc<Operation>,
    /// What is done, in order.
    pub steps: Vec<Step>,
    /// What must hold for the case to say anything.
    pub given: Vec<Expectation>,
    /// Groups of attempts that must have been in flight together.
    pub overlap: Vec<Vec<String>>,
    /// What must come of it.
    pub expect: Vec<Expectation>,
    /// How many effects there must be at the end.
    pub effects: Vec<Effects>,
    /// Whether it must run alone, because it moves the target's clock or kills its workers.
    pub exclusive: bool,
    /// The time that its waits take at least.
    pub waits: Span,
}

/// One thing to do.
#[derive(Debug, Clone)]
pub enum Step {
    /// Send one attempt and wait for its end; with `until_settled`, again while it is refused as in flight.
    Send {
        /// The attempt.
        attempt: Box<AttemptPlan>,
        /// Whether it is sent again while it is refused as in flight.
        until_settled: bool,
    },
    /// Send one attempt and go on while it is under way. Goes on once its last byte has left.
    Start(Box<AttemptPlan>),
    /// Wait for the end of a started attempt.
    Join(String),
    /// Send all of these together: connections first, then one release.
    Burst {
        /// The name of the burst.
        name: String,
        /// Its attempts, called `NAME#1`, `NAME#2`, ...
        attempts: Vec<AttemptPlan>,
    },
    /// Let time pass.
    Time(TimeMove),
}

/// How time is made to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeMove {
    /// How much.
    pub span: Span,
    /// By the target's clock hook, or by waiting.
    pub by_hook: bool,
    /// The window whose end it passes, if it does.
    pub past: Option<Window>,
}

/// One attempt, all but the values that are minted when it is sent.
#[derive(Debug, Clone)]
pub struct AttemptPlan {
    /// Its name, unique within the case.
    pub name: String,
    /// Its key.
    pub key: PlannedKey,
    /// What its effects are counted under: the key's name, or its own name if it has no key of the case.
    pub intent: String,
    /// The payload's role.
    pub role: String,
    /// The payload; its strings may hold `${reference}`.
    pub payload: Option<crate::text::JsonTemplate>,
    /// How the payload is written.
    pub encoding: Encoding,
    /// Who sends it: a tenant's name.
    pub tenant: String,
    /// Which node it goes to.
    pub node: usize,
    /// Header fields added for the slow, fail and die hooks.
    pub hook_headers: Vec<(HeaderName, HeaderValue)>,
    /// What the network does to it.
    pub fault: Option<NetworkFault>,
    /// How slow the handler is made.
    pub slow: Option<Span>,
    /// How the handler is made to fail.
    pub server: Option<ServerFault>,
    /// How long it may take.
    pub timeout: Span,
    /// What makes it unlike others.
    pub extra: Extra,
}

/// What makes an attempt unlike others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extra {
    /// The characters of its key, if they are more than fresh ones.
    pub form: Option<Form>,
    /// The credentials that it carries.
    pub credentials: Credentials,
    /// How its bytes differ from what an HTTP library writes.
    pub wire: Option<Wire>,
}

/// The characters of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// Knows `${key}` and `${pad}`.
    pub chars: Template,
    /// How many characters there are in all.
    pub length: Option<usize>,
}

impl Form {
    /// The characters, with `key` in the place of `${key}`.
    ///
    /// # Errors
    /// When a placeholder has no value.
    pub fn render(&self, key: &str) -> Result<String, TemplateError> {
        let with = |pad: &str| {
            let vars = Vars::from([
                ("key".to_owned(), Var::Text(key.to_owned())),
                ("pad".to_owned(), Var::Text(pad.to_owned())),
            ]);
            self.chars.render(&vars)
        };
        let bare = with("")?;
        let missing = self.length.map_or(0, |length| length.saturating_sub(bare.chars().count()));
        if missing == 0 { Ok(bare) } else { with(&"x".repeat(missing)) }
    }
}

/// The key of a planned attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedKey {
    /// None.
    None,
    /// The fresh key of this name, written as the policy says.
    Symbol(String),
    /// Exactly this field value; knows `${key}`.
    Raw(Template),
}

/// How a payload is written as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// Without spaces, members in the order of the target file.
    Compact,
    /// Without spaces, members in reverse order at every level.
    Reordered,
    /// Members in order, with line breaks and spaces.
    Spaced,
    /// As compact, the first character of each text value as `\\uXXXX`.
    Escaped,
    /// The first half of the compact bytes: no JSON at all.
    Half,
}

impl Encoding {
    /// The payload as bytes.
    pub fn bytes(self, value: &Value) -> Vec<u8> {
        match self {
            Self::Compact => value.to_string().into_bytes(),
            Self::Reordered => reversed(value).to_string().into_bytes(),
            Self::Spaced => format!("{value:#}").into_bytes(),
            Self::Escaped => escaped(value).into_bytes(),
            Self::Half => {
                let mut bytes = value.to_string().into_bytes();
                bytes.truncate(bytes.len() / 2);
                bytes
            }
        }
    }
}

/// Compact JSON in which the first character of each text value is written as `\\uXXXX`.
fn escaped(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<_> = members
                .iter()
                .map(|(name, member)| format!("{}:{}", Value::from(name.as_str()), escaped(member)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(escaped).collect::<Vec<_>>().join(",")),
        Value::String(text) => match text.chars().next().filter(char::is_ascii_alphanumeric) {
            Some(first) => {
                let rest = Value::from(&text[1..]).to_string();
                format!("\"\\u{:04x}{}", u32::from(first), &rest[1..])
            }
            None => value.to_string(),
        },
        other => other.to_string(),
    }
}

fn reversed(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            Value::Object(members.iter().rev().map(|(name, member)| (name.clone(), reversed(member))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(reversed).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn encodings_differ_in_bytes_and_agree_in_value() {
        let value = json!({"b": 1, "a": {"y": [1, {"d": 1, "c": 2}], "x": "s"}});
        let encodings = [Encoding::Compact, Encoding::Reordered, Encoding::Spaced, Encoding::Escaped];
        let all: Vec<_> = encodings.map(|e| e.bytes(&value)).to_vec();
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), 4);
        assert!(serde_json::from_slice::<Value>(&Encoding::Half.bytes(&value)).is_err());
        assert!(String::from_utf8_lossy(&all[3]).contains(r#""x":"\u0073""#), "{}", String::from_utf8_lossy(&all[3]));
        for bytes in &all {
            // `Value` compares objects without regard to the order of members.
            assert_eq!(serde_json::from_slice::<Value>(bytes).unwrap(), value);
        }
        assert_eq!(String::from_utf8_lossy(&all[1]), r#"{"a":{"x":"s","y":[1,{"c":2,"d":1}]},"b":1}"#);
    }

    #[test]
    fn a_form_is_padded_to_its_length() {
        let form = |chars: &str, length| Form { chars: Template::parse(chars).unwrap(), length };
        assert_eq!(form("${key}A", None).render("k").unwrap(), "kA");
        assert_eq!(form("${key}${pad}-a", Some(6)).render("k").unwrap(), "kxxx-a");
        assert_eq!(form("${key}${pad}-a", Some(2)).render("k").unwrap(), "k-a");
    }

    #[test]
    fn a_case_id_reads_well() {
        let id = CaseId {
            suite: "drops".into(),
            case: "lost".into(),
            operation: "create".into(),
            vary: Some(("n".into(), 8)),
        };
        assert_eq!(id.to_string(), "drops/lost [create, n=8]");
    }
}
