//! The rules, as data: what each one says, which score it belongs to, and where it comes from.

mod catalogue;
mod rule;

pub use catalogue::{RULES, id};
pub use rule::{Keyword, Rule, RuleId, Score, UnknownRule};
