//! A part of a run: a CI system or Kubernetes spreads the parts over its machines.

use std::{fmt, str::FromStr};

use sha2::{Digest, Sha256};

use crate::{
    schedule::{CaseId, Planned},
    spec::id,
};

/// More parts than this are a mistake.
const MOST: u32 = 10_000;

/// One of several parts, which together are the whole: every case belongs to the part that the hash of its name says,
/// so that it stays there whatever else is added or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Which one, from 1.
    index: u32,
    /// Of how many.
    count: u32,
}

/// Why a text names no shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    /// It has another form.
    #[error("`{0}` is not a shard; write INDEX/COUNT, such as 2/5, or auto/5 to take the index from the CI system")]
    Form(String),
    /// The index is none of the count's.
    #[error(
        "there is no shard {index} of {count}; the first is 1 and the last {count}, and there may be 10000 at most"
    )]
    Range {
        /// The index.
        index: u32,
        /// The count.
        count: u32,
    },
    /// No variable tells the index.
    #[error(
        "`auto` finds no index: set JOB_COMPLETION_INDEX (Kubernetes, from 0), CI_NODE_INDEX (GitLab, from 1), \
         CIRCLE_NODE_INDEX (from 0), BUILDKITE_PARALLEL_JOB (from 0), or write the index"
    )]
    NoIndex,
    /// No variable tells the count.
    #[error(
        "`auto` finds no count: set CI_NODE_TOTAL (GitLab), CIRCLE_NODE_TOTAL or BUILDKITE_PARALLEL_JOB_COUNT, or write auto/COUNT"
    )]
    NoCount,
    /// A variable holds something else.
    #[error("{name} is `{value}`, which is no number of a shard")]
    Variable {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
    },
}

/// The variables of CI systems: index, what the first one is called, and count.
const VARIABLES: [(&str, u32, Option<&str>); 4] = [
    ("JOB_COMPLETION_INDEX", 0, None),
    ("CI_NODE_INDEX", 1, Some("CI_NODE_TOTAL")),
    ("CIRCLE_NODE_INDEX", 0, Some("CIRCLE_NODE_TOTAL")),
    ("BUILDKITE_PARALLEL_JOB", 0, Some("BUILDKITE_PARALLEL_JOB_COUNT")),
];

impl Shard {
    /// Reads `2/5`, `auto/5` or `auto`; `env` gives the value of a variable.
    ///
    /// # Errors
    /// When the text, or a variable that it refers to, names no shard.
    pub fn parse(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, ShardError> {
        let form = || ShardError::Form(text.to_owned());
        let (index, count) = match text.split_once('/') {
            Some((index, count)) => (index, Some(count.parse().map_err(|_| form())?)),
            None => (text, None),
        };
        if index != "auto" {
            let index = index.parse().map_err(|_| form())?;
            return Self::new(index, count.ok_or_else(form)?);
        }
        let number = |name: &'static str| match env(name) {
            None => Ok(None),
            Some(value) => match value.trim().parse::<u32>() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(ShardError::Variable { name, value }),
            },
        };
        for (name, first, total) in VARIABLES {
            let Some(index) = number(name)? else { continue };
            let count = match (count, total) {
                (Some(count), _) => count,
                (None, Some(total)) => number(total)?.ok_or(ShardError::NoCount)?,
                (None, None) => return Err(ShardError::NoCount),
            };
            return Self::new(index.saturating_add(1 - first), count);
        }
        Err(ShardError::NoIndex)
    }

    fn new(index: u32, count: u32) -> Result<Self, ShardError> {
        if (1..=count).contains(&index) && count <= MOST {
            Ok(Self { index, count })
        } else {
            Err(ShardError::Range { index, count })
        }
    }

    /// Whether a case belongs to this part. The cases that find out whether keys have an effect at all belong to
    /// every part, because the others depend on what they find; [`merge`](crate::report::merge) counts them once.
    pub fn has(&self, planned: &Planned) -> bool {
        let (id, rules) = match planned {
            Planned::Run(schedule) => (&schedule.id, &schedule.rules),
            Planned::Skip(skipped) => (&skipped.id, &skipped.rules),
        };
        rules.contains(&id::KEY_HAS_AN_EFFECT) || self.is_of(id)
    }

    fn is_of(&self, id: &CaseId) -> bool {
        let hash = Sha256::digest(id.to_string().as_bytes());
        let number = hash.iter().take(8).fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        number % u64::from(self.count) == u64::from(self.index - 1)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text, &|name| std::env::var(name).ok())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn id(number: u32) -> CaseId {
        CaseId { suite: "s".into(), case: format!("case-{number}"), operation: "create".into(), vary: None }
    }

    #[test]
    fn every_case_is_in_one_shard() {
        for count in [1, 2, 3, 7, 40] {
            let shards: Vec<_> = (1..=count).map(|index| Shard::new(index, count).unwrap()).collect();
            for number in 0..500 {
                assert_eq!(shards.iter().filter(|shard| shard.is_of(&id(number))).count(), 1);
            }
            let sizes = shards.iter().map(|shard| (0..500).filter(|number| shard.is_of(&id(*number))).count());
            assert!(sizes.min().unwrap() > 500 / (count as usize) / 4);
        }
    }

    #[test]
    fn a_case_stays_where_it_is() {
        // Written down once: a change of the hash would move cases between the shards of a running pipeline.
        let of: Vec<_> =
            (0..8).map(|number| (1..=5).find(|i| Shard::new(*i, 5).unwrap().is_of(&id(number))).unwrap()).collect();
        assert_eq!(of, [2, 1, 5, 3, 5, 1, 2, 4]);
    }

    #[test]
    fn the_index_comes_from_the_ci_system() {
        let parse = |text: &str, variables: &[(&str, &str)]| {
            let env = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
            Shard::parse(text, &env).map(|shard| shard.to_string()).map_err(|error| error.to_string())
        };
        assert_eq!(parse("2/5", &[]).unwrap(), "2/5");
        assert_eq!(parse("auto/5", &[("JOB_COMPLETION_INDEX", "0")]).unwrap(), "1/5");
        assert_eq!(parse("auto/5", &[("JOB_COMPLETION_INDEX", "4")]).unwrap(), "5/5");
        assert_eq!(parse("auto", &[("CI_NODE_INDEX", "3"), ("CI_NODE_TOTAL", "4")]).unwrap(), "3/4");
        assert_eq!(parse("auto", &[("CIRCLE_NODE_INDEX", "3"), ("CIRCLE_NODE_TOTAL", "4")]).unwrap(), "4/4");
        for (text, variables, said) in [
            ("0/5", &[][..], "no shard 0 of 5"),
            ("6/5", &[], "no shard 6 of 5"),
            ("1/0", &[], "no shard 1 of 0"),
            ("2", &[], "INDEX/COUNT"),
            ("a/b", &[], "INDEX/COUNT"),
            ("-1/5", &[], "INDEX/COUNT"),
            ("1/99999999999", &[], "INDEX/COUNT"),
            ("auto/5", &[], "JOB_COMPLETION_INDEX"),
            ("auto", &[("JOB_COMPLETION_INDEX", "0")], "no count"),
            ("auto/5", &[("JOB_COMPLETION_INDEX", "5")], "no shard 6 of 5"),
            ("auto/5", &[("JOB_COMPLETION_INDEX", "x")], "is `x`"),
            ("auto/5", &[("CI_NODE_INDEX", "0")], "no shard 0"),
        ] {
            let error = parse(text, variables).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
