//! The switchable faults: what each one breaks, and how they are named.
//!
//! A fault changes one place of the server. Search for `Fault::` to see each of them where it acts.

use std::fmt;
use std::str::FromStr;

/// One thing that servers get wrong, after public reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Looks the key up, runs the handler, and inserts the record afterwards.
    CheckThenActRace,
    /// Commits the effect first and the record in a later transaction.
    RecordAfterEffect,
    /// Compares no payloads.
    PayloadMismatchIgnored,
    /// Leaves the tenant out of the scope of a key.
    CrossTenantReplay,
    /// Replays a stored 201 as 200.
    StatusDriftOnReplay,
    /// Stores and replays a 500 whatever the policy of the route says.
    TransientFailurePinned,
    /// Keeps a record for half of the promised time.
    RetentionBelowContract,
    /// Never takes over an expired lease.
    OrphanedClaimWedge,
}

/// What a fault does to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultClass {
    /// One intent has its effect twice.
    EffectTwice,
    /// A key can no longer be used for its intent.
    Wedged,
    /// A caller is told something that is not so.
    WrongAnswer,
}

impl fmt::Display for FaultClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::EffectTwice => "effect twice",
            Self::Wedged => "key wedged",
            Self::WrongAnswer => "wrong answer",
        })
    }
}

impl Fault {
    /// Every fault.
    pub const ALL: &[Self] = &[
        Self::CheckThenActRace,
        Self::RecordAfterEffect,
        Self::PayloadMismatchIgnored,
        Self::CrossTenantReplay,
        Self::StatusDriftOnReplay,
        Self::TransientFailurePinned,
        Self::RetentionBelowContract,
        Self::OrphanedClaimWedge,
    ];

    /// The name, as the command line takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CheckThenActRace => "check-then-act-race",
            Self::RecordAfterEffect => "record-after-effect",
            Self::PayloadMismatchIgnored => "payload-mismatch-ignored",
            Self::CrossTenantReplay => "cross-tenant-replay",
            Self::StatusDriftOnReplay => "status-drift-on-replay",
            Self::TransientFailurePinned => "transient-failure-pinned",
            Self::RetentionBelowContract => "retention-below-contract",
            Self::OrphanedClaimWedge => "orphaned-claim-wedge",
        }
    }

    /// What it does to a caller.
    #[must_use]
    pub fn class(self) -> FaultClass {
        match self {
            Self::CheckThenActRace | Self::RecordAfterEffect | Self::RetentionBelowContract => FaultClass::EffectTwice,
            Self::TransientFailurePinned | Self::OrphanedClaimWedge => FaultClass::Wedged,
            Self::PayloadMismatchIgnored | Self::CrossTenantReplay | Self::StatusDriftOnReplay => {
                FaultClass::WrongAnswer
            }
        }
    }

    /// One line of help.
    #[must_use]
    pub fn help(self) -> &'static str {
        match self {
            Self::CheckThenActRace => "looks the key up, runs the handler, inserts the record afterwards",
            Self::RecordAfterEffect => "commits the effect first and the key's record later, in its own transaction",
            Self::PayloadMismatchIgnored => "answers another payload under a used key with the first result",
            Self::CrossTenantReplay => "shares keys between tenants, so one tenant gets another's result",
            Self::StatusDriftOnReplay => "replays a stored 201 as 200",
            Self::TransientFailurePinned => "stores a 500 and replays it for the whole retention",
            Self::RetentionBelowContract => "forgets a result after half of the promised retention",
            Self::OrphanedClaimWedge => "keeps a dead owner's claim until the retention ends, long after its lease",
        }
    }
}

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
pub struct FaultSet(u64);

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

fn bit(fault: Fault) -> u64 {
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
            assert!(!fault.help().contains('\n') && !fault.class().to_string().is_empty());
        }
        assert_eq!(Fault::ALL.iter().copied().collect::<FaultSet>().iter().count(), 8);
    }

    #[test]
    fn a_wrong_name_suggests_the_nearest_and_lists_all() {
        let error = "check-then-act".parse::<Fault>().unwrap_err().to_string();
        assert!(error.contains("did you mean \"check-then-act-race\"?"), "{error}");
        assert!(Fault::ALL.iter().all(|fault| error.contains(fault.name())), "{error}");
        let error = "x".repeat(5000).parse::<Fault>().unwrap_err().to_string();
        assert!(!error.contains("did you mean") && error.len() < 500, "{error}");
    }

    #[test]
    fn a_set_holds_what_was_put_in() {
        let set = FaultSet::new().with(Fault::OrphanedClaimWedge).with(Fault::CheckThenActRace);
        assert!(set.contains(Fault::CheckThenActRace) && !set.contains(Fault::RecordAfterEffect));
        assert_eq!(set.iter().collect::<Vec<_>>(), [Fault::CheckThenActRace, Fault::OrphanedClaimWedge]);
        assert!(FaultSet::new().is_empty() && !set.is_empty());
    }
}
