//! Bursts really overlap.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::{
    io::AsyncWriteExt,
    net::TcpSocket,
    sync::{Barrier, Notify},
};

use super::support::{CREATED, Peer, burst, perform, plain, plan, target};
use crate::{history::End, schedule::Step, text::JsonTemplate};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_requests_of_a_burst_are_in_flight_together() {
    for (copies, with_body) in [(2, true), (32, true), (8, false)] {
        // No request is answered before all are there as a whole.
        let all = Arc::new(Barrier::new(copies));
        let peer = Peer::start(move |mut client| {
            let all = Arc::clone(&all);
            async move {
                client.request().await.unwrap();
                all.wait().await;
                client.stream.write_all(CREATED.as_bytes()).await.unwrap();
                client.drain().await;
            }
        })
        .await;
        let step = burst(copies, |plan| {
            if !with_body {
                plan.payload = None;
            }
        });
        let history = perform(plain(peer.addr), vec![step]).await;
        assert_eq!(peer.finish().await.len(), copies);
        assert!(history.attempts.iter().all(|attempt| attempt.end == End::Answered), "{history:#?}");
        // With a body, every first byte had left before any request was whole.
        let last_first = history.attempts.iter().filter_map(|attempt| attempt.timing.first_out).max();
        let first_last = history.attempts.iter().filter_map(|attempt| attempt.timing.last_out).min();
        assert!(!with_body || last_first <= first_last, "{history:#?}");
    }
}

/// When the first byte came to a server.
type Stamp = Arc<Mutex<Option<Instant>>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_byte_is_written_before_every_connection_is_open() {
    let first_byte = Stamp::default();
    let accepted = Arc::new(Notify::new());
    let plain_peer = {
        let (first_byte, accepted) = (Arc::clone(&first_byte), Arc::clone(&accepted));
        Peer::start(move |mut client| {
            let (first_byte, accepted) = (Arc::clone(&first_byte), Arc::clone(&accepted));
            async move {
                accepted.notify_one();
                client.exactly(1).await.unwrap();
                *first_byte.lock().unwrap() = Some(Instant::now());
                client.request().await.unwrap();
                client.stream.write_all(CREATED.as_bytes()).await.unwrap();
                client.drain().await;
            }
        })
        .await
    };
    // The second connection stays half open (no TLS answer) for a while after the first one is there.
    let closed = Stamp::default();
    let stalled = {
        let closed = Arc::clone(&closed);
        Peer::start(move |client| {
            let (closed, accepted) = (Arc::clone(&closed), Arc::clone(&accepted));
            async move {
                accepted.notified().await;
                tokio::time::sleep(Duration::from_millis(300)).await;
                *closed.lock().unwrap() = Some(Instant::now());
                drop(client);
            }
        })
        .await
    };
    let target = target(&[format!("http://{}", plain_peer.addr), format!("https://{}", stalled.addr)]);
    let (one, mut other) = (plan("dup#1"), plan("dup#2"));
    other.node = 1;
    let history = perform(target, vec![Step::Burst { name: "dup".into(), attempts: vec![one, other] }]).await;
    assert_eq!(history.attempts[0].end, End::Answered, "{history:#?}");
    assert!(matches!(&history.attempts[1].end, End::NotSent(why) if why.contains("TLS")), "{history:#?}");
    plain_peer.finish().await;
    stalled.finish().await;
    assert!(first_byte.lock().unwrap().unwrap() > closed.lock().unwrap().unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_last_byte_is_written_before_all_other_bytes_have_left() {
    // The first server reads all but the last byte and says when that one came; the second one holds up a request
    // that is larger than the buffers between.
    let (last_byte, reading) = (Stamp::default(), Stamp::default());
    let loaded = Arc::new(Notify::new());
    let small = {
        let (last_byte, loaded) = (Arc::clone(&last_byte), Arc::clone(&loaded));
        Peer::start(move |mut client| {
            let (last_byte, loaded) = (Arc::clone(&last_byte), Arc::clone(&loaded));
            async move {
                let mut text = Vec::new();
                while !text.ends_with(b"\r\n\r\n") {
                    text.extend(client.exactly(1).await.unwrap());
                }
                let head = String::from_utf8(text).unwrap();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                client.exactly(length.parse::<usize>().unwrap() - 1).await.unwrap();
                loaded.notify_one();
                client.exactly(1).await.unwrap();
                *last_byte.lock().unwrap() = Some(Instant::now());
                client.stream.write_all(CREATED.as_bytes()).await.unwrap();
                client.drain().await;
            }
        })
        .await
    };
    let large = {
        let reading = Arc::clone(&reading);
        Peer::start(move |mut client| {
            let (reading, loaded) = (Arc::clone(&reading), Arc::clone(&loaded));
            async move {
                loaded.notified().await;
                tokio::time::sleep(Duration::from_millis(300)).await;
                *reading.lock().unwrap() = Some(Instant::now());
                // Ends the attempt: the rest of the large request is not worth reading.
                client.exactly(1).await.unwrap();
            }
        })
        .await
    };
    let target = target(&[format!("http://{}", small.addr), format!("http://{}", large.addr)]);
    let (one, mut other) = (plan("dup#1"), plan("dup#2"));
    other.node = 1;
    other.payload = Some(JsonTemplate::parse(json!({"reference": "x".repeat(12 * 1024 * 1024)})).unwrap());
    let history = perform(target, vec![Step::Burst { name: "dup".into(), attempts: vec![one, other] }]).await;
    assert_eq!(history.attempts[0].end, End::Answered);
    assert!(matches!(&history.attempts[1].end, End::Lost(_)), "{:?}", history.attempts[1].end);
    small.finish().await;
    large.finish().await;
    assert!(last_byte.lock().unwrap().unwrap() > reading.lock().unwrap().unwrap());
}

#[tokio::test]
async fn one_refused_connection_does_not_stop_the_others() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let peer = Peer::answering(CREATED).await;
    let target = target(&[format!("http://{}", peer.addr), format!("http://{}", socket.local_addr().unwrap())]);
    let mut attempts = vec![plan("dup#1"), plan("dup#2"), plan("dup#3")];
    attempts[1].node = 1;
    let history = perform(target, vec![Step::Burst { name: "dup".into(), attempts }]).await;
    assert_eq!(peer.finish().await.len(), 2);
    let ends: Vec<_> = history.attempts.iter().map(|attempt| (&*attempt.name, attempt.end == End::Answered)).collect();
    assert_eq!(ends, [("dup#1", true), ("dup#2", false), ("dup#3", true)]);
}
