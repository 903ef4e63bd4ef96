//! A payment with an outside system: whatever happens between its phases, the card is charged once.

use super::*;

async fn charge(client: Client, key: &str, headers: &[(&str, &str)]) -> Option<Reply> {
    client.pay("/charges", key, BODY, headers).await
}

async fn count(client: Client, path: &str) -> usize {
    let path = format!("{path}?reference=r1");
    client.send("GET", &path, &[], b"").await.unwrap().json()["items"].as_array().unwrap().len()
}

/// One payment, one charge, one notification, and all of them speak of the same.
async fn happened_once(client: Client, reply: &Reply) {
    until(async || count(client, "/test/notifications").await == 1).await;
    assert_eq!((count(client, "/payments").await, count(client, "/test/provider/charges").await), (1, 1));
    let get = async |path: &str| client.send("GET", path, &[], b"").await.unwrap().json();
    let charges = get("/test/provider/charges?reference=r1").await;
    assert_eq!(reply.json()["charge"], charges["items"][0]["id"]);
    let calls = get("/test/provider/calls?reference=r1").await;
    let calls = calls["items"].as_array().unwrap();
    assert!(calls.iter().all(|call| call["key"].is_string() && call == &calls[0]), "{calls:?}");
    let about = &get("/test/notifications?reference=r1").await["items"][0]["about"];
    assert_eq!(about["payment"], reply.json()["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_between_any_two_phases_charges_once() {
    for moment in ["before", "started", "between", "after", "committed"] {
        with(&[], async |subject| {
            let client = subject.client;
            let crash = format!("crash-{moment}");
            assert_eq!(charge(client, "k", &[("X-Test-Fail", &crash)]).await, None);
            let expected = (usize::from(moment != "before"), usize::from(!["before", "started"].contains(&moment)));
            let happened = (count(client, "/payments").await, count(client, "/test/provider/charges").await);
            assert_eq!(happened, expected, "{moment}");
            if moment != "committed" {
                assert_eq!(charge(client, "k", &[]).await.unwrap().refusal(), (409, "key-in-use".into()));
                subject.advance(30.0).await;
            }
            let retry = charge(client, "k", &[]).await.unwrap();
            assert_eq!((retry.status, retry.replayed()), (201, moment == "committed"), "{moment}");
            assert_eq!(charge(client, "k", &[]).await.unwrap().body, retry.body);
            happened_once(client, &retry).await;
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_between_phases_goes_on_where_it_stopped() {
    for fail in ["before", "started", "throw-started", "between", "throw-between", "after", "throw-after"] {
        with(&[], async |subject| {
            let client = subject.client;
            let failing = [("X-Test-Fail", fail), ("X-Test-Fail-Times", "1")];
            assert_eq!(charge(client, "k", &failing).await.unwrap().refusal(), (500, "internal".into()));
            if fail != "before" {
                // The intent has begun, so the key is bound to it.
                assert_eq!(client.pay("/charges", "k", OTHER, &[]).await.unwrap().status, 422);
            }
            let retry = charge(client, "k", &failing).await.unwrap();
            assert_eq!((retry.status, retry.replayed()), (201, false), "{fail}");
            happened_once(client, &retry).await;
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_network_that_fails_is_called_again_with_the_same_key() {
    for fail in ["before", "after"] {
        with(&[], async |subject| {
            let client = subject.client;
            // Once: the handler itself calls again.
            let once = [("X-Test-Provider-Fail", fail), ("X-Test-Fail-Times", "1")];
            let first = charge(client, "k", &once).await.unwrap();
            assert_eq!((first.status, count(client, "/test/provider/calls").await), (201, 2));
            happened_once(client, &first).await;
        })
        .await;
        with(&[], async |subject| {
            let client = subject.client;
            let always = [("X-Test-Provider-Fail", fail)];
            for _ in 0..2 {
                assert_eq!(charge(client, "k", &always).await.unwrap().refusal(), (502, "provider-failed".into()));
            }
            assert_eq!(count(client, "/test/notifications").await, 0);
            let retry = charge(client, "k", &[]).await.unwrap();
            assert_eq!((retry.status, count(client, "/test/provider/calls").await), (201, 5));
            happened_once(client, &retry).await;
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_payment_network_and_a_hung_owner_charge_once() {
    with(&[], async |subject| {
        let client = subject.client;
        let slow = [("X-Test-Provider-Delay-Ms", "1500"), ("X-Test-Stall", "yes")];
        let hung = tokio::spawn(async move { charge(client, "k", &slow).await });
        until(async || count(client, "/payments").await == 1).await;
        subject.advance(30.0).await;
        let second = charge(client, "k", &[]).await.unwrap();
        assert_eq!((second.status, second.replayed()), (201, false));
        assert_eq!(hung.await.unwrap().unwrap().refusal(), (409, "lease-lost".into()));
        assert_eq!(count(client, "/test/provider/calls").await, 2);
        happened_once(client, &second).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_new_again_after_the_retention_charges_again() {
    with(&[], async |subject| {
        let client = subject.client;
        charge(client, "k", &[]).await.unwrap();
        subject.advance(86_400.0).await;
        let again = charge(client, "k", &[]).await.unwrap();
        assert_eq!((again.status, again.replayed()), (201, false));
        assert_eq!((count(client, "/payments").await, count(client, "/test/provider/charges").await), (2, 2));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_happen_cannot_be_asked_for() {
    with(&[], async |subject| {
        let client = subject.client;
        for header in [("X-Test-Fail", "between"), ("X-Test-Provider-Fail", "after")] {
            let refused = client.pay("/payments", "k", BODY, &[header]).await.unwrap();
            assert_eq!(refused.refusal(), (400, "bad-request".into()));
        }
    })
    .await;
}
