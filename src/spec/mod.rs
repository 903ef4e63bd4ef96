//! The rules, as data: what each one says, which score it belongs to, and where it comes from.

mod catalogue;
mod detail;
mod rows;
mod rule;

pub use catalogue::{RULES, id};
pub use detail::{Detail, Severity, details};
pub use rows::{DRAFT, Lack, UNCOVERED, Uncovered};
pub use rule::{Keyword, Rule, RuleId, Score, UnknownRule};
