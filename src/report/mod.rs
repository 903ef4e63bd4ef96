//! What people and CI systems read. Every reporter is fed by the same stream of events and, in the end, by the
//! same list of results.
//!
//! [`Reports`] takes the events, masks every secret in them once, and hands them to the reporters; no reporter
//! sees a text that was not masked.

mod accepted;
mod event;
mod file;
#[cfg(test)]
mod fixture;
mod github;
mod html;
mod json;
mod junit;
mod markdown;
mod mask;
mod merge;
mod sink;
mod terminal;
#[cfg(test)]
mod tests;
mod time;

pub use accepted::{Accepted, Baseline, BaselineError};
pub use event::{Event, RunInfo, ScoreLine, Summary};
pub use file::{FileError, ReportFile};
pub use json::{Document, RuleReport, VERSION};
pub use junit::Junit;
pub use merge::{MergeError, merge};
pub use sink::{Options, ReportError, Reports};
pub use terminal::{Origin, Style, Terminal, Verbosity, render_case};
