//! The transitions, each a pure function.

use super::record::{Answer, Fingerprint, OwnerToken, Record, Recovery, State, Terms, Time};

/// A request for a key.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    /// What the request asks for.
    pub fingerprint: Fingerprint,
    /// The token that the request will own the key with, if it gets it. It must be fresh.
    pub owner: OwnerToken,
    /// The time of the request.
    pub now: Time,
}

/// What a claim comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The request owns the execution. This record takes the place of the current one.
    Granted(Record),
    /// The intent has been executed, and this is its answer.
    Replay(Answer),
    /// Somebody else is at work on the intent, and nobody may take over before the given time.
    InFlight(Time),
    /// The key names another intent.
    Mismatch,
}

/// The caller does not own the key any more (or never did), so nothing of its execution may be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the execution does not own its key any more")]
pub struct LostLease;

/// Decides a request for a key. The fingerprint is compared before the state, so another payload is a mismatch even
/// while the first one is in flight.
#[must_use]
pub fn claim(current: Option<&Record>, request: &Claim, terms: &Terms) -> Verdict {
    let Some(record) = current.filter(|record| !expired(record, request.now)) else {
        return Verdict::Granted(first(request, terms));
    };
    if record.fingerprint != request.fingerprint {
        return Verdict::Mismatch;
    }
    match &record.state {
        State::Completed(answer) => Verdict::Replay(answer.clone()),
        State::Claimed { lease_until, .. } if request.now < *lease_until => Verdict::InFlight(*lease_until),
        State::Claimed { recovery, .. } => Verdict::Granted(claimed(request, terms, recovery.clone())),
    }
}

/// The record of a request that takes a key which is new: its own fingerprint, token and lease, and no recovery point.
#[must_use]
pub fn first(request: &Claim, terms: &Terms) -> Record {
    claimed(request, terms, None)
}

/// A claim expires at the earliest when its lease ends, so that expiry never takes a key from a live owner.
fn claimed(request: &Claim, terms: &Terms, recovery: Option<Recovery>) -> Record {
    let lease_until = request.now.after(terms.lease);
    Record {
        fingerprint: request.fingerprint,
        owner: request.owner,
        state: State::Claimed { lease_until, recovery },
        expires: lease_until.max(request.now.after(terms.retention)),
    }
}

/// Renews the lease of an owner that is alive. It never ends earlier than before, whatever the clock says now.
///
/// An owner whose lease is over may still renew it as long as nobody took over.
///
/// # Errors
/// [`LostLease`] when the record is gone, completed, or carries another token: stop, for nothing can be committed.
pub fn renew(current: Option<&Record>, owner: OwnerToken, now: Time, terms: &Terms) -> Result<Record, LostLease> {
    let (record, lease_until, recovery) = owned(current, owner)?;
    let lease_until = lease_until.max(now.after(terms.lease));
    Ok(Record {
        state: State::Claimed { lease_until, recovery: recovery.cloned() },
        expires: record.expires.max(lease_until),
        ..*record
    })
}

/// Ends a phase that is not the last one. The record returned must be committed together with the effects of the
/// phase. The owner has shown that it is alive, so its lease is renewed as well.
///
/// # Errors
/// [`LostLease`] when the record is gone, completed, or carries another token: roll back.
pub fn advance(
    current: Option<&Record>,
    owner: OwnerToken,
    reached: Recovery,
    now: Time,
    terms: &Terms,
) -> Result<Record, LostLease> {
    let (record, lease_until, _) = owned(current, owner)?;
    let lease_until = lease_until.max(now.after(terms.lease));
    Ok(Record {
        state: State::Claimed { lease_until, recovery: Some(reached) },
        expires: record.expires.max(lease_until),
        ..*record
    })
}

/// Completes an execution with its answer. The record returned must be committed together with the effects.
///
/// An owner whose lease is over may still complete as long as nobody took over: its token is the current one.
///
/// # Errors
/// [`LostLease`] when the record is gone, completed, or carries another token: roll back.
pub fn complete(
    current: Option<&Record>,
    owner: OwnerToken,
    answer: Answer,
    now: Time,
    terms: &Terms,
) -> Result<Record, LostLease> {
    let (record, ..) = owned(current, owner)?;
    Ok(Record { state: State::Completed(answer), expires: now.after(terms.retention), ..*record })
}

/// Gives a key back after an execution that came to no result.
///
/// Without a recovery point nothing has happened, and the record is to be removed: `None`. With one, earlier phases have
/// committed. Then the record stays, without an owner and without a lease, so that the next request goes on from there
/// at once, whatever its clock says, and a renewal of the old owner that is still on its way finds nothing to renew.
///
/// # Errors
/// [`LostLease`] when the caller does not own a claim: leave the record alone.
pub fn release(current: Option<&Record>, owner: OwnerToken) -> Result<Option<Record>, LostLease> {
    let (record, _, recovery) = owned(current, owner)?;
    let given_back = |recovery: &Recovery| Record {
        owner: OwnerToken::NOBODY,
        state: State::Claimed { lease_until: Time(0), recovery: Some(recovery.clone()) },
        ..*record
    };
    Ok(recovery.map(given_back))
}

/// Whether a record counts as absent. Removing it is housekeeping and decides nothing.
#[must_use]
pub fn expired(record: &Record, now: Time) -> bool {
    now >= record.expires
}

/// The claim of an owner: its record, the end of its lease, and how far it has come.
fn owned(current: Option<&Record>, owner: OwnerToken) -> Result<(&Record, Time, Option<&Recovery>), LostLease> {
    match current {
        Some(record) if record.owner == owner => match &record.state {
            State::Claimed { lease_until, recovery } => Ok((record, *lease_until, recovery.as_ref())),
            State::Completed(_) => Err(LostLease),
        },
        _ => Err(LostLease),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::time::Duration;

    const TERMS: Terms = Terms { lease: Duration::from_secs(30), retention: Duration::from_secs(1000) };
    const T0: Time = Time(1_000_000);

    fn request(fingerprint: u8, owner: u128, now: Time) -> Claim {
        Claim { fingerprint: Fingerprint([fingerprint; 32]), owner: OwnerToken(owner), now }
    }

    fn answer(body: &'static str) -> Answer {
        Answer { status: 201, headers: vec![("location".into(), "/payments/1".into())], body: body.into() }
    }

    fn granted(current: Option<&Record>, request: &Claim) -> Record {
        match claim(current, request, &TERMS) {
            Verdict::Granted(record) => record,
            other => panic!("expected a grant, got {other:?}"),
        }
    }

    #[test]
    fn a_live_claim_refuses_and_an_ended_lease_is_taken_over() {
        let first = granted(None, &request(1, 1, T0));
        let end = Time(T0.0 + 30_000);
        assert_eq!(claim(Some(&first), &request(1, 2, Time(end.0 - 1)), &TERMS), Verdict::InFlight(end));
        let second = granted(Some(&first), &request(1, 2, end));
        assert_eq!(second.owner, OwnerToken(2));
        assert_eq!(second.state, State::Claimed { lease_until: Time(end.0 + 30_000), recovery: None });
    }

    #[test]
    fn a_late_owner_cannot_commit_or_release() {
        let first = granted(None, &request(1, 1, T0));
        let second = granted(Some(&first), &request(1, 2, Time(T0.0 + 30_000)));
        assert_eq!(complete(Some(&second), OwnerToken(1), answer("old"), T0, &TERMS), Err(LostLease));
        assert_eq!(release(Some(&second), OwnerToken(1)), Err(LostLease));
        let done = complete(Some(&second), OwnerToken(2), answer("new"), T0, &TERMS).unwrap();
        assert_eq!(complete(Some(&done), OwnerToken(1), answer("old"), T0, &TERMS), Err(LostLease));
        assert_eq!(complete(Some(&done), OwnerToken(2), answer("again"), T0, &TERMS), Err(LostLease));
        assert_eq!(release(Some(&done), OwnerToken(2)), Err(LostLease));
        assert_eq!(complete(None, OwnerToken(2), answer("gone"), T0, &TERMS), Err(LostLease));
    }

    #[test]
    fn an_owner_past_its_lease_commits_when_nobody_took_over() {
        let first = granted(None, &request(1, 1, T0));
        assert!(complete(Some(&first), OwnerToken(1), answer("late"), Time(T0.0 + 60_000), &TERMS).is_ok());
    }

    #[test]
    fn the_fingerprint_comes_before_the_state() {
        let first = granted(None, &request(1, 1, T0));
        assert_eq!(claim(Some(&first), &request(2, 2, T0), &TERMS), Verdict::Mismatch);
        assert_eq!(claim(Some(&first), &request(2, 2, Time(T0.0 + 30_000)), &TERMS), Verdict::Mismatch);
        let done = complete(Some(&first), OwnerToken(1), answer("a"), T0, &TERMS).unwrap();
        assert_eq!(claim(Some(&done), &request(2, 2, T0), &TERMS), Verdict::Mismatch);
    }

    #[test]
    fn the_retention_counts_from_the_completion() {
        let first = granted(None, &request(1, 1, T0));
        let completed = Time(T0.0 + 20_000);
        let done = complete(Some(&first), OwnerToken(1), answer("a"), completed, &TERMS).unwrap();
        let last = Time(completed.0 + 1_000_000 - 1);
        assert_eq!(claim(Some(&done), &request(1, 2, last), &TERMS), Verdict::Replay(answer("a")));
        assert_eq!(granted(Some(&done), &request(1, 2, Time(last.0 + 1))).owner, OwnerToken(2));
        assert_eq!(granted(Some(&done), &request(2, 3, Time(last.0 + 1))).owner, OwnerToken(3));
    }

    #[test]
    fn a_claim_outlives_a_retention_that_is_shorter_than_its_lease() {
        let terms = Terms { lease: Duration::from_secs(30), retention: Duration::from_secs(1) };
        let Verdict::Granted(first) = claim(None, &request(1, 1, T0), &terms) else { panic!("refused") };
        assert_eq!(
            claim(Some(&first), &request(1, 2, Time(T0.0 + 2_000)), &terms),
            Verdict::InFlight(Time(T0.0 + 30_000))
        );
    }

    fn point(name: &str) -> Recovery {
        Recovery { point: name.into(), saved: format!("of {name}") }
    }

    #[test]
    fn a_renewed_lease_keeps_others_out_and_never_shrinks() {
        let first = granted(None, &request(1, 1, T0));
        let renewed = renew(Some(&first), OwnerToken(1), Time(T0.0 + 20_000), &TERMS).unwrap();
        assert_eq!(
            claim(Some(&renewed), &request(1, 2, Time(T0.0 + 49_999)), &TERMS),
            Verdict::InFlight(Time(T0.0 + 50_000))
        );
        assert_eq!(granted(Some(&renewed), &request(1, 2, Time(T0.0 + 50_000))).owner, OwnerToken(2));
        assert_eq!(renew(Some(&renewed), OwnerToken(1), T0, &TERMS).unwrap(), renewed);
        assert_eq!(renew(Some(&renewed), OwnerToken(2), T0, &TERMS), Err(LostLease));
        let done = complete(Some(&renewed), OwnerToken(1), answer("a"), T0, &TERMS).unwrap();
        assert_eq!(renew(Some(&done), OwnerToken(1), T0, &TERMS), Err(LostLease));
        let short = Terms { retention: Duration::from_secs(1), ..TERMS };
        let renewed = renew(Some(&first), OwnerToken(1), Time(T0.0 + 2_000_000), &short).unwrap();
        assert!(!expired(&renewed, Time(T0.0 + 2_029_999)));
    }

    #[test]
    fn whoever_takes_over_goes_on_from_the_last_phase() {
        let first = granted(None, &request(1, 1, T0));
        let at = Time(T0.0 + 10_000);
        let started = advance(Some(&first), OwnerToken(1), point("started"), at, &TERMS).unwrap();
        let expected = State::Claimed { lease_until: Time(at.0 + 30_000), recovery: Some(point("started")) };
        assert_eq!((started.owner, &started.state), (OwnerToken(1), &expected));
        let second = granted(Some(&started), &request(1, 2, Time(at.0 + 30_000)));
        assert!(
            matches!(&second.state, State::Claimed { recovery: Some(recovery), .. } if *recovery == point("started"))
        );
        assert_eq!(advance(Some(&second), OwnerToken(1), point("charged"), at, &TERMS), Err(LostLease));
        let charged = advance(Some(&second), OwnerToken(2), point("charged"), at, &TERMS).unwrap();
        assert!(
            matches!(&charged.state, State::Claimed { recovery: Some(recovery), .. } if *recovery == point("charged"))
        );
        // After the retention the key is new, and nothing of the old intent is left.
        let later = granted(Some(&charged), &request(2, 3, Time(at.0 + 2_000_000)));
        assert!(matches!(later.state, State::Claimed { recovery: None, .. }));
    }

    #[test]
    fn a_key_is_given_back_with_what_has_been_reached() {
        let first = granted(None, &request(1, 1, T0));
        assert_eq!(release(Some(&first), OwnerToken(1)), Ok(None));
        let started = advance(Some(&first), OwnerToken(1), point("started"), T0, &TERMS).unwrap();
        let back = release(Some(&started), OwnerToken(1)).unwrap().unwrap();
        assert_eq!(back.state, State::Claimed { lease_until: Time(0), recovery: Some(point("started")) });
        assert_eq!(renew(Some(&back), OwnerToken(1), T0, &TERMS), Err(LostLease));
        assert_eq!(complete(Some(&back), OwnerToken(1), answer("late"), T0, &TERMS), Err(LostLease));
        assert_eq!(claim(Some(&back), &request(2, 2, T0), &TERMS), Verdict::Mismatch);
        assert_eq!(granted(Some(&back), &request(1, 2, T0)).owner, OwnerToken(2));
    }

    #[test]
    fn time_stops_at_its_end() {
        assert_eq!(Time(u64::MAX - 1).after(Duration::from_secs(9)), Time(u64::MAX));
        assert_eq!(Time(1).after(Duration::MAX), Time(u64::MAX));
    }
}
