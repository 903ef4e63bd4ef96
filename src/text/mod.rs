//! Reading what people write, and keeping secrets out of what people read.
//!
//! Every YAML file enters through one function, every duration and every `${...}` has one parser, and every
//! text that leaves the program goes through one [`Redactor`].

mod check;
mod diagnostic;
mod duration;
mod explain;
mod mask;
mod redact;
mod shapes;
mod snippet;
mod suggest;
mod template;
mod yaml;

pub use check::Check;
pub use diagnostic::{At, Diagnostic, Problems};
pub use duration::{DurationError, Span};
pub use mask::is_secret_name;
pub use redact::Redactor;
pub use shapes::{Entries, OneOrMore};
pub use suggest::{closest, most_alike, one_of, suggestion};
pub use template::{JsonTemplate, Template, TemplateError, Var, Vars};
pub use yaml::{Source, Spanned, from_yaml};
