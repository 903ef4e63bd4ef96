//! Rows about what happens to bytes and connections.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::harness::{Ending, Target, Upstream, closed_port, dial, drain, echo, exchange, read_n, silent};

fn millis(value: u64) -> Duration {
    Duration::from_millis(value)
}

pub(crate) async fn row_33_messages_arrive_whole(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (_, addr) = t.proxy(upstream.addr).await;
    for message in [b"hello world".to_vec(), vec![7; 64 * 1024], vec![9; 3_000_000]] {
        let (mut client, mut server) = upstream.raw_pair(addr).await;
        let (head, tail) = message.split_at(message.len() / 2);
        let sending = async {
            client.write_all(head).await.unwrap();
            client.write_all(tail).await.unwrap();
            client.shutdown().await.unwrap();
        };
        let ((), (got, ending)) = tokio::join!(sending, drain(&mut server));
        assert!(got == message && ending == Ending::Fin);
    }
}

pub(crate) async fn row_34_upstream_down(t: &Target) {
    let (_, addr) = t.proxy(closed_port().await).await;
    let mut client = dial(addr).await;
    assert_eq!(drain(&mut client).await, (vec![], Ending::Fin));
}

pub(crate) async fn row_37_a_live_connection_survives_noops(t: &Target) {
    let server = echo().await;
    let (path, addr) = t.proxy(server.addr).await;
    let mut client = dial(addr).await;
    for round in 0..100 {
        exchange(&mut client, &format!("round {round}")).await;
        let up = t.toxic(&path, "upstream", "noop", json!({})).await;
        let down = t.toxic(&path, "downstream", "noop", json!({})).await;
        exchange(&mut client, "with noops").await;
        if round % 50 == 0 && t.alone {
            assert_eq!(t.call("POST", "/reset", json!({})).await.status, 204);
        } else {
            assert_eq!((t.delete(&up).await, t.delete(&down).await), (204, 204));
        }
    }
}

pub(crate) async fn row_39_latency(t: &Target) {
    let server = echo().await;
    for (streams, latency, least) in [
        (vec!["upstream"], 100, 100),
        (vec!["downstream"], 100, 100),
        (vec!["upstream", "downstream"], 100, 200),
        (vec!["upstream"], 0, 0),
        (vec!["downstream"], -5, 0),
    ] {
        let (path, addr) = t.proxy(server.addr).await;
        let mut client = dial(addr).await;
        exchange(&mut client, "prime").await;
        for stream in streams {
            t.toxic(&path, stream, "latency", json!({"latency": latency})).await;
        }
        let start = Instant::now();
        exchange(&mut client, "late").await;
        assert!(start.elapsed() >= millis(least), "{:?} is less than {least} ms", start.elapsed());
    }
}

pub(crate) async fn row_42_bandwidth(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    t.toxic(&path, "upstream", "bandwidth", json!({"rate": 1000})).await;
    let (mut client, mut server) = upstream.raw_pair(addr).await;
    let message: Vec<u8> = (0..480_000u32).map(|n| n as u8).collect();
    let start = Instant::now();
    let sending = async {
        client.write_all(&message).await.unwrap();
        client.shutdown().await.unwrap();
    };
    let ((), (got, ending)) = tokio::join!(sending, drain(&mut server));
    assert!(got == message && ending == Ending::Fin);
    // The real one starts counting a little before the first byte is through.
    assert!(start.elapsed() >= millis(460), "{:?}", start.elapsed());
}

pub(crate) async fn row_43_slicer(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    let attributes = json!({"average_size": 1024, "size_variation": 512, "delay": 10});
    let toxic = t.toxic(&path, "upstream", "slicer", attributes).await;
    let message: Vec<u8> = (0..48_000u32).map(|n| n as u8).collect();
    let (mut client, mut server) = upstream.raw_pair(addr).await;
    client.write_all(&message).await.unwrap();
    client.shutdown().await.unwrap();
    assert!(drain(&mut server).await.0 == message);
    assert_eq!(t.delete(&toxic).await, 204);
    // Pieces of one byte, a pause after each: 24 bytes take 23 pauses at least.
    t.toxic(&path, "upstream", "slicer", json!({"average_size": 1, "delay": 5000})).await;
    let (mut client, mut server) = upstream.raw_pair(addr).await;
    let start = Instant::now();
    client.write_all(b"abcdefghijklmnopqrstuvwx").await.unwrap();
    assert_eq!(read_n(&mut server, 24).await, b"abcdefghijklmnopqrstuvwx");
    assert!(start.elapsed() >= millis(115), "{:?}", start.elapsed());
}

pub(crate) async fn row_44_limit_data(t: &Target) {
    let mut upstream = Upstream::start().await;
    // (limit, messages, what arrives)
    let cases: [(u64, &[&str], &str); 5] = [
        (4, &["abcdef"], "abcd"),
        (6, &["abcdef"], "abcdef"),
        (3, &["a", "b", "c", "d"], "abc"),
        (4, &["abc", "def"], "abcd"),
        (0, &["abc"], ""),
    ];
    for (bytes, messages, arrives) in cases {
        let (path, addr) = t.proxy(upstream.addr).await;
        t.toxic(&path, "upstream", "limit_data", json!({"bytes": bytes})).await;
        let (mut client, mut server) = upstream.raw_pair(addr).await;
        let mut seen = 0;
        let mut got = Vec::new();
        for message in messages {
            // Later messages may meet a connection that is closed already.
            let _ = client.write_all(message.as_bytes()).await;
            let next = (seen + message.len()).min(arrives.len());
            got.extend(read_n(&mut server, next - seen).await);
            seen = next;
        }
        let (rest, ending) = drain(&mut server).await;
        got.extend(rest);
        assert_eq!((String::from_utf8(got).unwrap().as_str(), ending), (arrives, Ending::Fin));
    }
    // A bigger limit passes all, and holds for every connection anew.
    let (path, addr) = t.proxy(upstream.addr).await;
    t.toxic(&path, "upstream", "limit_data", json!({"bytes": 100})).await;
    for _ in 0..2 {
        let (mut client, mut server) = upstream.raw_pair(addr).await;
        client.write_all(b"short").await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(drain(&mut server).await.0, b"short");
        t.patch(&path, json!({"enabled": false})).await;
        t.patch(&path, json!({"enabled": true})).await;
    }
}

pub(crate) async fn row_45_reset_peer(t: &Target) {
    let mut upstream = Upstream::start().await;
    for stream in ["upstream", "downstream"] {
        for timeout in [0, 100] {
            let (path, addr) = t.proxy(upstream.addr).await;
            t.toxic(&path, stream, "reset_peer", json!({"timeout": timeout})).await;
            let (mut client, mut server) = upstream.raw_pair(addr).await;
            let start = Instant::now();
            let sender = if stream == "upstream" { &mut client } else { &mut server };
            sender.write_all(b"lost").await.unwrap();
            assert_eq!(drain(&mut client).await, (vec![], Ending::Rst), "{stream} {timeout}");
            assert!(start.elapsed() >= millis(timeout));
            assert_eq!(drain(&mut server).await, (vec![], Ending::Rst), "{stream} {timeout}");
        }
    }
}

pub(crate) async fn row_46_removing_a_latency_before_a_timeout(t: &Target) {
    let server = echo().await;
    let (path, addr) = t.proxy(server.addr).await;
    let latency = t.toxic(&path, "upstream", "latency", json!({"latency": 10})).await;
    t.toxic(&path, "upstream", "timeout", json!({"timeout": 0})).await;
    let mut client = dial(addr).await;
    client.write_all(b"lost").await.unwrap();
    assert_eq!(t.delete(&latency).await, 204);
    assert!(silent(&mut client).await);
}

pub(crate) async fn row_47_removing_a_timeout_closes_both_sides(t: &Target) {
    let mut upstream = Upstream::start().await;
    for stream in ["upstream", "downstream"] {
        let (path, addr) = t.proxy(upstream.addr).await;
        let (mut client, mut server) = upstream.pair(addr).await;
        let toxic = t.toxic(&path, stream, "timeout", json!({"timeout": 0})).await;
        if stream == "upstream" {
            client.write_all(b"lost").await.unwrap();
        }
        assert!(silent(&mut server).await);
        assert_eq!(t.delete(&toxic).await, 204);
        assert_eq!(drain(&mut client).await, (vec![], Ending::Fin), "{stream}");
        assert_eq!(drain(&mut server).await, (vec![], Ending::Fin), "{stream}");
    }
}

pub(crate) async fn row_48_no_byte_is_lost_while_toxics_come_and_go(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    let (mut client, mut server) = upstream.pair(addr).await;
    let message: Vec<u8> = (0..65_535u16).flat_map(u16::to_be_bytes).collect();
    let sending = async {
        for pair in message.chunks(2) {
            client.write_all(pair).await.unwrap();
        }
        client.shutdown().await.unwrap();
    };
    let meddling = async {
        for _ in 0..20 {
            let toxic = t.toxic(&path, "upstream", "latency", json!({"latency": 1})).await;
            assert_eq!(t.delete(&toxic).await, 204);
        }
    };
    let ((), (), (got, ending)) = tokio::join!(sending, meddling, drain(&mut server));
    assert!(got == message, "{} of {} bytes", got.len(), message.len());
    assert_eq!(ending, Ending::Fin);
}

pub(crate) async fn row_49_toxicity(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    let body = json!({"type": "limit_data", "stream": "upstream", "toxicity": 0, "attributes": {"bytes": 0}});
    let toxic = t.toxic_with(&path, body).await;
    let (mut client, mut server) = upstream.pair(addr).await;
    t.patch(&toxic, json!({"toxicity": 1})).await;
    client.write_all(b"lost").await.unwrap();
    assert_eq!(drain(&mut server).await, (vec![], Ending::Fin));
}
