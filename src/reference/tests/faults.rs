//! Each fault, shown by requests that the correct server answers otherwise (see the other tests for its answers).

use super::*;

const A: &[(&str, &str)] = &[("Authorization", "Bearer token-a")];
const B: &[(&str, &str)] = &[("Authorization", "Bearer token-b")];

/// What a scenario comes to, without the fault and with it, in both stores.
async fn differs<T: PartialEq + std::fmt::Debug, F: Future<Output = T>>(
    fault: Fault,
    scenario: impl Fn(std::sync::Arc<Subject>) -> F,
    right: T,
    wrong: T,
) {
    for (faults, expected) in [(&[][..], &right), (&[fault][..], &wrong)] {
        with(faults, |subject| {
            let scenario = &scenario;
            async move { assert_eq!(scenario(subject).await, *expected, "{faults:?}") }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_then_act_race() {
    let scenario = async |subject: std::sync::Arc<Subject>| {
        let client = subject.client;
        let slow = [("X-Test-Delay-Ms", "1000")];
        let burst: Vec<_> =
            (0..8).map(|_| tokio::spawn(async move { client.pay("/payments", "k", BODY, &slow).await })).collect();
        let mut ids = std::collections::HashSet::new();
        for reply in burst {
            let reply = reply.await.unwrap().unwrap();
            assert!(reply.status == 201 || reply.status == 409);
            ids.extend((reply.status == 201).then(|| reply.id()));
        }
        let replayed = client.pay("/payments", "k", BODY, &[]).await.unwrap().replayed();
        (ids.len() == 1, ids.len() == client.effects(&[]).await, replayed)
    };
    differs(Fault::CheckThenActRace, scenario, (true, true, true), (false, true, true)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn record_after_effect() {
    let scenario = async |subject: std::sync::Arc<Subject>| {
        let client = subject.client;
        let fail = [("X-Test-Fail", "after"), ("X-Test-Fail-Times", "1")];
        let failed = client.pay("/payments", "k", BODY, &fail).await.unwrap();
        let retried = client.pay("/payments", "k", BODY, &fail).await.unwrap();
        let crashed = client.pay("/payments", "c", BODY, &[("X-Test-Fail", "crash-after")]).await;
        subject.advance(30.0).await;
        let recovered = client.pay("/payments", "c", BODY, &[]).await.unwrap();
        (failed.status, retried.status, crashed, recovered.status, client.effects(&[]).await)
    };
    differs(Fault::RecordAfterEffect, scenario, (500, 201, None, 201, 2), (500, 201, None, 201, 4)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payload_mismatch_ignored() {
    let scenario = async |subject: std::sync::Arc<Subject>| {
        let client = subject.client;
        client.pay("/payments", "k", BODY, &[]).await.unwrap();
        let other = client.pay("/payments", "k", OTHER, &[]).await.unwrap();
        (other.status, other.replayed(), client.effects(&[]).await)
    };
    differs(Fault::PayloadMismatchIgnored, scenario, (422, false, 1), (201, true, 1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cross_tenant_replay() {
    let scenario = async |subject: std::sync::Arc<Subject>| {
        let client = subject.client;
        let a = client.pay("/payments", "k", BODY, A).await.unwrap();
        let b = client.pay("/payments", "k", BODY, B).await.unwrap();
        (a.id() == b.id(), b.replayed(), client.effects(A).await, client.effects(B).await)
    };
    differs(Fault::CrossTenantReplay, scenario, (false, false, 1, 1), (true, true, 1, 0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn status_drift_on_replay() {
    let scenario = async |subject: std::sync::Arc<Subject>| {
        let client = subject.client;
        let first = client.pay("/payments", "k", BODY, &[]).await.unwrap();
        let repeat = client.pay("/payments", "k", BODY, &[]).await.unwrap();
        (first.status, repeat.status, first.body == repeat.body)
    };
    differs(Fault::StatusDriftOnReplay, scenario, (201, 201, true), (201, 200, true)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transient_failure_pinned() {
    let scenario = async |subject: std::sync::Arc<Subject>| {
        let client = subject.client;
        let fail = [("X-Test-Fail", "before"), ("X-Test-Fail-Times", "1")];
        let failed = client.pay("/payments", "k", BODY, &fail).await.unwrap();
        subject.advance(3600.0).await;
        let retried = client.pay("/payments", "k", BODY, &fail).await.unwrap();
        (failed.status, retried.status, retried.replayed(), client.effects(&[]).await)
    };
    differs(Fault::TransientFailurePinned, scenario, (500, 201, false, 1), (500, 500, true, 0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_below_contract() {
    let scenario = async |subject: std::sync::Arc<Subject>| {
        let client = subject.client;
        client.pay("/payments", "k", BODY, &[]).await.unwrap();
        subject.advance(86_400.0 / 2.0 - 60.0).await;
        let early = client.pay("/payments", "k", BODY, &[]).await.unwrap().replayed();
        subject.advance(120.0).await;
        let later = client.pay("/payments", "k", BODY, &[]).await.unwrap().replayed();
        (early, later, client.effects(&[]).await)
    };
    differs(Fault::RetentionBelowContract, scenario, (true, true, 1), (true, false, 2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orphaned_claim_wedge() {
    let scenario = async |subject: std::sync::Arc<Subject>| {
        let client = subject.client;
        client.pay("/payments", "k", BODY, &[("X-Test-Fail", "crash-before")]).await;
        let mut answers = Vec::new();
        for seconds in [0.0, 30.0, 3600.0, 86_400.0 - 3690.0, 60.0] {
            subject.advance(seconds).await;
            answers.push(client.pay("/payments", "k", BODY, &[]).await.unwrap().status);
        }
        answers
    };
    let right = vec![409, 201, 201, 201, 201];
    differs(Fault::OrphanedClaimWedge, scenario, right, vec![409, 409, 409, 409, 201]).await;
}
