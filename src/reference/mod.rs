//! The reference server: idempotency keys done right, and wrong on demand.
