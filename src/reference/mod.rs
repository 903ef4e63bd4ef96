//! The reference server: idempotency keys done right, and wrong on demand.
//!
//! A small payments API most of whose operations take an `Idempotency-Key`. It is what the suites are proved on, what
//! a newcomer sees first, and a model to read. Start reading at [`core`]: the state machine of one key, with the
//! argument why it is right. The rest of the room only carries it to the outside:
//!
//! | part | job |
//! |---|---|
//! | [`core`] | the protocol without IO: claim, renew, advance, complete, release, expire |
//! | `key`, `fingerprint` | what a request says: its key, and what it asks for |
//! | [`store`] | where records and rows live: memory, SQLite or PostgreSQL, one trait |
//! | `policy` | which results of a handler are kept for replay |
//! | `contract` | every choice that the draft leaves open, as switches; the documented contracts of providers |
//! | `keyed`, `keyless` | one request from claim to answer; one request without a key |
//! | `leases` | renewing the leases of owners that are alive |
//! | `operations` | the business: one table of operations, and what each does |
//! | `work`, `handler` | the unit of work of an execution and its phases; one run of a handler |
//! | `provider`, `outbox` | the outside: a payment network that is called, messages that are sent |
//! | `controls` | the test headers: slow, hung, failing at a named moment |
//! | `http` | routes, tenants, problem documents |
//! | `server`, `app`, `clock` | start and stop; what requests share; time that a test may move forward |
//! | `fault` | the switchable faults |
//!
//! Two operations are worth reading as models. `operations::payments` makes a payment in one transaction, which is all
//! that most APIs need. `operations::charges` calls an outside system between two commits, with recovery points, a
//! derived key and an outbox. They are two operations and not one, because the first is easier to read and several
//! times faster without what only the second needs.
//!
//! # What is promised
//!
//! Within one scope (tenant, method and route) a key names one intent. The result of its one execution is kept for
//! the retention, which counts from the completion of that execution, and answers every repeat. A claim lasts for
//! the lease, which is renewed for as long as its owner lives; an owner that hangs may be overtaken and can then no
//! longer commit. A failure under the `draft` policy leaves nothing behind and frees the key (or, once a phase has
//! committed, lets the next request go on from there); under `stored failures` it is kept like any other result.
//! Validation failures never use up a key.
//!
//! # Limits
//!
//! Bodies are capped at 1 MiB, requests in flight and connections at 1024 each. Expired records are swept.
//! Rows are the business data itself: nothing removes them, so the memory store grows with every payment made.
//! The offset of the virtual clock lives as long as the server and is not kept in the store.

mod app;
mod clock;
pub mod contract;
mod controls;
pub mod core;
mod fault;
mod fingerprint;
mod handler;
mod http;
mod key;
mod keyed;
mod keyless;
mod leases;
mod operations;
mod outbox;
mod policy;
mod provider;
mod server;
pub mod store;
mod work;

pub use fault::{Fault, FaultClass, FaultSet, Harm, Need, UnknownFault};
pub use policy::Policy;
pub use server::{Config, MOST_NODES, Server, StartError, start};
pub use store::{OpenError, StoreChoice, UnknownStore};

#[cfg(test)]
mod tests;
