//! Rows beyond Toxiproxy's own tests: exact cuts, endings, barriers, and the client of this crate.

use std::time::{Duration, Instant};

use idemproof::chaos::{Client, Slices, Stream, Toxic};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::harness::{Ending, Target, Upstream, dial, drain, echo, exchange, read_n, silent, soon};

fn millis(value: u64) -> Duration {
    Duration::from_millis(value)
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
