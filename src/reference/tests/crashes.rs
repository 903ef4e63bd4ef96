//! What holds when owners die, hang or are abandoned, and when requests do not arrive whole.

use super::*;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const HUNG: (&str, &str) = ("X-Test-Stall", "yes");

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_owner_blocks_its_key_for_one_lease() {
    with(&[], async |subject| {
        let client = subject.client;
        for (path, fail) in
            [("/payments", "crash-before"), ("/payments", "crash-after"), ("/v1/payments", "crash-after")]
        {
            let before = client.effects(&[]).await;
            let crash = client.pay(path, fail, BODY, &[("X-Test-Fail", fail)]).await;
            assert_eq!(crash, None, "a dead worker answers nothing");
            assert_eq!(client.effects(&[]).await, before);
            subject.advance(25.0).await;
            assert_eq!(client.pay(path, fail, BODY, &[]).await.unwrap().refusal(), (409, "key-in-use".into()));
            subject.advance(5.0).await;
            let retry = client.pay(path, fail, BODY, &[]).await.unwrap();
            assert_eq!((retry.status, retry.replayed()), (201, false));
            assert!(client.pay(path, fail, BODY, &[]).await.unwrap().replayed());
            assert_eq!(client.effects(&[]).await, before + 1);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hung_owner_that_was_overtaken_cannot_commit() {
    with(&[], async |subject| {
        let client = subject.client;
        let late =
            tokio::spawn(async move { client.pay("/payments", "k", BODY, &[HUNG, ("X-Test-Delay-Ms", "2000")]).await });
        subject.claimed("/payments", "k").await;
        subject.advance(30.0).await;
        let retry = client.pay("/payments", "k", BODY, &[]).await.unwrap();
        assert_eq!((retry.status, retry.replayed()), (201, false));
        let late = late.await.unwrap().unwrap();
        assert_eq!(late.refusal(), (409, "lease-lost".into()));
        assert_eq!(client.effects(&[]).await, 1);
        assert_eq!(client.pay("/payments", "k", BODY, &[]).await.unwrap().body, retry.body);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_living_owner_is_not_overtaken() {
    with(&[], async |subject| {
        let client = subject.client;
        let slow =
            tokio::spawn(async move { client.pay("/payments", "k", BODY, &[("X-Test-Delay-Ms", "1500")]).await });
        subject.claimed("/payments", "k").await;
        for _ in 0..3 {
            subject.advance(30.0).await;
            assert_eq!(client.pay("/payments", "k", BODY, &[]).await.unwrap().refusal(), (409, "key-in-use".into()));
        }
        let slow = slow.await.unwrap().unwrap();
        let repeat = client.pay("/payments", "k", BODY, &[]).await.unwrap();
        assert_eq!((slow.status, repeat.replayed(), repeat.id()), (201, true, slow.id()));
        assert_eq!(client.effects(&[]).await, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_dies_after_its_commit_has_done_its_work() {
    with(&[], async |subject| {
        let client = subject.client;
        assert_eq!(client.pay("/payments", "k", BODY, &[("X-Test-Fail", "crash-committed")]).await, None);
        let repeat = client.pay("/payments", "k", BODY, &[]).await.unwrap();
        assert_eq!((repeat.status, repeat.replayed(), client.effects(&[]).await), (201, true, 1));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_cancels_nothing() {
    with(&[], async |subject| {
        let client = subject.client;
        let key = ("Idempotency-Key", "\"k\"");
        let request = client::request("POST", "/payments", &[key, ("X-Test-Delay-Ms", "300")], BODY.as_bytes());
        let mut stream = TcpStream::connect(client.addr).await.unwrap();
        stream.write_all(&request).await.unwrap();
        subject.claimed("/payments", "k").await;
        // Closing at once with a reset, which a server cannot mistake for a client that still listens.
        stream.set_zero_linger().unwrap();
        drop(stream);
        until(async || client.effects(&[]).await == 1).await;
        assert!(client.pay("/payments", "k", BODY, &[]).await.unwrap().replayed());
        assert_eq!(client.effects(&[]).await, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_dropped_with_its_request_cancels_nothing() {
    with(&[], async |subject| {
        let router = TowerToHyperService::new(http::router(subject.server.app.clone()));
        let request = axum::http::Request::post("/payments")
            .header("Idempotency-Key", "\"k\"")
            .header("X-Test-Delay-Ms", "300")
            .body(axum::body::Body::from(BODY))
            .unwrap();
        tokio::select! {
            _ = router.call(request) => {}
            () = subject.claimed("/payments", "k") => {}
        }
        until(async || subject.client.effects(&[]).await == 1).await;
        assert!(subject.client.pay("/payments", "k", BODY, &[]).await.unwrap().replayed());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_does_not_arrive_whole_does_nothing() {
    with(&[], async |subject| {
        let client = subject.client;
        let whole = client::request("POST", "/payments", &[("Idempotency-Key", "\"k\"")], BODY.as_bytes());
        for missing in [1, BODY.len() - 1, BODY.len() + 10] {
            let mut stream = TcpStream::connect(client.addr).await.unwrap();
            stream.write_all(&whole[..whole.len() - missing]).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut rest = Vec::new();
            let _ = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut rest).await;
            assert!(!rest.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&rest));
        }
        assert_eq!(client.effects(&[]).await, 0);
        // The key is free, for another payload too.
        assert_eq!(client.pay("/payments", "k", OTHER, &[]).await.unwrap().status, 201);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_large_claims_nothing() {
    with(&[], async |subject| {
        let client = subject.client;
        let padded = |length: usize| {
            let start = BODY.trim_end_matches('}');
            format!("{start},\"pad\":\"{}\"}}", "x".repeat(length - start.len() - 10))
        };
        let largest = padded(1024 * 1024);
        assert_eq!(largest.len(), 1024 * 1024);
        for length in [1024 * 1024 + 1, 8 * 1024 * 1024] {
            let refused = client.pay("/payments", "k", &padded(length), &[]).await.unwrap();
            assert_eq!(refused.refusal(), (413, "body-too-large".into()));
        }
        assert_eq!(client.pay("/payments", "k", &largest, &[]).await.unwrap().status, 201);
        let deep = "[".repeat(100_000);
        assert_eq!(client.pay("/payments", "d", &deep, &[]).await.unwrap().refusal(), (400, "bad-request".into()));
    })
    .await;
}
