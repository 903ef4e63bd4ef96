//! What a person reads in a terminal or a CI log: one line or block per case, progress, and the summary.

mod answers;
mod case;
mod curl;
mod lane;
mod lanes;
mod progress;
mod scale;
mod style;
mod summary;
mod text;

pub use case::{Origin, render_case};
pub use progress::{Terminal, Verbosity};
pub use style::Style;

pub(crate) use case::main_finding;
pub(crate) use lanes::timeline_text;
pub(crate) use text::push_escaped;
