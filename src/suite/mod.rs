//! YAML suites: what to send, in words that hold for every target.

mod model;

pub use model::{
    Burst, Case, Condition, Copies, Effects, Expectation, KeyChoice, Need, NetworkFault, Pass, Place, Request,
    ServerFault, ServerFaultPoint, Slow, Step, Suite, Want, Window, Word,
};
