//! Starting, stopping, and what is in the way of either.

use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test(flavor = "multi_thread")]
async fn stopping_lets_work_in_flight_finish() {
    for sqlite in [false, true] {
        let subject = Subject::start(sqlite, &[]).await;
        let client = subject.client;
        let slow = tokio::spawn(async move { client.pay("/payments", "k", BODY, &[("X-Test-Delay-Ms", "300")]).await });
        // An idle connection and one with half a request must not hold the stop up.
        let mut idle = TcpStream::connect(client.addr).await.unwrap();
        let mut half = TcpStream::connect(client.addr).await.unwrap();
        half.write_all(b"POST /payments HTTP/1.1\r\ncontent-length: 9\r\n\r\n{").await.unwrap();
        subject.claimed("/payments", "k").await;
        subject.server.stop().await;
        assert_eq!(slow.await.unwrap().unwrap().status, 201);
        for stream in [&mut idle, &mut half] {
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
        assert!(TcpStream::connect(client.addr).await.is_err(), "nobody listens any more");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_interrupts_endless_work_and_releases_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let config = || Config { store: StoreChoice::Sqlite(folder.path().join("store.db")), ..Config::default() };
    let server = start(config()).await.unwrap();
    let client = Client { addr: server.addr() };
    let endless =
        tokio::spawn(async move { client.pay("/v1/payments", "k", BODY, &[("X-Test-Delay-Ms", "60000")]).await });
    until(async || server.app.load.in_flight() == 1).await;
    server.stop().await;
    let answer = endless.await.unwrap().unwrap();
    assert_eq!(answer.refusal(), (503, "stopping".into()));
    let server = start(config()).await.unwrap();
    let client = Client { addr: server.addr() };
    let retry = client.pay("/v1/payments", "k", BODY, &[]).await.unwrap();
    assert_eq!((retry.status, retry.replayed(), client.effects(&[]).await), (201, false, 1));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_knows_its_keys() {
    let folder = tempfile::tempdir().unwrap();
    let config = || Config { store: StoreChoice::Sqlite(folder.path().join("store.db")), ..Config::default() };
    let mut answers: Vec<Reply> = Vec::new();
    for _ in 0..2 {
        let server = start(config()).await.unwrap();
        answers.push(Client { addr: server.addr() }.pay("/payments", "k", BODY, &[]).await.unwrap());
        server.stop().await;
    }
    assert_eq!((answers[1].replayed(), &answers[1].body), (true, &answers[0].body));
}

#[tokio::test]
async fn a_server_that_is_dropped_ends() {
    let server = start(Config::default()).await.unwrap();
    let addr = server.addr();
    drop(server);
    until(async || TcpStream::connect(addr).await.is_err()).await;
}

#[tokio::test]
async fn what_is_in_the_way_is_named() {
    let server = start(Config::default()).await.unwrap();
    let taken = start(Config { listen: server.addr(), ..Config::default() }).await.unwrap_err();
    assert!(matches!(taken, StartError::PortTaken(_)));
    assert!(taken.to_string().contains(&server.addr().to_string()));
    let store = StoreChoice::Sqlite("/no/such/folder/x.db".into());
    let error = start(Config { store, ..Config::default() }).await.unwrap_err();
    assert!(error.to_string().contains("/no/such/folder/x.db"), "{error}");
    let error = start(Config {
        contract: crate::reference::contract::Contract { lease: Duration::ZERO, ..Default::default() },
        ..Config::default()
    })
    .await
    .unwrap_err();
    assert_eq!(error.to_string(), "the lease must be at least 1 ms");
    let elsewhere = Config { listen: "192.0.2.1:0".parse().unwrap(), ..Config::default() };
    assert!(matches!(start(elsewhere).await, Err(StartError::Listen { .. })));
    server.stop().await;
}

#[tokio::test]
async fn broken_http_ends_its_connection_and_nothing_else() {
    let subject = Subject::start(false, &[]).await;
    for bytes in
        [&b"\0\xff\r\n\r\n"[..], b"POST /payments HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\ncontent-length: x\r\n\r\n"]
    {
        let reply = subject.client.raw(bytes).await;
        assert!(reply.is_none_or(|reply| reply.status >= 400));
    }
    assert_eq!(subject.client.send("GET", "/health", &[], b"").await.unwrap().status, 200);
    subject.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_refuses_and_does_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let server = start(Config { store: StoreChoice::Sqlite(path.clone()), ..Config::default() }).await.unwrap();
    let client = Client { addr: server.addr() };
    let holder = rusqlite::Connection::open(&path).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = client.pay("/payments", "k", BODY, &[]).await.unwrap();
    assert_eq!(refused.refusal(), (503, "store-unavailable".into()));
    holder.execute_batch("ROLLBACK").unwrap();
    assert_eq!(client.effects(&[]).await, 0);
    assert_eq!(client.pay("/payments", "k", BODY, &[]).await.unwrap().status, 201);
    // The table of the effects breaks between claim and commit: the claim is given back and nothing has happened.
    holder.execute_batch("ALTER TABLE resources RENAME TO gone").unwrap();
    let refused = client.pay("/payments", "l", BODY, &[]).await.unwrap();
    assert_eq!(refused.refusal(), (503, "store-unavailable".into()));
    holder.execute_batch("ALTER TABLE gone RENAME TO resources").unwrap();
    let retry = client.pay("/payments", "l", BODY, &[]).await.unwrap();
    assert_eq!((retry.status, retry.replayed(), client.effects(&[]).await), (201, false, 2));
    server.stop().await;
}
