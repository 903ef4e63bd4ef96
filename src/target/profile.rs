//! Policies by name, as data: what a specification or a provider documents, and as of when.

use super::Policy;

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
    // What the draft recommends is judged by the rules of the draft. A contract is only what the API itself states: an
    // API is not to be accused of breaking a documentation that it never wrote.
    make: Policy::default,
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Documented;

    #[test]
    fn the_draft_states_nothing_on_behalf_of_the_api_but_the_codes_to_recognise() {
        let policy = PROFILES[0].policy();
        assert!(policy.in_flight_status.is_just(409) && policy.mismatch_status.is_just(422));
        assert_eq!((policy.in_flight, policy.mismatch), (Documented::Unknown, Documented::Unknown));
        assert_eq!(policy.key.required, Documented::Unknown);
    }
}
