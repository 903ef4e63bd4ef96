//! `idemproof rules`: every rule, and every row of the catalogue that is none.

use serde_json::json;

use super::{Exit, args::RulesArgs, terminal};
use crate::spec::{DRAFT, RULES, RuleId, UNCOVERED};

pub(super) fn rules(args: &RulesArgs) -> Exit {
    terminal::say(&if args.json { as_json() } else { as_text() })
}

fn as_json() -> String {
    let rules: Vec<_> = RULES
        .iter()
        .map(|rule| json!({ "rule": rule, "detail": rule.id.parse::<RuleId>().ok().and_then(RuleId::detail) }))
        .collect();
    format!("{:#}\n", json!({ "draft": DRAFT, "rules": rules, "uncovered": UNCOVERED }))
}

fn as_text() -> String {
    let mut text =
        format!("Rules by {DRAFT} and the correctness argument behind it; `idemproof explain RULE` tells more.\n");
    let mut score = None;
    for rule in RULES {
        if score != Some(rule.score) {
            score = Some(rule.score);
            text += &format!("\n{}\n", rule.score);
        }
        text += &format!("  {}\n      {}  [{}]\n", rule.id, rule.statement, rule.catalogue.join(", "));
    }
    text += "\nrows of the catalogue without a rule\n";
    for uncovered in UNCOVERED {
        text += &format!("  {}\n      {}\n", uncovered.row, uncovered.why);
    }
    text
}
