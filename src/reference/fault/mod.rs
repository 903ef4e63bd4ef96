//! The switchable faults: what each one breaks, and how they are named.
//!
//! A fault changes one place of the server. Search for `Fault::` to see each of them where it acts:
//!
//! | part | where its faults act |
//! |---|---|
//! | `front` | before the handler: a gateway, a client that hangs up |
//! | `request` | on what a request is taken for: its scope, key and fingerprint |
//! | `outside` | in calls and messages to outside systems |
//! | `ending` | at the end of a run of the handler |
//! | `store` | between the protocol and its store |
//! | `reply` | on the way from an answer to a response |
//!
//! The other faults stand where the code they break stands. `class` and `list` are the tables of all.

mod class;
mod ending;
mod front;
mod list;
mod outside;
mod reply;
mod request;
mod store;

pub use class::{FaultClass, Harm};
pub use list::{Fault, Need};

pub(super) use ending::{deserted, meddle};
pub(super) use front::{resend, while_waited_for};
pub(super) use outside::{forwarded, unsent};
pub(super) use reply::{allowed_in_browsers, refusal, replayed, seems_a_replay, shown_to_scripts};
pub(super) use request::{claim_too_early, crash, excused, pinned, taken_for};
pub(super) use store::broken;

use std::fmt;
use std::str::FromStr;

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No fault has the name that was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no fault named \"{given}\"{} The faults are: {}", suggestion(.nearest), names())]
pub struct UnknownFault {
    given: String,
    nearest: Option<&'static str>,
}

fn suggestion(nearest: &Option<&'static str>) -> String {
    nearest.map_or_else(|| ".".to_owned(), |name| format!("; did you mean \"{name}\"?"))
}

fn names() -> String {
    Fault::ALL.iter().map(|fault| fault.name()).collect::<Vec<_>>().join(", ")
}

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(given: &str) -> Result<Self, Self::Err> {
        Self::ALL.iter().copied().find(|fault| fault.name() == given).ok_or_else(|| {
            // A name may be quoted back to a terminal, so only its beginning is kept.
            let given: String = given.chars().take(80).collect();
            let nearest = Self::ALL
                .iter()
                .map(|fault| (strsim::jaro_winkler(fault.name(), &given), fault.name()))
                .filter(|(likeness, _)| *likeness > 0.75)
                .max_by(|a, b| a.0.total_cmp(&b.0))
                .map(|(_, name)| name);
            UnknownFault { given, nearest }
        })
    }
}

/// The faults that are switched on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultSet(u128);

impl FaultSet {
    /// No fault at all.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same set with one more fault.
    #[must_use]
    pub fn with(self, fault: Fault) -> Self {
        Self(self.0 | bit(fault))
    }

    /// Whether a fault is switched on.
    #[must_use]
    pub fn contains(self, fault: Fault) -> bool {
        self.0 & bit(fault) != 0
    }

    /// Whether none is switched on.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The faults that are switched on, in the order of [`Fault::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Fault> {
        Fault::ALL.iter().copied().filter(move |fault| self.contains(*fault))
    }
}

fn bit(fault: Fault) -> u128 {
    1 << fault as u32
}

impl FromIterator<Fault> for FaultSet {
    fn from_iter<I: IntoIterator<Item = Fault>>(faults: I) -> Self {
        faults.into_iter().fold(Self::new(), Self::with)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn names_are_distinct_and_parse_back() {
        for fault in Fault::ALL {
            assert_eq!(fault.name().parse(), Ok(*fault));
            assert_eq!(fault.to_string(), fault.name());
            assert!(!fault.help().contains('\n') && !fault.help().ends_with('.'), "{fault}");
        }
        assert_eq!(Fault::ALL.iter().copied().collect::<FaultSet>().iter().count(), Fault::ALL.len());
        assert!(Fault::ALL.len() <= 128, "a set has 128 bits");
    }

    #[test]
    fn every_class_has_faults_and_one_of_them_bears_its_name() {
        assert_eq!(FaultClass::ALL.len(), 29);
        for class in FaultClass::ALL {
            let fault: Fault = class.name().parse().unwrap();
            assert_eq!(fault.class(), *class);
        }
    }

    #[test]
    fn a_wrong_name_suggests_the_nearest_and_lists_all() {
        let error = "check-then-act".parse::<Fault>().unwrap_err().to_string();
        assert!(error.contains("did you mean \"check-then-act-race\"?"), "{error}");
        assert!(Fault::ALL.iter().all(|fault| error.contains(fault.name())), "{error}");
        let error = "x".repeat(5000).parse::<Fault>().unwrap_err().to_string();
        assert!(!error.contains("did you mean") && !error.contains(&"x".repeat(81)), "{error}");
    }

    #[test]
    fn a_set_holds_what_was_put_in() {
        let set = FaultSet::new().with(Fault::OrphanedClaimWedge).with(Fault::CheckThenActRace);
        assert!(set.contains(Fault::CheckThenActRace) && !set.contains(Fault::RecordAfterEffect));
        assert_eq!(set.iter().collect::<Vec<_>>(), [Fault::CheckThenActRace, Fault::OrphanedClaimWedge]);
        assert!(FaultSet::new().is_empty() && !set.is_empty());
    }
}
