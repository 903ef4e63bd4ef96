//! Rows on which the embedded server is meant to differ: where a real Toxiproxy hangs or dies.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::{Ending, Target, Upstream, closed_port, dial, drain, echo, exchange, is_open, soon};

/// Longest time for a call in these rows; the machine may be busy, a real Toxiproxy needs 25 seconds or for ever.
const ANSWERED: Duration = Duration::from_secs(10);

pub(crate) async fn a2_changes_are_served_under_back_pressure(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    let (mut client, server) = upstream.pair(addr).await;
    // Fill everything between a client that writes and a server that does not read.
    let full = Duration::from_millis(300);
    while tokio::time::timeout(full, client.write_all(&[0; 65536])).await.is_ok() {}
    let start = Instant::now();
    for kind in ["latency", "noop", "timeout", "limit_data", "bandwidth"] {
        t.toxic(&path, "upstream", kind, json!({})).await;
    }
    t.patch(&format!("{path}/toxics/bandwidth_upstream"), json!({"attributes": {"rate": 5}})).await;
    assert_eq!(t.delete(&format!("{path}/toxics/noop_upstream")).await, 204);
    assert_eq!(t.get("/proxies").await.status, 200);
    t.patch(&path, json!({"enabled": false})).await;
    assert!(start.elapsed() < ANSWERED, "{:?}", start.elapsed());
    drop(server);
}

pub(crate) async fn a3_crashers_are_refused(t: &Target) {
    let (path, _) = t.proxy(closed_port().await).await;
    let toxics = format!("{path}/toxics");
    for (kind, attributes) in [
        ("slicer", json!({})),
        ("slicer", json!({"average_size": 10, "size_variation": 11})),
        ("slicer", json!({"average_size": -1})),
        ("bandwidth", json!({"rate": -1})),
        ("latency", json!({"jitter": i64::MAX})),
    ] {
        let refused = t.call("POST", &toxics, json!({"type": kind, "attributes": attributes})).await;
        assert_eq!(refused.status, 400, "{kind} {attributes}");
        assert!(refused.error().1.contains(kind));
    }
    let toxic = t.toxic(&path, "upstream", "bandwidth", json!({"rate": 5})).await;
    assert_eq!(t.call("PATCH", &toxic, json!({"attributes": {"rate": -5}})).await.status, 400);
    assert_eq!(t.get(&toxic).await.json()["attributes"]["rate"], 5, "a refused update changes nothing");
    // The largest numbers do no harm on a live connection.
    let server = echo().await;
    let (path, addr) = t.proxy(server.addr).await;
    let mut client = dial(addr).await;
    for kind in ["slow_close", "timeout", "limit_data", "bandwidth", "latency", "reset_peer"] {
        let big = i64::MAX;
        let attributes = json!({"latency": big, "delay": big, "timeout": big, "bytes": big, "rate": big});
        t.toxic(&path, "upstream", kind, attributes).await;
    }
    client.write_all(b"held").await.unwrap();
    assert_eq!(t.get("/version").await.status, 200);
    for name in ["a/b", "/"] {
        let body = json!({"name": name, "upstream": "x:1", "type": "noop"});
        assert_eq!(t.call("POST", "/proxies", body.clone()).await.status, 400);
        assert_eq!(t.call("POST", &toxics, body).await.status, 400);
    }
}

pub(crate) async fn row_50_removal_when_nobody_reads(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    let toxic = t.toxic(&path, "upstream", "latency", json!({"latency": 1})).await;
    let (mut client, server) = upstream.pair(addr).await;
    let full = Duration::from_millis(300);
    while tokio::time::timeout(full, client.write_all(&[0; 65536])).await.is_ok() {}
    let start = Instant::now();
    assert_eq!(t.delete(&toxic).await, 204);
    assert!(start.elapsed() < ANSWERED);
    drop((client, server));
    assert_eq!(t.delete(&path).await, 204);
}

pub(crate) async fn x5_reset_peer_resets_open_connections(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    let (mut client, mut server) = upstream.pair(addr).await;
    t.toxic(&path, "upstream", "reset_peer", json!({"timeout": 0})).await;
    client.write_all(b"lost").await.unwrap();
    assert_eq!(drain(&mut client).await, (vec![], Ending::Rst));
    assert_eq!(drain(&mut server).await, (vec![], Ending::Rst));
}

pub(crate) async fn reset_under_way_can_be_removed(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    let toxic = t.toxic(&path, "upstream", "reset_peer", json!({"timeout": 3_600_000})).await;
    let (mut client, mut server) = upstream.raw_pair(addr).await;
    client.write_all(b"lost").await.unwrap();
    // The bytes have been swallowed when a later exchange the other way has worked.
    server.write_all(b"!").await.unwrap();
    crate::harness::read_n(&mut client, 1).await;
    assert_eq!(t.get("/proxies").await.status, 200);
    assert_eq!(t.delete(&toxic).await, 204);
    // Removed before or after the bytes came: they arrive whole, or the connection is reset.
    let mut bytes = [0; 4];
    match soon(server.read_exact(&mut bytes)).await {
        Ok(_) => assert_eq!(&bytes, b"lost"),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
    }
}

pub(crate) async fn a_hanging_dial_holds_nobody_up(t: &Target) {
    // A port whose backlog is full does not answer; 192.0.2.0/24 is for documentation and leads nowhere or is refused.
    let (path, addr) = t.proxy("192.0.2.1:9".parse().unwrap()).await;
    let _first = dial(addr).await;
    let _second = dial(addr).await;
    let start = Instant::now();
    t.toxic(&path, "upstream", "latency", json!({})).await;
    t.patch(&path, json!({"enabled": false})).await;
    assert!(start.elapsed() < ANSWERED);
    assert!(!is_open(addr).await);
}

pub(crate) async fn a14_a_thousand_cuts_leave_no_task(t: &Target) {
    let server = echo().await;
    let (path, addr) = t.proxy(server.addr).await;
    exchange(&mut dial(addr).await, "warm").await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    t.toxic(&path, "downstream", "limit_data", json!({"bytes": 3})).await;
    for _ in 0..1000 {
        let mut client = dial(addr).await;
        client.write_all(b"abcdef").await.unwrap();
        assert_eq!(drain(&mut client).await.0, b"abc");
    }
    soon(async {
        while tasks() > before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

pub(crate) async fn malformed_bodies_are_answered(t: &Target) {
    let (path, _) = t.proxy(closed_port().await).await;
    let huge = "x".repeat(2 * 1024 * 1024);
    let deep = "[".repeat(500_000);
    let paths = ["/proxies".to_owned(), "/populate".to_owned(), path.clone(), format!("{path}/toxics")];
    for body in ["", "\0", "{", "[[[", "\"text\"", "1e999", "{\"name\":{}}", "[1]", &deep] {
        for path in &paths {
            let answer = t.send("POST", path, "rows", body.to_owned()).await;
            assert_eq!(answer.status, 400, "{path} {}", &body[..body.len().min(20)]);
            assert!(answer.error().1.starts_with("bad request body: "));
        }
    }
    let refused = t.send("POST", "/proxies", "rows", format!("{{\"name\":\"{huge}\"}}")).await;
    assert_eq!(refused.status, 400);
    assert_eq!(t.send("GET", "/proxies/%zz", "rows", "").await.status, 404);
    assert_eq!(t.send("GET", "/proxies/%ff", "rows", "").await.status, 404);
}

pub(crate) async fn stopping_closes_everything(_: &Target) {
    let target = Target::embedded().await;
    let mut upstream = Upstream::start().await;
    let (_, addr) = target.proxy(upstream.addr).await;
    let (mut client, mut server) = upstream.pair(addr).await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    target.stop().await;
    assert!(!is_open(addr).await);
    assert_eq!(drain(&mut client).await, (vec![], Ending::Fin));
    assert_eq!(drain(&mut server).await, (vec![], Ending::Fin));
    let after = tasks();
    // A dropped server ends as well, without anybody waiting for it.
    let dropped = Target::embedded().await;
    let (_, addr) = dropped.proxy(upstream.addr).await;
    let (mut client, _server) = upstream.pair(addr).await;
    drop(dropped);
    assert_eq!(drain(&mut client).await, (vec![], Ending::Fin));
    soon(async {
        while is_open(addr).await || tasks() > after {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
