//! The transitions, each a pure function.

use super::record::{Answer, Fingerprint, OwnerToken, Record, State, Terms, Time};

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
        return Verdict::Granted(takeover(request, terms));
    };
    if record.fingerprint != request.fingerprint {
        return Verdict::Mismatch;
    }
    match &record.state {
        State::Completed(answer) => Verdict::Replay(answer.clone()),
        State::Claimed { lease_until } if request.now < *lease_until => Verdict::InFlight(*lease_until),
        State::Claimed { .. } => Verdict::Granted(takeover(request, terms)),
    }
}

/// The record of a request that takes the key: its own fingerprint, token and lease, whatever was there before.
///
/// A claim expires at the earliest when its lease ends, so that expiry never takes a key from a live owner.
#[must_use]
pub fn takeover(request: &Claim, terms: &Terms) -> Record {
    let lease_until = request.now.after(terms.lease);
    Record {
        fingerprint: request.fingerprint,
        owner: request.owner,
        state: State::Claimed { lease_until },
        expires: lease_until.max(request.now.after(terms.retention)),
    }
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
    let record = owned(current, owner)?;
    Ok(Record {
        fingerprint: record.fingerprint,
        owner,
        state: State::Completed(answer),
        expires: now.after(terms.retention),
    })
}

/// Gives a key back after an execution that left no effect: the record is to be removed.
///
/// # Errors
/// [`LostLease`] when the caller does not own a claim: leave the record alone.
pub fn release(current: Option<&Record>, owner: OwnerToken) -> Result<(), LostLease> {
    owned(current, owner).map(|_| ())
}

/// Whether a record counts as absent. Removing it is housekeeping and decides nothing.
#[must_use]
pub fn expired(record: &Record, now: Time) -> bool {
    now >= record.expires
}

fn owned(current: Option<&Record>, owner: OwnerToken) -> Result<&Record, LostLease> {
    current.filter(|record| record.owner == owner && matches!(record.state, State::Claimed { .. })).ok_or(LostLease)
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
        assert_eq!(second.state, State::Claimed { lease_until: Time(end.0 + 30_000) });
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

    #[test]
    fn time_stops_at_its_end() {
        assert_eq!(Time(u64::MAX - 1).after(Duration::from_secs(9)), Time(u64::MAX));
        assert_eq!(Time(1).after(Duration::MAX), Time(u64::MAX));
    }
}
