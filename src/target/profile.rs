//! Policies by name, as data: what a specification or a provider documents, and as of when.

use super::{Documented, InFlight, Mismatch, Policy};

/// A policy that target files can start from.
#[derive(Debug, Clone, Copy)]
pub struct Profile {
    /// Its name in target files.
    pub name: &'static str,
    /// Where the facts were read.
    pub source: &'static str,
    /// The date of that document, as YYYY-MM-DD.
    pub as_of: &'static str,
    make: fn() -> Policy,
}

impl Profile {
    /// The policy.
    pub fn policy(&self) -> Policy {
        (self.make)()
    }
}

/// All profiles; the first is the default one.
pub static PROFILES: &[Profile] = &[Profile {
    name: "draft",
    source: "draft-ietf-httpapi-idempotency-key-header-07, sections 2.1, 2.6 and 2.7",
    as_of: "2025-10-15",
    make: draft,
}];

/// What the draft recommends. Everything it leaves open stays undocumented.
fn draft() -> Policy {
    Policy {
        in_flight: Documented::As(InFlight::Refuse),
        mismatch: Documented::As(Mismatch::Refuse),
        ..Policy::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draft_refuses_with_409_and_422() {
        let policy = PROFILES[0].policy();
        assert!(policy.in_flight.is(&InFlight::Refuse) && policy.in_flight_status.is_just(409));
        assert!(policy.mismatch.is(&Mismatch::Refuse) && policy.mismatch_status.is_just(422));
        assert_eq!(policy.key.required, Documented::Unknown);
    }
}
