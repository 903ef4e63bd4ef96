//! The API under test: where it is, what it offers, what it documents about itself, and what a tester may do to it.

mod facets;
mod facets_file;
mod fields;
mod file;
mod hooks;
mod load;
mod model;
mod operation;
mod policy;
mod policy_file;
mod profile;
mod status;

pub use facets::{
    Crash, EmptyKey, ErrorFormat, FingerprintHeaders, FingerprintPart, KeyFormat, KeyPlace, KeyQuotes, ReplayKind,
    RetentionFrom, ScopePart, StoreDown,
};
pub use load::{BaseUrl, Lookup, process_env};
pub use model::{EffectProbe, HeaderTemplate, Hook, Hooks, Limits, Operation, Target, Tenant};
pub use policy::{
    Disposal, Documented, ExpiredKey, Fingerprint, InFlight, KeyPolicy, KeySyntax, MalformedKey, Mismatch, Policy,
    ReplayPolicy, ReplayStatus,
};
pub use profile::{PROFILES, Profile};
pub use status::{StatusSet, StatusSetError};
