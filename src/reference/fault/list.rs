//! The table of faults: what each one breaks, and what it takes to see it.

use super::class::FaultClass;
use std::fmt;

/// What it takes to see a fault, beyond sending a request twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Effects that can be counted.
    EffectProbe,
    /// A handler that can be made slow.
    SlowHandler,
    /// A handler that can be made to fail.
    FailingHandler,
    /// A worker that can be made to die.
    DyingWorker,
    /// A clock that can be moved, or time to wait.
    Clock,
    /// A second caller.
    SecondTenant,
    /// A proxy that cuts connections.
    Proxy,
    /// Two operations that are asked under one key.
    SecondOperation,
    /// A second node.
    SecondNode,
    /// A store of keys that can be made to fail.
    StoreOutage,
    /// A question that browsers ask before a request.
    Preflight,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::EffectProbe => "effect probe",
            Self::SlowHandler => "slow handler",
            Self::FailingHandler => "failing handler",
            Self::DyingWorker => "dying worker",
            Self::Clock => "clock",
            Self::SecondTenant => "second tenant",
            Self::Proxy => "proxy",
            Self::SecondOperation => "second operation",
            Self::SecondNode => "second node",
            Self::StoreOutage => "store outage",
            Self::Preflight => "preflight",
        })
    }
}

macro_rules! faults {
    ($($class:ident { $($fault:ident $name:literal [$($need:ident),*] $help:literal;)* })*) => {
        /// One thing that servers get wrong, after public reports.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault { $($(#[doc = $help] $fault),*),* }

        impl Fault {
            /// Every fault.
            pub const ALL: &[Self] = &[$($(Self::$fault),*),*];

            /// The name, as the command line takes it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $($(Self::$fault => $name),*),* }
            }

            /// The kind of fault that it is.
            #[must_use]
            pub fn class(self) -> FaultClass {
                match self { $($(Self::$fault)|* => FaultClass::$class),* }
            }

            /// What it takes to see it.
            #[must_use]
            pub fn needs(self) -> &'static [Need] {
                match self { $($(Self::$fault => &[$(Need::$need),*]),*),* }
            }

            /// The operations of the reference server on which it can be seen, beyond those that make payments.
            #[must_use]
            pub fn operations(self) -> &'static [&'static str] {
                match self {
                    Self::BatchIgnoresKey => &["batch"],
                    Self::RefundIgnoresKey => &["refund"],
                    Self::ChangeIgnoresKey => &["change"],
                    Self::ExportIgnoresKey => &["export"],
                    Self::KeyNotForwardedDownstream | Self::DownstreamKeyPerCall => &["charge"],
                    Self::NotificationOutsideOutbox => &["notify"],
                    Self::BinaryAsText | Self::BinaryNotStored => &["receipt"],
                    Self::StreamNotStored => &["statement"],
                    _ => &[],
                }
            }

            /// One line of help.
            #[must_use]
            pub fn help(self) -> &'static str {
                match self { $($(Self::$fault => $help),*),* }
            }
        }
    };
}

faults! {
    CheckThenActRace {
        CheckThenActRace "check-then-act-race" [SlowHandler]
            "looks the key up, runs the handler, inserts the record afterwards";
        LoserKeepsItsEffect "loser-keeps-its-effect" [EffectProbe, SlowHandler]
            "claims the key after the effect, so whoever loses the race is refused and has had its effect";
        ExpiredKeyRace "expired-key-race" [Clock]
            "takes an expired key without a condition, so everybody who saw it expired gets it";
    }
    RecordAfterEffect {
        RecordAfterEffect "record-after-effect" [EffectProbe, FailingHandler]
            "commits the effect first and the key's record later, in its own transaction";
    }
    UnlockBeforeStore {
        UnlockBeforeStore "unlock-before-store" []
            "frees the key when it answers, and stores the result a moment later";
    }
    LeaseShorterThanHandler {
        LeaseShorterThanHandler "lease-shorter-than-handler" [SlowHandler, Clock]
            "holds a key for half of the promised lease, and commits whoever owns it";
        CompletionNotFenced "completion-not-fenced" [EffectProbe, SlowHandler, Clock]
            "commits the effects of an owner that has been overtaken";
        LateFailureFreesKey "late-failure-frees-key" [SlowHandler, FailingHandler, Clock]
            "lets an owner that has been overtaken and fails free the key of the owner that took over";
    }
    FailureReleasesClaim {
        FailureReleasesClaim "failure-releases-claim" [EffectProbe, FailingHandler]
            "frees the key after any failure of the handler, also when its effect exists";
        ExceptionReleasesClaim "exception-releases-claim" [EffectProbe, FailingHandler]
            "frees the key after an unhandled exception, also when its effect exists";
        CrashReleasesClaim "crash-releases-claim" [EffectProbe, DyingWorker]
            "frees the keys of dead workers at once, also when their effects exist";
        TimeoutReleasesClaim "timeout-releases-claim" [SlowHandler]
            "answers 504 and frees the key when the handler takes longer than 400 ms, and lets it go on";
    }
    ParallelPathIgnoresKey {
        ParallelPathIgnoresKey "parallel-path-ignores-key" []
            "honours keys on /payments and ignores them on /v1/payments";
        BatchIgnoresKey "batch-ignores-key" []
            "honours the keys of single payments and ignores those of batches";
        RefundIgnoresKey "refund-ignores-key" []
            "honours keys where payments are made and ignores them where they are given back";
        ChangeIgnoresKey "change-ignores-key" []
            "honours keys with POST and ignores them with PATCH";
        ExportIgnoresKey "export-ignores-key" []
            "ignores keys where the answer is 202 and the work is done later";
    }
    KeyNotForwardedDownstream {
        KeyNotForwardedDownstream "key-not-forwarded-downstream" [EffectProbe]
            "calls the payment network without a key";
        DownstreamKeyPerCall "downstream-key-per-call" [EffectProbe]
            "calls the payment network with a new key each time, when it has to call again";
        NotificationOutsideOutbox "notification-outside-outbox" [EffectProbe, FailingHandler]
            "sends the notification before the commit, so a request that fails and is sent again notifies twice";
    }
    KeyUnknownToPeer {
        KeyUnknownToPeer "key-unknown-to-peer" [SecondNode]
            "keeps the keys of each node in a place of its own";
        StaleCopyAsked "stale-copy-asked" []
            "asks a copy that lags 200 ms behind whether a key is known, and runs the request when it is not";
        RestartForgetsKeys "restart-forgets-keys" [DyingWorker]
            "keeps keys in the memory of a process, so a worker that dies takes them with it";
    }
    StoreOutageFailOpen {
        StoreOutageFailOpen "store-outage-fail-open" [StoreOutage]
            "runs requests unprotected while the store of the keys cannot be used";
    }
    RetentionBelowContract {
        RetentionBelowContract "retention-below-contract" [Clock]
            "forgets a result after half of the promised retention";
        FewKeysKept "few-keys-kept" []
            "keeps the results of the last 8 keys only";
        KeyNeverExpires "key-never-expires" [Clock]
            "replays a result after the retention, when the key should be new";
    }
    GatewayResendsPost {
        GatewayResendsPost "gateway-resends-post" [EffectProbe, SlowHandler]
            "sends a request that is not answered within 250 ms again, with a key of its own";
    }
    OrphanedClaimWedge {
        OrphanedClaimWedge "orphaned-claim-wedge" [DyingWorker, Clock]
            "keeps a dead owner's claim until the retention ends, long after its lease";
        ExceptionWedgesKey "exception-wedges-key" [FailingHandler]
            "leaves the claim of a handler that ended with an unhandled exception for ever";
        FailureWedgesKey "failure-wedges-key" [FailingHandler]
            "leaves the claim of a handler that answered 5xx for ever";
        ValidationWedgesKey "validation-wedges-key" []
            "leaves the claim of a request that failed validation for ever";
        TruncatedRequestKeepsKey "truncated-request-keeps-key" [Proxy]
            "claims the key before the body has arrived, and keeps it when the body never does";
    }
    TransientFailurePinned {
        TransientFailurePinned "transient-failure-pinned" [FailingHandler]
            "stores a 500 and replays it for the whole retention";
        ExceptionPinned "exception-pinned" [FailingHandler]
            "stores the 500 of an unhandled exception and replays it for the whole retention";
    }
    ClientErrorPinned {
        ClientErrorPinned "client-error-pinned" []
            "stores a failed validation, so that the corrected request is refused under its key";
        UnauthorizedPinned "unauthorized-pinned" [SecondTenant]
            "stores the refusal of unknown credentials under the key and answers everybody with it";
    }
    DisconnectAbortsHandler {
        DisconnectAbortsHandler "disconnect-aborts-handler" [Proxy, SlowHandler]
            "gives a request up when its client hangs up, and frees its key although its effect may be there";
        DisconnectWedgesKey "disconnect-wedges-key" [Proxy, SlowHandler]
            "gives a request up when its client hangs up, and never frees its key";
    }
    DuplicateYields5xx {
        DuplicateYields5xx "duplicate-yields-5xx" [SlowHandler]
            "answers a duplicate in flight with 500";
        ReplayYields5xx "replay-yields-5xx" []
            "answers a late duplicate with 500";
        MismatchYields5xx "mismatch-yields-5xx" []
            "answers another payload under a used key with 500";
        ExpiredKeyYields5xx "expired-key-yields-5xx" [Clock]
            "answers 500 when an expired key is used again, because its old record is in the way";
    }
    PayloadMismatchIgnored {
        PayloadMismatchIgnored "payload-mismatch-ignored" []
            "answers another payload under a used key with the first result";
        MismatchIgnoredWhileRunning "mismatch-ignored-while-running" [SlowHandler]
            "lets another payload wait for the first one that runs, and gives it that result";
    }
    MismatchExecutesAsNew {
        MismatchExecutesAsNew "mismatch-executes-as-new" []
            "makes the payload part of the key, so another payload runs as a new operation";
        MismatchOverwritesRecord "mismatch-overwrites-record" []
            "runs another payload under a used key and puts its result in the place of the first one";
        MismatchRemovesRecord "mismatch-removes-record" []
            "refuses another payload and removes the record, so the original request runs again";
    }
    PartialFingerprint {
        PartialFingerprint "partial-fingerprint" []
            "compares the amount and the currency of a payment only";
        AmountNotCompared "amount-not-compared" []
            "compares everything but the amount";
        NestedNotCompared "nested-not-compared" []
            "compares the members of the body, and nothing within them";
        UnknownNotCompared "unknown-members-not-compared" []
            "compares only the members that it knows, so an added one goes unseen";
        BeginningCompared "only-beginning-compared" []
            "compares the first 24 bytes of the body";
        NumbersAsFloats "numbers-compared-as-floats" []
            "compares numbers as 64-bit floats, so large ones that differ seem equal";
    }
    OverStrictFingerprint {
        OverStrictFingerprint "over-strict-fingerprint" []
            "compares bodies byte by byte, so other spacing or order is another request";
        MemberOrderCompared "member-order-compared" []
            "compares the order of members, so the same JSON in another order is another request";
    }
    CrossTenantReplay {
        CrossTenantReplay "cross-tenant-replay" [SecondTenant]
            "shares keys between tenants, so one tenant gets another's result";
        CrossTenantConflict "cross-tenant-conflict" [SecondTenant]
            "refuses a key that another tenant has used";
        CrossTenantLock "cross-tenant-lock" [SecondTenant, SlowHandler]
            "refuses a key while another tenant's request with it runs";
    }
    CrossEndpointCollision {
        CrossEndpointCollision "cross-endpoint-collision" [SecondOperation]
            "shares keys between operations, so one operation answers with another's result";
    }
    StatusDriftOnReplay {
        StatusDriftOnReplay "status-drift-on-replay" []
            "replays a stored 201 as 200";
        ReplayAlwaysConflicts "replay-always-conflicts" [Proxy]
            "answers every duplicate with 409, also when the first result is known";
        FailureReplayedAsSuccess "failure-replayed-as-success" [FailingHandler]
            "replays a stored 500 as 200";
    }
    ReplayHeadersWrong {
        ReplayHeadersWrong "replay-headers-wrong" []
            "replays without the Location";
        ContentTypeChanged "content-type-changed-on-replay" []
            "replays with the content type of plain text";
        LocationChanged "location-changed-on-replay" []
            "replays with a Location of its own";
    }
    BodyCorruptedOnReplay {
        BodyCorruptedOnReplay "body-corrupted-on-replay" []
            "replays an empty body";
        BodyTruncated "body-truncated-on-replay" []
            "replays the first 32 bytes of the body";
        BodyEncodedTwice "body-encoded-twice-on-replay" []
            "replays the body as a JSON string of itself";
        BodyWrapped "body-wrapped-on-replay" []
            "replays the body inside of the object it was stored in";
        BinaryAsText "binary-as-text-on-replay" []
            "replays a binary body as the text that it is not";
    }
    ReplayNeverEngages {
        ReplayNeverEngages "replay-never-engages" []
            "looks results up under another name than it stores them, so every repeat runs";
        BinaryNotStored "binary-not-stored" []
            "stores answers of JSON only, so every repeat of a request for a binary one runs";
        StreamNotStored "stream-not-stored" []
            "stores answers of known length only, so every repeat of a request for a streamed one runs";
    }
    KeyValidationGap {
        KeyValidationGap "key-validation-gap" []
            "runs a request with a malformed key unprotected";
        MissingKeyRuns "missing-key-runs" []
            "runs a request without a key, although one is required";
        BlankKeyUnprotected "blank-key-unprotected" []
            "runs a request with a key of spaces unprotected";
        EmptyKeyShared "empty-key-shared" []
            "takes the empty key for a key like any other";
        LongKeyCrashes "long-key-crashes" []
            "answers 500 to a key of more than 255 characters";
        LongKeyTruncated "long-key-truncated" []
            "keeps the first 24 characters of a key, so two longer keys may be one";
        KeyCaseFolded "key-case-folded" []
            "takes two keys for one that differ in upper and lower case only";
    }
    CorsBlocksKey {
        CorsBlocksKey "cors-blocks-key" [Preflight]
            "does not allow browsers to send the key";
        CorsHidesMarker "cors-hides-marker" [Preflight]
            "does not let scripts in browsers see the marker of replays";
    }
    ReplayUnmarked {
        ReplayUnmarked "replay-unmarked" []
            "replays without the documented marker";
        FirstAnswerMarked "first-answer-marked" []
            "marks the answer of the execution itself as a replay";
    }
}
