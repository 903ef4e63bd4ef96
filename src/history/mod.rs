//! The record of what happened in one performance of one case, on one monotonic clock, and its JSON Lines form.

mod codec;
mod record;

pub use codec::{Header, LONGEST_LINE, ReadError, Reader, VERSION, Writer, read};
pub use record::{
    Attempt, Body, Control, Count, Cut, End, FaultRecord, History, Micros, NOBODY, ParsedField, Probe, ProbeResult,
    Response, Timing, Witness,
};
