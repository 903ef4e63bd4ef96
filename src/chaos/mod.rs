//! Network faults: the vocabulary, a client of the Toxiproxy API, and an embedded server of the same API.
//!
//! A fault is a [`Toxic`] put on one [`Stream`] of a proxy. The [`Client`] speaks the HTTP API of Toxiproxy and
//! checks every answer, because a fault that was silently not set would turn into a false verdict. [`Embedded`]
//! is a server of that API inside this process, so that nothing needs installing; the client reaches it over
//! HTTP like any other Toxiproxy, and there is no second way in.
//!
//! The rule for users of a proxy: prime the connection, arm (the answer of [`Proxy::add`] is the barrier: no later
//! byte escapes the toxic), then send.

mod client;
mod embedded;
pub mod fault;
mod toxic;
mod trigger;

pub use client::{
    Builder, ChaosError, Check, Client, Connection, Dial, Flow, Guard, Proxy, Replay, SelfTest, SocketEnd, ToxicHandle,
    TriggerHandle, Until, Version,
};
pub use embedded::{Embedded, Settings, StartError};
pub use toxic::{BadToxic, Slices, Stream, Toxic};
pub use trigger::{ClientSide, Deed, Ending, Point, ServerSide, Trigger};
