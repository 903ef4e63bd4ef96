//! Traps that others fell into with a Toxiproxy, T01 to T15 of the list of faults, as far as they show on the network.
//! The others are tests beside the code, under the same ids.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::{Ending, Target, Upstream, dial, drain, echo, exchange, read_n, silent};

pub(crate) async fn t07_a_toxic_reaches_connections_that_came_before_it(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    // The client is there before the toxic; it has sent nothing yet.
    let (mut client, mut server) = upstream.raw_pair(addr).await;
    t.toxic(&path, "upstream", "limit_data", json!({"bytes": 2})).await;
    client.write_all(b"abcd").await.unwrap();
    assert_eq!(drain(&mut server).await, (b"ab".to_vec(), Ending::Fin));
}

pub(crate) async fn t09_the_answer_is_lost_to_a_client_that_closes_its_half(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (_, addr) = t.proxy(upstream.addr).await;
    let (mut client, mut server) = upstream.pair(addr).await;
    client.write_all(b"request").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(drain(&mut server).await.0, b"request");
    let _ = server.write_all(b"answer").await;
    assert_eq!(drain(&mut client).await.0, b"", "so the driver never does it");
}

pub(crate) async fn t11_closing_a_proxy_leaves_the_others_alone(t: &Target) {
    let server = echo().await;
    let ((one, addr), (_, other)) = (t.proxy(server.addr).await, t.proxy(server.addr).await);
    let (mut cut, mut kept) = (dial(addr).await, dial(other).await);
    exchange(&mut cut, "first").await;
    exchange(&mut kept, "first").await;
    t.patch(&one, json!({"enabled": false})).await;
    assert_eq!(drain(&mut cut).await.0, b"");
    exchange(&mut kept, "second").await;
}

pub(crate) async fn t14_the_first_two_are_dropped_and_the_third_passes(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    let toxic = t.toxic(&path, "upstream", "limit_data", json!({})).await;
    // By a connection for each, and by hand between them.
    for attempt in 0..3 {
        if attempt == 2 {
            assert_eq!(t.delete(&toxic).await, 204);
        }
        let (mut client, mut server) = upstream.raw_pair(addr).await;
        client.write_all(b"request").await.unwrap();
        if attempt == 2 {
            assert_eq!(read_n(&mut server, 7).await, b"request");
        } else {
            assert_eq!(drain(&mut server).await.0, b"");
        }
    }
}

pub(crate) async fn t15_a_reset_is_over_when_it_is_removed(t: &Target) {
    let server = echo().await;
    let (path, addr) = t.proxy(server.addr).await;
    let toxic = t.toxic(&path, "upstream", "reset_peer", json!({"timeout": 1})).await;
    for _ in 0..2 {
        let mut client = dial(addr).await;
        client.write_all(b"x").await.unwrap();
        assert_eq!(drain(&mut client).await.1, Ending::Rst, "it stays until removed");
    }
    assert_eq!(t.delete(&toxic).await, 204);
    exchange(&mut dial(addr).await, "recovered").await;
}

pub(crate) async fn row_38_a_clean_proxy_adds_little(t: &Target) {
    let server = echo().await;
    let (_, addr) = t.proxy(server.addr).await;
    let best = async |addr| {
        let mut client = dial(addr).await;
        let mut best = std::time::Duration::MAX;
        for _ in 0..500 {
            let start = std::time::Instant::now();
            client.write_all(b"ping").await.unwrap();
            client.read_exact(&mut [0; 4]).await.unwrap();
            best = best.min(start.elapsed());
        }
        best
    };
    let (direct, through) = (best(server.addr).await, best(addr).await);
    // At its best, so that a busy machine does not decide; 300 us for each direction.
    assert!(through < direct + std::time::Duration::from_micros(600), "{direct:?} direct, {through:?} through");
}

pub(crate) async fn row_40_latency_keeps_the_throughput(t: &Target) {
    const BYTES: usize = 16_000_000;
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    t.toxic(&path, "upstream", "latency", json!({"latency": 10})).await;
    let message = vec![5; BYTES];
    let mut best = 0.0;
    for _ in 0..20 {
        let (mut client, mut server) = upstream.raw_pair(addr).await;
        let start = std::time::Instant::now();
        let sending = async {
            client.write_all(&message).await.unwrap();
            client.shutdown().await.unwrap();
        };
        let receiving = async {
            let (mut all, mut buffer) = (0, vec![0; 256 * 1024]);
            loop {
                match server.read(&mut buffer).await.unwrap() {
                    0 => break all,
                    count => all += count,
                }
            }
        };
        let ((), received) = tokio::join!(sending, receiving);
        assert_eq!(received, BYTES);
        best = f64::max(best, BYTES as f64 / 1e6 / start.elapsed().as_secs_f64());
        if best >= 100.0 {
            return;
        }
    }
    panic!("at best {best:.0} MB/s");
}

pub(crate) async fn row_41_latency_and_closing_do_not_race(t: &Target) {
    let server = echo().await;
    let (path, addr) = t.proxy(server.addr).await;
    for _ in 0..1000 {
        let toxic = t.toxic(&path, "upstream", "latency", json!({"latency": 10})).await;
        let mut client = dial(addr).await;
        client.write_all(b"hello").await.unwrap();
        drop(client);
        assert_eq!(t.delete(&toxic).await, 204);
    }
    let mut client = dial(addr).await;
    exchange(&mut client, "still there").await;
    assert!(silent(&mut client).await);
}
