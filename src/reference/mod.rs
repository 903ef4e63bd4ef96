//! The reference server: idempotency keys done right, and wrong on demand.
//!
//! A small payments API whose every `POST` takes an `Idempotency-Key`. It is what the suites are proved on, what
//! a newcomer sees first, and a model to read. Start reading at [`core`]: the state machine of one key, with the
//! argument why it is right. The rest of the room only carries it to the outside:
//!
//! | part | job |
//! |---|---|
//! | [`core`] | the protocol without IO: claim, takeover, complete, release, expire |
//! | `key`, `fingerprint` | what a request says: its key, and what it asks for |
//! | [`store`] | where records and payments live: memory or SQLite, one trait |
//! | `policy` | which results of a handler are kept for replay |
//! | `payments` | the business: validation, the effect, the test headers |
//! | `keyed` | one keyed request from claim to answer |
//! | `http` | routes, tenants, problem documents |
//! | `server`, `clock` | start and stop; time that a test may move forward |
//! | `fault` | the switchable faults |
//!
//! # What is promised
//!
//! Within one scope (tenant, method and route) a key names one intent. The result of its one execution is kept for
//! the retention, which counts from the completion of that execution, and answers every repeat. A claim lasts for
//! the lease, which is not renewed; an owner that runs past it may be overtaken and can then no longer commit.
//! A failure under the `draft` policy leaves nothing behind and frees the key; under `stored failures` it is kept
//! like any other result. Validation failures never use up a key.
//!
//! # Limits
//!
//! Bodies are capped at 1 MiB, requests in flight and connections at 1024 each. Expired records are swept.
//! Payments are the business data itself: nothing removes them, so the memory store grows with every payment made.
//! The offset of the virtual clock lives as long as the server and is not kept in the store.

mod clock;
pub mod core;
mod fault;
mod fingerprint;
mod http;
mod key;
mod keyed;
mod payments;
mod policy;
mod server;
pub mod store;

pub use fault::{Fault, FaultClass, FaultSet, UnknownFault};
pub use policy::Policy;
pub use server::{Config, Server, StartError, start};
pub use store::{StoreChoice, UnknownStore};

#[cfg(test)]
mod tests;
