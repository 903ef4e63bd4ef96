//! Cores that are wrong in one place. The invariants must tell each of them from the right one.

use super::*;

/// A mutant must break an invariant, and the smallest history found must break one of these.
fn breaks(core: Core, invariants: &[&str]) {
    let why = search(20_000, core).expect_err("a core that is wrong keeps every invariant");
    assert!(invariants.iter().any(|invariant| why.contains(invariant)), "{why}");
}

#[test]
fn a_completion_without_fencing() {
    fn complete(
        current: Option<&Record>,
        owner: OwnerToken,
        answer: Answer,
        now: Time,
        terms: &Terms,
    ) -> Result<Record, LostLease> {
        let owner = current.map_or(owner, |record| record.owner);
        super::super::complete(current, owner, answer, now, terms)
    }
    breaks(Core { complete, ..RIGHT }, &["committed"]);
}

#[test]
fn a_phase_without_fencing() {
    fn advance(
        current: Option<&Record>,
        owner: OwnerToken,
        reached: Recovery,
        now: Time,
        terms: &Terms,
    ) -> Result<Record, LostLease> {
        let owner = current.map_or(owner, |record| record.owner);
        super::super::advance(current, owner, reached, now, terms)
    }
    breaks(Core { advance, ..RIGHT }, &["committed"]);
}

#[test]
fn a_claim_that_ignores_the_record() {
    fn claim(_: Option<&Record>, request: &Claim, terms: &Terms) -> Verdict {
        Verdict::Granted(first(request, terms))
    }
    breaks(Core { claim, ..RIGHT }, &["taken over", "though a result is kept", "was granted the key"]);
}

#[test]
fn a_takeover_that_starts_again() {
    fn claim(current: Option<&Record>, request: &Claim, terms: &Terms) -> Verdict {
        match super::super::claim(current, request, terms) {
            Verdict::Granted(_) => Verdict::Granted(first(request, terms)),
            other => other,
        }
    }
    breaks(Core { claim, ..RIGHT }, &["goes on after phase 0"]);
}

#[test]
fn a_payload_that_is_not_compared() {
    fn claim(current: Option<&Record>, request: &Claim, terms: &Terms) -> Verdict {
        let fingerprint = current.map_or(request.fingerprint, |record| record.fingerprint);
        super::super::claim(current, &Claim { fingerprint, ..*request }, terms)
    }
    breaks(Core { claim, ..RIGHT }, &["was granted the key", "replayed"]);
}

#[test]
fn a_lease_that_never_ends() {
    fn claim(current: Option<&Record>, request: &Claim, terms: &Terms) -> Verdict {
        match current.map(|record| &record.state) {
            Some(State::Claimed { .. }) => Verdict::InFlight(Time(u64::MAX)),
            _ => super::super::claim(current, request, terms),
        }
    }
    breaks(Core { claim, ..RIGHT }, &["wedged"]);
}

#[test]
fn a_lease_that_keeps_nobody_out() {
    fn claim(current: Option<&Record>, request: &Claim, terms: &Terms) -> Verdict {
        let mut current = current.cloned();
        if let Some(State::Claimed { lease_until, .. }) = current.as_mut().map(|record| &mut record.state) {
            *lease_until = Time(0);
        }
        super::super::claim(current.as_ref(), request, terms)
    }
    breaks(Core { claim, ..RIGHT }, &["taken over"]);
}

#[test]
fn a_renewal_that_renews_nothing() {
    fn renew(current: Option<&Record>, owner: OwnerToken, now: Time, terms: &Terms) -> Result<Record, LostLease> {
        super::super::renew(current, owner, now, terms)?;
        current.cloned().ok_or(LostLease)
    }
    breaks(Core { renew, ..RIGHT }, &["taken over"]);
}

#[test]
fn a_renewal_that_everybody_may_make() {
    fn renew(current: Option<&Record>, _: OwnerToken, now: Time, terms: &Terms) -> Result<Record, LostLease> {
        super::super::renew(current, current.map_or(OwnerToken(1), |record| record.owner), now, terms)
    }
    breaks(Core { renew, ..RIGHT }, &["renewed the lease of"]);
}

#[test]
fn a_key_that_is_given_back_and_keeps_its_owner() {
    fn release(current: Option<&Record>, owner: OwnerToken) -> Result<Option<Record>, LostLease> {
        Ok(super::super::release(current, owner)?.map(|record| Record { owner, ..record }))
    }
    breaks(Core { release, ..RIGHT }, &["renewed the lease of"]);
}

#[test]
fn a_key_that_is_given_back_and_forgets_its_phases() {
    fn release(current: Option<&Record>, owner: OwnerToken) -> Result<Option<Record>, LostLease> {
        super::super::release(current, owner).map(|_| None)
    }
    breaks(Core { release, ..RIGHT }, &["goes on after phase 0", "was granted the key"]);
}

#[test]
fn a_result_that_dies_early() {
    fn complete(
        current: Option<&Record>,
        owner: OwnerToken,
        answer: Answer,
        now: Time,
        terms: &Terms,
    ) -> Result<Record, LostLease> {
        let terms = Terms { retention: terms.retention / 2, ..*terms };
        super::super::complete(current, owner, answer, now, &terms)
    }
    breaks(Core { complete, ..RIGHT }, &["though a result is kept"]);
}

#[test]
fn a_replay_of_another_answer() {
    fn claim(current: Option<&Record>, request: &Claim, terms: &Terms) -> Verdict {
        match super::super::claim(current, request, terms) {
            Verdict::Replay(answer) => Verdict::Replay(Answer { body: request.owner.0.to_string().into(), ..answer }),
            other => other,
        }
    }
    breaks(Core { claim, ..RIGHT }, &["replayed"]);
}
