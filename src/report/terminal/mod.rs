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

pub(crate) use case::{commands, deciding, main_finding};
pub(in crate::report) use lane::{Lane, Mark, Source, identity_of_success, lanes};
pub(crate) use lanes::timeline_text;
pub(crate) use scale::long_from;
pub(crate) use text::{clean, fit, millis, push_escaped};
