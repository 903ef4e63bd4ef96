//! What the server promises when nothing goes wrong with it.

use super::*;
use std::sync::Arc;

const A: &[(&str, &str)] = &[("Authorization", "Bearer token-a")];
const B: &[(&str, &str)] = &[("Authorization", "Bearer token-b")];

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_gets_the_first_answer() {
    with(&[], async |subject| {
        let client = subject.client;
        for path in ["/payments", "/v1/payments"] {
            let before = client.effects(&[]).await;
            let first = client.pay(path, "k", BODY, &[]).await.unwrap();
            assert_eq!((first.status, first.replayed()), (201, false));
            let id = first.id();
            assert_eq!(first.header("location"), Some(format!("/payments/{id}").as_str()));
            assert_eq!(first.header("content-type"), Some("application/json"));
            let expected =
                format!(r#"{{"id":"{id}","amount":100,"currency":"TRY","reference":"r1","status":"approved"}}"#);
            assert_eq!(first.body, expected.as_bytes());
            let reformatted = "{ \"reference\":\"r1\", \"currency\":\"\\u0054RY\",\n\"amount\":100 }";
            for body in [BODY, reformatted] {
                let repeat = client.pay(path, "k", body, &[("X-Test-Delay-Ms", "0")]).await.unwrap();
                assert!(repeat.replayed());
                assert_eq!((repeat.status, &repeat.body), (201, &first.body));
                assert_eq!(repeat.header("location"), first.header("location"));
                assert_eq!(repeat.header("content-type"), first.header("content-type"));
            }
            assert_eq!(client.effects(&[]).await, before + 1);
            let shown = client.send("GET", &format!("/payments/{id}"), &[], b"").await.unwrap();
            assert_eq!((shown.status, shown.body), (200, first.body));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_request_under_a_used_key_is_refused_and_changes_nothing() {
    with(&[], async |subject| {
        let client = subject.client;
        let first = client.pay("/payments", "k", BODY, &[]).await.unwrap();
        let extra = r#"{"amount":100,"currency":"TRY","reference":"r1","note":"x"}"#;
        for (path, body) in [("/payments", OTHER), ("/payments", extra), ("/payments?x=1", BODY), ("/payments", "[]")] {
            let refused = client.pay(path, "k", body, &[]).await.unwrap();
            assert_eq!(refused.refusal(), (422, "key-reused".into()), "{path} {body}");
        }
        assert_eq!(client.pay("/payments", "k", BODY, &[]).await.unwrap().body, first.body);
        assert_eq!(client.effects(&[]).await, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_two_scopes_never_meet() {
    with(&[], async |subject| {
        let client = subject.client;
        let mut ids = Vec::new();
        for (path, tenant) in [("/payments", &[][..]), ("/payments", A), ("/payments", B), ("/v1/payments", A)] {
            let reply = client.pay(path, "k", BODY, tenant).await.unwrap();
            assert_eq!((reply.status, reply.replayed()), (201, false));
            ids.push(reply.id());
        }
        assert_eq!((client.effects(&[]).await, client.effects(A).await, client.effects(B).await), (1, 2, 1));
        let foreign = client.send("GET", &format!("/payments/{}", ids[1]), B, b"").await.unwrap();
        assert_eq!(foreign.refusal(), (404, "not-found".into()));
        assert_eq!(client.send("GET", &format!("/payments/{}", ids[1]), A, b"").await.unwrap().status, 200);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_checked_in_order_and_refusals_use_up_no_key() {
    with(&[], async |subject| {
        let client = subject.client;
        let key = ("Idempotency-Key", "\"k\"");
        let bare = ("Idempotency-Key", "k");
        let stranger = ("Authorization", "Bearer token-x");
        let send = async |headers: &[(&str, &str)], body: &str| {
            client.send("POST", "/payments", headers, body.as_bytes()).await.unwrap()
        };
        let refused = send(&[stranger], "{").await;
        assert_eq!(refused.refusal(), (401, "unauthorized".into()));
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        assert_eq!(send(&[stranger, key], BODY).await.status, 401);
        assert_eq!(send(&[], "{").await.refusal(), (400, "key-missing".into()));
        assert_eq!(send(&[bare], "{").await.refusal(), (400, "key-malformed".into()));
        assert_eq!(send(&[key, key], BODY).await.refusal(), (400, "key-malformed".into()));
        assert_eq!(send(&[("Idempotency-Key", "")], BODY).await.refusal(), (400, "key-malformed".into()));
        assert_eq!(send(&[key], "{").await.refusal(), (400, "bad-request".into()));
        assert_eq!(send(&[key, ("X-Test-Fail", "no")], BODY).await.refusal(), (400, "bad-request".into()));
        let invalid = BODY.replace("100", "-1");
        for _ in 0..2 {
            assert_eq!(send(&[key], &invalid).await.refusal(), (400, "invalid-payment".into()));
        }
        assert_eq!(client.effects(&[]).await, 0);
        let corrected = send(&[key], BODY).await;
        assert_eq!((corrected.status, corrected.replayed()), (201, false));
        assert_eq!(client.pay("/v1/payments", "v", &invalid, &[]).await.unwrap().status, 400);
        assert_eq!(client.pay("/v1/payments", "v", BODY, &[]).await.unwrap().status, 201);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_in_flight_refuses_its_repeats() {
    with(&[], async |subject| {
        let client = subject.client;
        let first =
            tokio::spawn(async move { client.pay("/payments", "k", BODY, &[("X-Test-Delay-Ms", "1500")]).await });
        subject.claimed("/payments", "k").await;
        let repeat = client.pay("/payments", "k", BODY, &[]).await.unwrap();
        assert_eq!(repeat.refusal(), (409, "key-in-use".into()));
        assert_eq!(repeat.header("retry-after"), Some("1"));
        assert_eq!(client.pay("/payments", "k", OTHER, &[]).await.unwrap().refusal(), (422, "key-reused".into()));
        let first = first.await.unwrap().unwrap();
        let repeat = client.pay("/payments", "k", BODY, &[]).await.unwrap();
        assert_eq!((first.status, repeat.replayed(), repeat.body), (201, true, first.body));
        assert_eq!(client.effects(&[]).await, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_has_one_effect() {
    with(&[], async |subject| {
        let client = subject.client;
        let burst: Vec<_> = (0..32)
            .map(|_| {
                tokio::spawn(async move { client.pay("/payments", "k", BODY, &[("X-Test-Delay-Ms", "20")]).await })
            })
            .collect();
        let mut successes = Vec::new();
        for reply in burst {
            let reply = reply.await.unwrap().unwrap();
            if reply.status == 201 {
                successes.push((reply.replayed(), reply.id()));
            } else {
                assert_eq!(reply.refusal(), (409, "key-in-use".into()));
            }
        }
        assert_eq!(successes.iter().filter(|(replayed, _)| !replayed).count(), 1);
        assert!(successes.iter().all(|(_, id)| *id == successes[0].1));
        assert_eq!(client.effects(&[]).await, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_kept_for_the_retention() {
    with(&[], async |subject| {
        let client = subject.client;
        let first = client.pay("/payments", "k", BODY, &[]).await.unwrap();
        subject.advance(86_400.0 - 60.0).await;
        let kept = client.pay("/payments", "k", BODY, &[]).await.unwrap();
        assert_eq!((kept.replayed(), kept.id()), (true, first.id()));
        subject.advance(60.0).await;
        let fresh = client.pay("/payments", "k", OTHER, &[]).await.unwrap();
        assert_eq!((fresh.status, fresh.replayed()), (201, false));
        assert_eq!(client.effects(&[]).await, 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_follow_the_policy_of_their_route() {
    with(&[], async |subject| {
        let client = subject.client;
        let mut effects = 0;
        for fail in ["before", "after", "throw-before", "throw-after"] {
            let headers = [("X-Test-Fail", fail), ("X-Test-Fail-Times", "1")];
            let body = BODY.replace("100", &format!("100,\"n\":\"{fail}\""));
            // The counts are per reference, so each round fails under one of its own.
            let body_of = |reference: &str| body.replace("r1", reference);
            let draft = body_of(&format!("draft-{fail}"));
            let failed = client.pay("/payments", fail, &draft, &headers).await.unwrap();
            assert_eq!(failed.refusal(), (500, "internal".into()));
            let retried = client.pay("/payments", fail, &draft, &headers).await.unwrap();
            assert_eq!((retried.status, retried.replayed()), (201, false));
            assert_eq!(count(&subject, &format!("draft-{fail}")).await, 1);

            let kept = body_of(&format!("kept-{fail}"));
            let failed = client.pay("/v1/payments", fail, &kept, &headers).await.unwrap();
            assert_eq!((failed.status, failed.replayed()), (500, false));
            subject.advance(80_000.0).await;
            let again = client.pay("/v1/payments", fail, &kept, &headers).await.unwrap();
            assert_eq!((again.status, again.replayed(), &again.body), (500, true, &failed.body));
            assert_eq!(again.problem(), "internal");
            let happened = usize::from(fail.ends_with("after"));
            assert_eq!(count(&subject, &format!("kept-{fail}")).await, happened, "{fail}");
            effects += happened;
        }
        assert_eq!(effects, 2);
    })
    .await;
}

async fn count(subject: &Arc<Subject>, reference: &str) -> usize {
    let reply = subject.client.send("GET", &format!("/payments?reference={reference}"), &[], b"").await.unwrap();
    reply.json()["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn the_other_routes_answer() {
    let subject = Subject::start(false, &[]).await;
    let client = subject.client;
    let get = async |path: &str| client.send("GET", path, &[], b"").await.unwrap();
    assert_eq!(get("/health").await.body, br#"{"status":"ok","in_flight":0,"owners":0}"#);
    assert!(String::from_utf8(get("/docs/idempotency").await.body).unwrap().contains("Idempotency-Key"));
    assert_eq!(get("/payments").await.refusal(), (400, "bad-request".into()));
    assert_eq!(get("/payments?reference=%C3%BC%22").await.body, br#"{"items":[]}"#);
    assert_eq!(get("/nothing").await.refusal(), (404, "not-found".into()));
    let refused = client.send("DELETE", "/payments", &[], b"").await.unwrap();
    assert_eq!(refused.refusal(), (405, "method-not-allowed".into()));
    let now = get("/test/clock").await.json()["now_ms"].as_u64().unwrap();
    let advance = async |body: &str| client.send("POST", "/test/clock", &[], body.as_bytes()).await.unwrap();
    assert!(advance(r#"{"seconds":1.5}"#).await.json()["now_ms"].as_u64().unwrap() >= now + 1500);
    for body in ["", "{}", r#"{"seconds":-1}"#, r#"{"seconds":1e300}"#, r#"{"seconds":"1"}"#, "[]", "{\"seconds\":NaN}"]
    {
        assert_eq!(advance(body).await.refusal(), (400, "bad-request".into()), "{body}");
    }
    subject.server.stop().await;
}
