//! The protocol of one idempotency key, without IO.
//!
//! A key within a scope has at most one [`Record`]. It is a small state machine:
//!
//! ```text
//!             claim                     complete (with the effects, one commit)
//!   (none) ───────────> Claimed ───────────────────────────> Completed
//!     ^  ^               │  │ │ ^                                 │
//!     │  └── release ────┘  │ └─┘ renew (the owner lives)         │
//!     │      (no phase yet) │     advance (a phase ends)          │
//!     │                     │     takeover (the lease is over)    │
//!     │                     │     release (after a phase)         │
//!     └────── expire ───────┴──────────── expire ─────────────────┘
//! ```
//!
//! Every transition here is a pure function of the current record, the request and the time it is told. A store
//! applies one transition at a time to one record (compare and set, or a unique constraint and conditional updates),
//! and commits a completion in the same transaction as the effect.
//!
//! # Why it is right
//!
//! The invariant: *within the retention, at most one execution per scope and key commits its effects, and every
//! attempt that is told a success is told that execution's answer.* Three properties together give it.
//!
//! 1. **Claims are put in order by uniqueness.** A claim is an insert against a unique key, never a look followed by
//!    an insert. Of two claims at once one inserts and the other meets a record: [`claim`] grants nothing when it is
//!    given a live record.
//! 2. **Completion is fenced by the owner token.** A lease may end while its owner still runs. A retry then takes the
//!    key over with a new token and executes again. Both may reach their commit, but [`complete`] accepts only the
//!    token that the record carries now, so the stale owner's commit is refused and its effects are rolled back. It
//!    does not matter how wrong anybody's idea of time is: the lease only decides who may try, the token decides who
//!    may commit.
//! 3. **Effect and completion commit together.** So there is no moment at which the effect exists and the record does
//!    not say so. A crash before the commit leaves a claim and no effect; a retry takes over when the lease ends. A
//!    crash after it leaves both, and a retry is answered from the record.
//!
//! # Phases: effects outside the store
//!
//! A call to another system cannot join a commit. An execution that makes one is cut into phases, each a commit of its
//! own with its own effects, which also moves the record to a recovery point ([`advance`], fenced like a completion; the
//! last phase is the completion). Calls are made between phases. Whoever takes over goes on from the recovery point, so
//! the effects of a phase happen once by the argument above. A call may be made again, when its maker died before the
//! next phase committed. So it carries a key derived from the request's key and the phase, and repeats its parameters
//! from what the phase before it saved: to the other system the second call is a retry of the first.
//!
//! # Liveness
//!
//! A claim refuses others only while its lease runs ([`Verdict::InFlight`]). An owner that lives renews its lease
//! ([`renew`]), so slow work is not overtaken; a dead one blocks its key for no longer than one lease. A failure without
//! effects is [`release`]d and blocks nothing. A failure between phases gives the key back as it is: the next request
//! goes on where this one stopped.
//!
//! # What it does not promise
//!
//! Nothing holds after the retention, across scopes, for two keys of one intent, or for outside systems that take no
//! key. A claim left by a dead owner keeps its fingerprint: until it expires, another payload under that key is a
//! mismatch.

mod record;
#[cfg(test)]
mod simulation;
mod transitions;

pub use record::{Answer, Fingerprint, OwnerToken, Record, Recovery, State, Terms, Time};
pub use transitions::{Claim, LostLease, Verdict, advance, claim, complete, expired, first, release, renew};
