//! What a rule is.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::catalogue::RULES;

/// The three scores that are never mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Score {
    /// Follows from the correctness argument of idempotency keys. Broken is failed, whatever draft or API say.
    Invariants,
    /// What draft-ietf-httpapi-idempotency-key-header and the RFCs under it say.
    Draft,
    /// What this API documents about itself.
    Contract,
}

impl fmt::Display for Keyword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
            Self::May => "MAY",
            Self::None => "none",
        })
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invariants => "invariants",
            Self::Draft => "draft",
            Self::Contract => "contract",
        })
    }
}

/// The requirement word of the source of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Keyword {
    /// Required.
    Must,
    /// Recommended.
    Should,
    /// Optional.
    May,
    /// The source argues it and uses no requirement word.
    None,
}

/// One testable statement.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// Readable, kebab-case and unique.
    pub id: &'static str,
    /// The score that it counts for.
    pub score: Score,
    /// The requirement word of its source.
    pub keyword: Keyword,
    /// One plain sentence.
    pub statement: &'static str,
    /// The section of the draft or RFC, or the argument, that it follows from.
    pub source: &'static str,
    /// The rows of the requirement catalogue that it covers.
    pub catalogue: &'static [&'static str],
}

/// A rule that exists: parsing one fails on an unknown name.
///
/// Our own code names rules by the constants of [`crate::spec::id`], so that a misspelt one does not compile.
#[derive(Clone, Copy)]
pub struct RuleId(&'static Rule);

/// A name that no rule has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no rule `{0}`")]
pub struct UnknownRule(pub String);

impl RuleId {
    /// The id as text.
    pub const fn as_str(self) -> &'static str {
        self.0.id
    }

    pub(super) const fn new(rule: &'static Rule) -> Self {
        Self(rule)
    }

    /// What people need to know about it; every rule has it, as a test shows.
    pub fn detail(self) -> Option<&'static super::Detail> {
        super::details().find(|detail| detail.rule == self)
    }

    /// The rule itself.
    pub fn rule(self) -> &'static Rule {
        self.0
    }
}

impl PartialEq for RuleId {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for RuleId {}

impl PartialOrd for RuleId {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RuleId {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl std::hash::Hash for RuleId {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl FromStr for RuleId {
    type Err = UnknownRule;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        RULES.iter().find(|rule| rule.id == text).map(Self).ok_or_else(|| UnknownRule(text.to_owned()))
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for RuleId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for RuleId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
