//! What each operation does, and what its repeats get.

use super::*;

/// Sends JSON with a key.
async fn keyed(client: Client, method: &str, path: &str, key: &str, body: &str, headers: &[(&str, &str)]) -> Reply {
    let key = format!("\"{key}\"");
    let headers = [&[("Idempotency-Key", key.as_str())], headers].concat();
    client.send(method, path, &headers, body.as_bytes()).await.unwrap()
}

/// The items of a list.
async fn items(client: Client, path: &str) -> Vec<serde_json::Value> {
    let path = format!("{path}?reference=r1");
    client.send("GET", &path, &[], b"").await.unwrap().json()["items"].as_array().unwrap().clone()
}

/// Everything that a repeat must give again.
fn result(reply: &Reply) -> (u16, Vec<u8>, Vec<Option<&str>>) {
    let kept = ["content-type", "location", "etag", "content-length", "transfer-encoding"];
    (reply.status, reply.body.clone(), kept.map(|name| reply.header(name)).to_vec())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_keyed_operation_happens_once() {
    let operations = [
        ("POST", "/payments", BODY, "/payments", 201, 1),
        ("POST", "/v1/payments", BODY, "/payments", 201, 1),
        ("POST", "/charges", BODY, "/payments", 201, 1),
        ("POST", "/payments/pay_demo/refunds", r#"{"amount":5,"reference":"r1"}"#, "/refunds", 201, 1),
        ("PATCH", "/payments/pay_demo", r#"{"add":5,"reference":"r1"}"#, "/changes", 200, 1),
        ("POST", "/receipts", r#"{"reference":"r1"}"#, "/receipts", 201, 1),
        ("POST", "/statements", r#"{"reference":"r1"}"#, "/statements", 201, 1),
        ("POST", "/exports", r#"{"reference":"r1"}"#, "/exports", 202, 1),
        (
            "POST",
            "/payments/batch",
            r#"{"items":[{"amount":1,"currency":"TRY","reference":"r1"},{"amount":-1},{"amount":2,"currency":"TRY","reference":"r1"}]}"#,
            "/payments",
            200,
            2,
        ),
    ];
    for (method, path, body, list, status, effects) in operations {
        with(&[], async |subject| {
            let client = subject.client;
            // The work begins, fails, is given back, is done, is repeated.
            for fail in ["before", "after"] {
                let failing = [("X-Test-Fail", fail), ("X-Test-Fail-Times", "0")];
                assert!(keyed(client, method, path, fail, "[]", &failing).await.status < 500, "{path}");
            }
            let first = keyed(client, method, path, "k", body, &[]).await;
            assert_eq!((first.status, first.replayed()), (status, false), "{path} {first:?}");
            for _ in 0..2 {
                let again = keyed(client, method, path, "k", body, &[("X-Test-Delay-Ms", "0")]).await;
                assert!(again.replayed(), "{path}");
                assert_eq!(result(&again), result(&first), "{path}");
            }
            assert_eq!(items(client, list).await.len(), effects, "{path}");
            let other = body.replace("r1", "r2");
            assert_eq!(keyed(client, method, path, "k", &other, &[]).await.refusal(), (422, "key-reused".into()));
            let second = keyed(client, method, path, "l", body, &[]).await;
            assert_eq!((second.status, second.replayed()), (status, false));
            assert_ne!(second.body, first.body, "{path}");
            assert_eq!(items(client, list).await.len(), 2 * effects, "{path}");
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_has_an_outcome_for_each_item() {
    with(&[], async |subject| {
        let client = subject.client;
        let good = BODY;
        let body = format!(
            r#"{{"items":[{good},{{"amount":0}},{{"amount":1,"currency":"TRY","reference":"r1","card":"declined"}}]}}"#
        );
        let reply = keyed(client, "POST", "/payments/batch", "k", &body, &[]).await;
        let outcomes = reply.json()["items"].as_array().unwrap().clone();
        let statuses: Vec<_> = outcomes.iter().map(|outcome| outcome["status"].as_u64().unwrap()).collect();
        assert_eq!(statuses, [201, 400, 402]);
        assert_eq!(items(client, "/payments").await, [outcomes[0]["payment"].clone()]);
        for body in [r#"{"items":[]}"#, "[]", r#"{"items":5}"#, &format!(r#"{{"items":[{}1]}}"#, "1,".repeat(100))] {
            let refused = keyed(client, "POST", "/payments/batch", "bad", body, &[]).await;
            assert_eq!(refused.refusal(), (400, "invalid".into()), "{body}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declined_card_is_a_final_answer() {
    with(&[], async |subject| {
        let client = subject.client;
        let body = BODY.replace("100", "100,\"card\":\"declined\"");
        for path in ["/payments", "/charges"] {
            assert_eq!(keyed(client, "POST", path, "k", &body, &[]).await.refusal(), (402, "card-declined".into()));
            assert!(keyed(client, "POST", path, "k", &body, &[]).await.replayed());
            assert_eq!(keyed(client, "POST", path, "k", BODY, &[]).await.status, 422);
        }
        assert!(items(client, "/payments").await.is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refunds_that_overlap_never_give_back_more_than_was_paid() {
    with(&[], async |subject| {
        let client = subject.client;
        let payment = client.pay("/payments", "p", BODY, &[]).await.unwrap().id();
        let path = format!("/payments/{payment}/refunds");
        let refunds: Vec<_> = (0..16)
            .map(|n| {
                let path = path.clone();
                let body = r#"{"amount":30,"reference":"r1"}"#;
                tokio::spawn(async move { keyed(client, "POST", &path, &format!("k{n}"), body, &[]).await.status })
            })
            .collect();
        let mut given = 0;
        for refund in refunds {
            given += usize::from(refund.await.unwrap() == 201);
        }
        assert_eq!((given, items(client, "/refunds").await.len()), (3, 3));
        let shown = client.send("GET", &format!("/payments/{payment}"), &[], b"").await.unwrap();
        assert_eq!(shown.json()["refunded"], 90);
        let nobody =
            keyed(client, "POST", "/payments/pay_x/refunds", "n", r#"{"amount":1,"reference":"r"}"#, &[]).await;
        assert_eq!(nobody.refusal(), (404, "not-found".into()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_add_up() {
    with(&[], async |subject| {
        let client = subject.client;
        let payment = client.pay("/payments", "p", BODY, &[]).await.unwrap().id();
        let path = format!("/payments/{payment}");
        let changes: Vec<_> = (0..8)
            .map(|n| {
                let path = path.clone();
                let body = r#"{"add":5,"note":"n","reference":"r1"}"#;
                tokio::spawn(async move { keyed(client, "PATCH", &path, &format!("k{n}"), body, &[]).await.status })
            })
            .collect();
        for change in changes {
            assert_eq!(change.await.unwrap(), 200);
        }
        let shown = client.send("GET", &path, &[], b"").await.unwrap();
        assert_eq!((shown.json()["amount"].clone(), shown.json()["note"].clone()), (140.into(), "n".into()));
        assert_eq!(items(client, "/changes").await.len(), 8);
        for body in ["{}", r#"{"add":0,"reference":"r1"}"#, r#"{"add":-500,"reference":"r1"}"#, r#"{"add":1}"#] {
            assert_eq!(keyed(client, "PATCH", &path, "bad", body, &[]).await.refusal(), (400, "invalid".into()));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streamed_answer_comes_in_chunks_and_a_binary_one_keeps_every_byte() {
    with(&[], async |subject| {
        let client = subject.client;
        let streamed = keyed(client, "POST", "/statements", "k", r#"{"reference":"r1"}"#, &[]).await;
        assert_eq!(streamed.header("transfer-encoding"), Some("chunked"));
        assert_eq!(streamed.header("content-length"), None);
        assert!(streamed.body.ends_with(b"\r\n0\r\n\r\n"));
        let binary = keyed(client, "POST", "/receipts", "k", r#"{"reference":"r1"}"#, &[]).await;
        assert_eq!(binary.header("content-type"), Some("application/octet-stream"));
        assert!(binary.body.ends_with(&(0..=255).collect::<Vec<u8>>()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_accepted_and_done_later() {
    with(&[], async |subject| {
        let client = subject.client;
        client.pay("/payments", "p", BODY, &[]).await.unwrap();
        let accepted = keyed(client, "POST", "/exports", "k", r#"{"reference":"r1"}"#, &[]).await;
        assert_eq!((accepted.status, &accepted.json()["status"]), (202, &"running".into()));
        let location = accepted.header("location").unwrap().to_owned();
        let done = async || client.send("GET", &location, &[], b"").await.unwrap().json()["status"] == "done";
        until(done).await;
        let repeat = keyed(client, "POST", "/exports", "k", r#"{"reference":"r1"}"#, &[]).await;
        assert_eq!(repeat.body, accepted.body);
        assert_eq!(items(client, "/exports").await[0]["rows"], 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_need_no_key() {
    with(&[], async |subject| {
        let client = subject.client;
        let body = r#"{"amount":1,"reference":"r1"}"#;
        let other = r#"{"amount":2,"reference":"r1"}"#;
        let send = async |method: &str, headers: &[(&str, &str)], body: &str| {
            client.send(method, "/orders/o-1", headers, body.as_bytes()).await.unwrap()
        };
        let first = [("If-None-Match", "*")];
        let created = send("PUT", &first, body).await;
        let tag = created.header("etag").unwrap().to_owned();
        assert_eq!((created.status, created.header("location")), (201, Some("/orders/o-1")));
        assert_eq!(send("PUT", &first, body).await.refusal(), (412, "precondition-failed".into()));
        // Setting it to what it is changes nothing and tells nobody.
        let same = send("PUT", &[], body).await;
        assert_eq!((same.status, same.header("etag")), (200, Some(tag.as_str())));
        let changed = send("PUT", &[("If-Match", &tag)], other).await;
        let next = changed.header("etag").unwrap().to_owned();
        assert_eq!(changed.status, 200);
        assert_eq!(send("PUT", &[("If-Match", &tag)], body).await.status, 412);
        assert_eq!(send("DELETE", &[("If-Match", &tag)], "").await.status, 412);
        assert_eq!(send("GET", &[], "").await.header("etag"), Some(next.as_str()));
        assert_eq!(send("PUT", &[("If-Match", "nonsense")], body).await.refusal(), (400, "bad-request".into()));
        let removed = send("DELETE", &[], "").await;
        assert_eq!((removed.status, removed.body), (204, Vec::new()));
        assert_eq!(send("DELETE", &[], "").await.refusal(), (404, "not-found".into()));
        // A late delete of the old order does not remove the new one, though the new one is equal.
        assert_eq!(send("PUT", &first, other).await.status, 201);
        assert_eq!(send("DELETE", &[("If-Match", &next)], "").await.status, 412);
        until(async || items(client, "/test/notifications").await.len() == 4).await;
        assert_eq!(items(client, "/orders").await.len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_creates_that_overlap_one_wins() {
    with(&[], async |subject| {
        let client = subject.client;
        let creates: Vec<_> = (0..16)
            .map(|n| {
                let body = format!(r#"{{"amount":{},"reference":"r1"}}"#, n + 1);
                tokio::spawn(async move {
                    let headers = [("If-None-Match", "*"), ("X-Test-Delay-Ms", "20")];
                    client.send("PUT", "/orders/o", &headers, body.as_bytes()).await.unwrap().status
                })
            })
            .collect();
        let mut statuses = Vec::new();
        for create in creates {
            statuses.push(create.await.unwrap());
        }
        statuses.sort_unstable();
        assert_eq!((statuses[0], &statuses[1..]), (201, &[412; 15][..]));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_has_its_effect_once() {
    with(&[], async |subject| {
        let client = subject.client;
        let body = r#"{"id":"evt_1","amount":3,"reference":"r1"}"#;
        let deliver = move || async move { client.send("POST", "/webhooks", &[], body.as_bytes()).await.unwrap() };
        let burst: Vec<_> = (0..16).map(|_| tokio::spawn(deliver())).collect();
        let mut processed = 0;
        for delivery in burst {
            let reply = delivery.await.unwrap();
            assert_eq!(reply.status, 200);
            processed += usize::from(reply.json()["status"] == "processed");
        }
        assert_eq!(processed, 1);
        assert_eq!(deliver().await.json()["status"], "duplicate");
        assert_eq!((items(client, "/webhooks").await.len(), items(client, "/credits").await.len()), (1, 1));
        let refused = client.send("POST", "/webhooks", &[], b"{}").await.unwrap();
        assert_eq!(refused.refusal(), (400, "invalid".into()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_every_request_is_a_new_one() {
    with(&[], async |subject| {
        let client = subject.client;
        for key in [&[][..], &[("Idempotency-Key", "\"k\"")], &[("Idempotency-Key", "\"k\"")]] {
            let reply = client.send("POST", "/keyless/payments", key, BODY.as_bytes()).await.unwrap();
            assert_eq!((reply.status, reply.replayed()), (201, false));
        }
        assert_eq!(client.effects(&[]).await, 3);
        for (fail, status) in [("before", Some(500)), ("throw-after", Some(500)), ("crash-after", None)] {
            let reply = client.send("POST", "/keyless/payments", &[("X-Test-Fail", fail)], BODY.as_bytes()).await;
            assert_eq!(reply.map(|reply| reply.status), status);
        }
        assert_eq!(client.effects(&[]).await, 3);
        let crash = [("X-Test-Fail", "crash-committed")];
        assert_eq!(client.send("POST", "/keyless/payments", &crash, BODY.as_bytes()).await, None);
        assert_eq!(client.effects(&[]).await, 4);
    })
    .await;
}
