//! YAML suites: what to send, in words that hold for every target.

mod builtin;
mod conditions;
mod expect;
mod extras;
mod file;
mod load;
mod model;
mod steps;

pub use builtin::{builtin_files, builtin_suites};
pub use model::{
    Burst, Case, Condition, Copies, Credentials, Effects, Expectation, KeyChoice, KeyForm, KeyLength, Need,
    NetworkFault, Pass, Place, Request, ServerFault, ServerFaultPoint, Slow, Step, Suite, Want, Window, Wire, WireBody,
    Word,
};
