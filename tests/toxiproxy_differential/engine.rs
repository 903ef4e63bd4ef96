//! Rows about what happens to bytes and connections.

use std::time::{Duration, Instant};

use idemproof::chaos::{Client, Slices, Stream, Toxic};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::harness::{Ending, Target, Upstream, closed_port, dial, drain, echo, exchange, read_n, silent, soon};

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

pub(crate) async fn a1_arming_is_a_barrier(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    for _ in 0..300 {
        let (mut client, mut server) = upstream.pair(addr).await;
        let toxic = t.toxic(&path, "upstream", "limit_data", json!({"bytes": 0})).await;
        client.write_all(b"must not arrive").await.unwrap();
        assert_eq!(drain(&mut server).await.0, b"");
        assert_eq!(t.delete(&toxic).await, 204);
    }
}

pub(crate) async fn a4_half_close_closes_both_sides(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (_, addr) = t.proxy(upstream.addr).await;
    let (mut client, mut server) = upstream.pair(addr).await;
    client.shutdown().await.unwrap();
    assert_eq!(drain(&mut server).await, (vec![], Ending::Fin));
    assert_eq!(drain(&mut client).await, (vec![], Ending::Fin), "the answer can no longer come");
}

pub(crate) async fn a5_a_reset_is_passed_on_as_an_end(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (_, addr) = t.proxy(upstream.addr).await;
    let (client, mut server) = upstream.pair(addr).await;
    client.set_zero_linger().unwrap();
    drop(client);
    assert_eq!(drain(&mut server).await, (vec![], Ending::Fin));
    let (mut client, server) = upstream.pair(addr).await;
    server.set_zero_linger().unwrap();
    drop(server);
    assert_eq!(drain(&mut client).await, (vec![], Ending::Fin));
}

pub(crate) async fn a6_limit_exact_and_zero(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    let (mut client, mut server) = upstream.pair(addr).await;
    let toxic = t.toxic(&path, "downstream", "limit_data", json!({"bytes": 5})).await;
    assert!(silent(&mut client).await);
    server.write_all(b"12345").await.unwrap();
    assert_eq!(drain(&mut client).await, (b"12345".to_vec(), Ending::Fin), "closed at the last byte");
    assert_eq!(drain(&mut server).await, (vec![], Ending::Fin));
    assert_eq!(t.delete(&toxic).await, 204);

    let (mut client, mut server) = upstream.pair(addr).await;
    t.toxic(&path, "downstream", "limit_data", json!({"bytes": 0})).await;
    assert!(silent(&mut client).await, "zero waits for a byte");
    server.write_all(b"1").await.unwrap();
    assert_eq!(drain(&mut client).await, (vec![], Ending::Fin));
}

pub(crate) async fn a7_updates_keep_the_count(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    let (mut client, mut server) = upstream.pair(addr).await;
    let toxic = t.toxic(&path, "upstream", "limit_data", json!({"bytes": 100})).await;
    client.write_all(b"1234").await.unwrap();
    assert_eq!(read_n(&mut server, 4).await, b"1234");
    t.patch(&toxic, json!({"attributes": {"bytes": 6}})).await;
    client.write_all(b"56789").await.unwrap();
    assert_eq!(drain(&mut server).await, (b"56".to_vec(), Ending::Fin));
    assert_eq!(t.delete(&toxic).await, 204);

    let (mut client, mut server) = upstream.pair(addr).await;
    let toxic = t.toxic(&path, "upstream", "limit_data", json!({"bytes": 6})).await;
    client.write_all(b"1234").await.unwrap();
    assert_eq!(read_n(&mut server, 4).await, b"1234");
    assert_eq!(t.delete(&toxic).await, 204);
    t.toxic(&path, "upstream", "limit_data", json!({"bytes": 6})).await;
    client.write_all(b"abcdefgh").await.unwrap();
    assert_eq!(drain(&mut server).await, (b"abcdef".to_vec(), Ending::Fin), "a new toxic counts from zero");
}

pub(crate) async fn a8_dropped_bytes_restart_a_timeout(t: &Target) {
    const TIMEOUT: u64 = 600;
    let mut upstream = Upstream::start().await;
    // A machine that stalls for longer than the timeout decides nothing; try again then.
    for _ in 0..10 {
        let (path, addr) = t.proxy(upstream.addr).await;
        let (mut client, mut server) = upstream.pair(addr).await;
        t.toxic(&path, "upstream", "timeout", json!({"timeout": TIMEOUT})).await;
        let start = Instant::now();
        let mut in_time = true;
        let mut last = start;
        for _ in 0..4 {
            tokio::time::sleep(millis(TIMEOUT / 3)).await;
            in_time &= last.elapsed() < millis(TIMEOUT / 2);
            last = Instant::now();
            let _ = client.write_all(b"lost").await;
        }
        if !in_time {
            continue;
        }
        assert_eq!(drain(&mut server).await, (vec![], Ending::Fin));
        assert!(last.elapsed() >= millis(TIMEOUT), "{:?} after the last byte", last.elapsed());
        assert!(start.elapsed() >= millis(TIMEOUT * 2), "{:?} after arming", start.elapsed());
        return;
    }
    panic!("the machine is too busy to tell");
}

pub(crate) async fn a9_primer_turns_endings_into_resets(t: &Target) {
    let mut upstream = Upstream::start().await;
    for way in ["limit", "disable", "timeout", "wake", "deleted primer"] {
        let (path, addr) = t.proxy(upstream.addr).await;
        let primer = json!({"type": "reset_peer", "stream": "upstream", "toxicity": 0, "attributes": {"timeout": 0}});
        let primer = t.toxic_with(&path, primer).await;
        let (mut client, mut server) = upstream.pair(addr).await;
        match way {
            "limit" => {
                t.toxic(&path, "upstream", "limit_data", json!({"bytes": 0})).await;
                client.write_all(b"x").await.unwrap();
            }
            "disable" => drop(t.patch(&path, json!({"enabled": false})).await),
            "timeout" => drop(t.toxic(&path, "downstream", "timeout", json!({"timeout": 1})).await),
            "wake" => {
                t.patch(&primer, json!({"toxicity": 1})).await;
                client.write_all(b"x").await.unwrap();
            }
            _ => {
                assert_eq!(t.delete(&primer).await, 204);
                t.patch(&path, json!({"enabled": false})).await;
            }
        }
        assert_eq!(drain(&mut client).await, (vec![], Ending::Rst), "{way}");
        assert_eq!(drain(&mut server).await, (vec![], Ending::Rst), "{way}");
    }
}

pub(crate) async fn a10_rate_zero_holds_and_releases(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    let (mut client, mut server) = upstream.pair(addr).await;
    let toxic = t.toxic(&path, "downstream", "bandwidth", json!({"rate": 0})).await;
    server.write_all(b"held").await.unwrap();
    assert!(silent(&mut client).await);
    assert_eq!(t.delete(&toxic).await, 204);
    assert_eq!(read_n(&mut client, 4).await, b"held");
    let toxic = t.toxic(&path, "downstream", "bandwidth", json!({"rate": 0})).await;
    server.write_all(b"again").await.unwrap();
    assert!(silent(&mut client).await);
    t.patch(&toxic, json!({"attributes": {"rate": 1000}})).await;
    assert_eq!(read_n(&mut client, 5).await, b"again");
}

pub(crate) async fn a11_slow_close_hides_a_hang_up(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    let (mut client, mut server) = upstream.pair(addr).await;
    t.toxic(&path, "upstream", "slow_close", json!({"delay": 400})).await;
    client.write_all(b"request").await.unwrap();
    let left = Instant::now();
    drop(client);
    assert_eq!(drain(&mut server).await, (b"request".to_vec(), Ending::Fin));
    assert!(left.elapsed() >= millis(400), "{:?}", left.elapsed());
    // Removed while it waits, it lets the end go.
    let (client, mut server) = upstream.pair(addr).await;
    let slow = format!("{path}/toxics/slow_close_upstream");
    t.patch(&slow, json!({"attributes": {"delay": 3_600_000}})).await;
    drop(client);
    assert!(silent(&mut server).await);
    assert_eq!(t.delete(&slow).await, 204);
    assert_eq!(drain(&mut server).await, (vec![], Ending::Fin));
}

pub(crate) async fn a15_two_callers_at_once(t: &Target) {
    let server = echo().await;
    let (path, addr) = t.proxy(server.addr).await;
    let mut client = dial(addr).await;
    let caller = async |stream: &str| {
        for _ in 0..50 {
            let toxic = t.toxic(&path, stream, "latency", json!({"latency": 1})).await;
            t.patch(&toxic, json!({"attributes": {"latency": 0}})).await;
            assert_eq!(t.delete(&toxic).await, 204);
        }
    };
    tokio::join!(caller("upstream"), caller("downstream"), async {
        for _ in 0..50 {
            exchange(&mut client, "still there").await;
        }
    });
    assert_eq!(t.get(&format!("{path}/toxics")).await.json(), Value::Array(vec![]));
}

pub(crate) async fn the_client_and_its_self_test_work(t: &Target) {
    let client = Client::new(&t.url, &format!("rows{}", std::process::id())).unwrap();
    let found = soon(client.self_test()).await.unwrap();
    assert!(found.all_hold(), "{found:?}");
    assert_eq!(client.cleanup().await.unwrap(), 0, "the self-test removes what it made");

    let server = echo().await;
    let proxy = client.create_proxy("a/b c", &server.addr.to_string()).await.unwrap();
    assert_eq!(t.get(&format!("/proxies/{}", proxy.name())).await.json()["listen"], proxy.addr().to_string());
    for toxic in [
        Toxic::Latency { latency_ms: 1, jitter_ms: 1 },
        Toxic::Bandwidth { rate_kb: 1000 },
        Toxic::SlowClose { delay_ms: 1 },
        Toxic::ResetPeer { timeout_ms: 1 },
        Toxic::Timeout { timeout_ms: 1 },
        Toxic::LimitData { bytes: 1 },
        Toxic::Slicer(Slices::new(5, 2, 1).unwrap()),
        Toxic::Noop,
    ] {
        for stream in [Stream::Upstream, Stream::Downstream] {
            let handle = proxy.add_asleep(stream, toxic).await.unwrap();
            handle.wake().await.unwrap();
            handle.update(toxic).await.unwrap();
            handle.remove().await.unwrap();
        }
    }
    exchange(&mut dial(proxy.addr()).await, "through").await;
    proxy.set_enabled(false).await.unwrap();
    proxy.set_enabled(true).await.unwrap();
    let second = client.clone().create_proxy("second", &server.addr.to_string()).await.unwrap();
    second.delete().await.unwrap();
    assert_eq!(client.cleanup().await.unwrap(), 1);
    assert!(proxy.set_enabled(true).await.unwrap_err().to_string().contains("proxy not found"));
    proxy.delete().await.unwrap();
}
