//! What a person needs to know about each rule: what is sent and observed, why it matters, how it breaks and is mended.

mod answers;
mod contract;
mod effects;
mod keys;
mod lifetime;

use serde::Serialize;

use super::RuleId;

/// How bad a broken rule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Work is done twice, money moves twice, or data reaches the wrong party.
    Critical,
    /// An operation is blocked or lost.
    Blocking,
    /// The answer is wrong; the caller can recover.
    Wrong,
    /// Advice.
    Advice,
}

/// Everything about a rule that only people read.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Detail {
    /// The rule.
    pub rule: RuleId,
    /// How bad it is when it is broken.
    pub severity: Severity,
    /// The policy keys that it depends on.
    pub policy: &'static [&'static str],
    /// What is sent.
    pub sent: &'static str,
    /// What is observed.
    pub observed: &'static str,
    /// When it cannot be decided.
    pub inconclusive: &'static str,
    /// Why it matters.
    pub story: &'static str,
    /// How it usually breaks.
    pub breaks: &'static str,
    /// How to mend it.
    pub fix: &'static str,
}

/// All details, in no special order. A test holds them to one for each rule.
pub fn details() -> impl Iterator<Item = &'static Detail> {
    [effects::DETAILS, answers::DETAILS, keys::DETAILS, lifetime::DETAILS, contract::DETAILS].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::super::RULES;
    use super::*;

    #[test]
    fn every_rule_has_one_detail_and_every_text_is_sentences() {
        for rule in RULES {
            let count = details().filter(|detail| detail.rule.as_str() == rule.id).count();
            assert_eq!(count, 1, "details of {}", rule.id);
        }
        assert_eq!(details().count(), RULES.len());
        for detail in details() {
            let texts = [detail.sent, detail.observed, detail.inconclusive, detail.story, detail.breaks, detail.fix];
            for text in texts {
                assert!(text.ends_with('.') && text.len() > 15, "{}: {text}", detail.rule);
            }
        }
    }
}
