//! Reading what people write, and keeping secrets out of what people read.
//!
//! Every YAML file enters through one function, every duration and every `${...}` has one parser, and every
//! text that leaves the program goes through one [`Redactor`].

mod duration;
mod redact;
mod template;

pub use duration::{DurationError, Span};
pub use redact::Redactor;
pub use template::{JsonTemplate, Template, TemplateError, Var, Vars};
