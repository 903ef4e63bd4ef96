//! `idemproof explain RULE`: what a rule means to somebody who develops an API.

use super::{Exit, args::ExplainArgs, terminal};
use crate::{
    spec::{DRAFT, Keyword, RuleId},
    suite::builtin_suites,
};

pub(super) fn explain(args: &ExplainArgs) -> Exit {
    terminal::say(&text(args.rule))
}

/// The explanation as text.
fn text(id: RuleId) -> String {
    let rule = id.rule();
    let keyword = match rule.keyword {
        Keyword::None => String::new(),
        keyword => format!(", {keyword}"),
    };
    let mut lines = vec![rule.id.to_owned(), String::new(), format!("  {}", rule.statement), String::new()];
    let mut line = |name: &str, value: &str| lines.push(format!("  {name:14}{value}"));
    line("score", &format!("{}{keyword}", rule.score));
    line("source", rule.source);
    line("draft", DRAFT);
    line("catalogue", &rule.catalogue.join(", "));
    if let Some(detail) = id.detail() {
        line("severity", &format!("{:?}", detail.severity).to_lowercase());
        line("policy", if detail.policy.is_empty() { "none" } else { "" });
        for key in detail.policy {
            line("", key);
        }
        line("sent", detail.sent);
        line("observed", detail.observed);
        line("inconclusive", detail.inconclusive);
        line("why", detail.story);
        line("how it breaks", detail.breaks);
        line("how to fix it", detail.fix);
    }
    // The built-in suites are right: a test reads them all.
    let suites = builtin_suites().unwrap_or_default();
    let cases = suites.iter().flat_map(|suite| suite.cases.iter().map(move |case| (suite, case)));
    for (index, (suite, case)) in cases.filter(|(_, case)| case.rules.contains(&id)).enumerate() {
        line(if index == 0 { "tested by" } else { "" }, &format!("{}/{}", suite.name, case.name));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::spec::{RULES, id};

    #[test]
    fn an_explanation_tells_the_story_and_names_cases() {
        let text = text(id::AT_MOST_ONE_EFFECT);
        for part in ["charged twice", "unique constraint", "concurrency/overlapping-duplicates", "IK-CONC-2"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn every_rule_is_tested_by_a_case() {
        let suites = builtin_suites().unwrap();
        let tested = |id: RuleId| suites.iter().flat_map(|suite| &suite.cases).any(|case| case.rules.contains(&id));
        let bare: Vec<_> = RULES.iter().filter(|rule| !tested(rule.id.parse().unwrap())).map(|rule| rule.id).collect();
        assert_eq!(bare, Vec::<&str>::new(), "no case tests these rules");
    }
}
