//! Which results of a handler are kept for replay: the choice the draft leaves to the owner of a resource.

/// How an execution ended, as far as keeping its result goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The handler did what it was asked.
    Succeeded,
    /// The business said no, for good: the answer is as final as a success.
    Declined,
    /// The request was refused before it could have an effect.
    Rejected,
    /// The handler failed, before or after its effect, and said so.
    Failed,
    /// The handler unwound.
    Unwound,
    /// The server stopped before the handler had a result.
    Interrupted,
}

/// What happens to the result of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Results are kept. A failure is rolled back and frees the key, so that a retry runs again.
    Draft,
    /// Whatever a handler answers once it has begun is kept and replayed, a 500 too, together with the effects it had.
    StoredFailures,
}

impl Policy {
    /// Whether the result is stored and its effects are committed. If not, both are dropped and the key is free again.
    pub(super) fn keeps(self, ending: Ending) -> bool {
        match ending {
            Ending::Succeeded | Ending::Declined => true,
            Ending::Rejected | Ending::Interrupted => false,
            Ending::Failed | Ending::Unwound => self == Self::StoredFailures,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failures_are_a_matter_of_policy() {
        for policy in [Policy::Draft, Policy::StoredFailures] {
            assert!(policy.keeps(Ending::Succeeded) && policy.keeps(Ending::Declined));
            assert!(!policy.keeps(Ending::Rejected) && !policy.keeps(Ending::Interrupted));
        }
        for ending in [Ending::Failed, Ending::Unwound] {
            assert!(!Policy::Draft.keeps(ending) && Policy::StoredFailures.keeps(ending));
        }
    }
}
