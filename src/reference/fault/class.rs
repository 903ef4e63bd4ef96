//! The kinds of things that servers get wrong, after public reports.

use std::fmt;

/// What a kind of fault does to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Harm {
    /// One intent has its effect twice.
    EffectTwice,
    /// A key can no longer be used for its intent.
    Wedged,
    /// A caller is told something that is not so.
    WrongAnswer,
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::EffectTwice => "effect twice",
            Self::Wedged => "key wedged",
            Self::WrongAnswer => "wrong answer",
        })
    }
}

macro_rules! classes {
    ($($harm:ident { $($(#[$doc:meta])* $class:ident = $name:literal),* $(,)? })*) => {
        /// A kind of fault. Each is the name of one of its faults as well.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FaultClass { $($($(#[$doc])* $class),*),* }

        impl FaultClass {
            /// Every class.
            pub const ALL: &[Self] = &[$($(Self::$class),*),*];

            /// Its name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $($(Self::$class => $name),*),* }
            }

            /// What it does to a caller.
            #[must_use]
            pub fn harm(self) -> Harm {
                match self { $($(Self::$class)|* => Harm::$harm),* }
            }
        }
    };
}

classes! {
    EffectTwice {
        /// Looks the key up, runs the handler, and inserts the record afterwards.
        CheckThenActRace = "check-then-act-race",
        /// Commits the effect, and the record later.
        RecordAfterEffect = "record-after-effect",
        /// Gives the claim up before the result is stored.
        UnlockBeforeStore = "unlock-before-store",
        /// Nothing renews or fences a claim that the handler outlives.
        LeaseShorterThanHandler = "lease-shorter-than-handler",
        /// A failure frees the key although the effect exists.
        FailureReleasesClaim = "failure-releases-claim",
        /// A sibling route that has the same effect does not honour the key.
        ParallelPathIgnoresKey = "parallel-path-ignores-key",
        /// The call to the outside system carries no key, or one that changes.
        KeyNotForwardedDownstream = "key-not-forwarded-downstream",
        /// Another node, or the same one a moment later, has never heard of the key.
        KeyUnknownToPeer = "key-unknown-to-peer",
        /// Runs unprotected while the store of the keys cannot be used.
        StoreOutageFailOpen = "store-outage-fail-open",
        /// A record ends before the promised time.
        RetentionBelowContract = "retention-below-contract",
        /// Something in front of the handler sends the request again by itself.
        GatewayResendsPost = "gateway-resends-post",
    }
    Wedged {
        /// A claim stays although its owner is gone.
        OrphanedClaimWedge = "orphaned-claim-wedge",
        /// A failure of the moment is replayed for good.
        TransientFailurePinned = "transient-failure-pinned",
        /// A refusal uses up the key.
        ClientErrorPinned = "client-error-pinned",
        /// The client's hanging up cancels the work half-way.
        DisconnectAbortsHandler = "disconnect-aborts-handler",
        /// A duplicate is answered with a server error.
        DuplicateYields5xx = "duplicate-yields-5xx",
    }
    WrongAnswer {
        /// Another payload under a used key is answered with the first result.
        PayloadMismatchIgnored = "payload-mismatch-ignored",
        /// Another payload under a used key is executed.
        MismatchExecutesAsNew = "mismatch-executes-as-new",
        /// Only a part of the request is compared.
        PartialFingerprint = "partial-fingerprint",
        /// What does not matter is compared.
        OverStrictFingerprint = "over-strict-fingerprint",
        /// Keys are not told apart by caller.
        CrossTenantReplay = "cross-tenant-replay",
        /// Keys are not told apart by operation.
        CrossEndpointCollision = "cross-endpoint-collision",
        /// A replay has another status.
        StatusDriftOnReplay = "status-drift-on-replay",
        /// A replay has other header fields.
        ReplayHeadersWrong = "replay-headers-wrong",
        /// A replay has another body.
        BodyCorruptedOnReplay = "body-corrupted-on-replay",
        /// Results are not found again, so that every repeat runs.
        ReplayNeverEngages = "replay-never-engages",
        /// An odd key is mistreated.
        KeyValidationGap = "key-validation-gap",
        /// Browsers may not send the key.
        CorsBlocksKey = "cors-blocks-key",
        /// A replay cannot be told from an execution.
        ReplayUnmarked = "replay-unmarked",
    }
}

impl fmt::Display for FaultClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
