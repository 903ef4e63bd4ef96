//! Servers that do not speak HTTP, or never stop: recorded, never a panic and never a hang.

use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::support::{Client, Peer, perform, plain, plan, send};
use crate::{
    history::{Attempt, End},
    text::Span,
};

/// Sends one attempt to a server that answers with `first`, then `more` again and again.
async fn against(first: Vec<u8>, more: Vec<u8>, pause: Duration, timeout: u64) -> Attempt {
    let peer = Peer::start(move |mut client: Client| {
        let (first, more) = (first.clone(), more.clone());
        async move {
            client.request().await.unwrap();
            client.stream.write_all(&first).await.unwrap();
            while !more.is_empty() && client.stream.write_all(&more).await.is_ok() {
                tokio::time::sleep(pause).await;
            }
            client.drain().await;
        }
    })
    .await;
    let mut plan = plan("a");
    plan.timeout = Span::from_millis(timeout);
    let mut history = perform(plain(peer.addr), vec![send(plan)]).await;
    assert_eq!(peer.finish().await.len(), 1);
    history.attempts.remove(0)
}

/// Without a pause and with a timeout that is far away: the limit must end it.
async fn flood(first: impl Into<Vec<u8>>, more: impl Into<Vec<u8>>) -> Attempt {
    against(first.into(), more.into(), Duration::ZERO, 50_000).await
}

/// With a short timeout, which must end it.
async fn drip(first: impl Into<Vec<u8>>, more: impl Into<Vec<u8>>) -> Attempt {
    against(first.into(), more.into(), Duration::from_millis(25), 1500).await
}

fn unreadable(attempt: &Attempt) -> &str {
    let End::Unreadable(why) = &attempt.end else { panic!("{attempt:#?}") };
    why
}

#[tokio::test]
async fn an_endless_body_is_cut_off() {
    for first in [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
    ] {
        let chunk =
            if first.contains("chunked") { format!("1000\r\n{}\r\n", "x".repeat(4096)) } else { "x".repeat(4096) };
        let attempt = flood(first, chunk).await;
        assert!(unreadable(&attempt).contains("1 MiB"), "{attempt:#?}");
        let body = &attempt.response.as_ref().unwrap().body;
        assert!(!body.complete && body.length < 2 * 1024 * 1024 && body.text.len() == 8 * 1024, "{}", body.length);
    }
}

#[tokio::test]
async fn a_flood_of_header_fields_is_cut_off() {
    let attempt = flood("HTTP/1.1 200 OK\r\n", "x-flood: 0123456789\r\n").await;
    assert!(unreadable(&attempt).contains("16 KiB"), "{attempt:#?}");
    let one_long = flood("HTTP/1.1 200 OK\r\nx-long: ", "y".repeat(1024)).await;
    assert!(unreadable(&one_long).contains("16 KiB"), "{one_long:#?}");
    let fields: String = (0..101).map(|number| format!("x-{number}: 1\r\n")).collect();
    let many = flood(format!("HTTP/1.1 200 OK\r\n{fields}content-length: 0\r\n\r\n"), "").await;
    assert!(unreadable(&many).contains("100 fields"), "{many:#?}");
}

#[tokio::test]
async fn a_hundred_fields_are_read() {
    let fields: String = (0..99).map(|number| format!("x-{number}: 1\r\n")).collect();
    let attempt = flood(format!("HTTP/1.1 200 OK\r\n{fields}content-length: 0\r\n\r\n"), "").await;
    assert_eq!(attempt.end, End::Answered);
    assert_eq!(attempt.response.unwrap().fields.len(), 100);
}

#[tokio::test]
async fn interim_answers_are_skipped_but_not_for_ever() {
    let attempt = flood("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(50) + "HTTP/1.1 204 No Content\r\n\r\n", "").await;
    assert_eq!((attempt.end, attempt.response.unwrap().status), (End::Answered, 204));
    let attempt = flood("", "HTTP/1.1 100 Continue\r\n\r\n").await;
    assert!(unreadable(&attempt).contains("interim"), "{attempt:#?}");
}

#[tokio::test]
async fn a_switch_of_protocols_is_an_answer() {
    let attempt = flood("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nzzz", "").await;
    assert_eq!((attempt.end, attempt.response.unwrap().status), (End::Answered, 101));
}

#[tokio::test]
async fn garbage_is_unreadable() {
    for garbage in [
        &b"SSH-2.0-OpenSSH_9.6\r\n"[..],
        b"\x16\x03\x03\x00\x02\x02\x28\r\n\r\n",
        b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\r\n\r\n",
        b"HTTP/9.9 999 what\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnot a size\r\n",
    ] {
        let attempt = flood(garbage, "").await;
        unreadable(&attempt);
    }
}

#[tokio::test]
async fn field_values_and_bodies_that_are_not_text_are_escaped() {
    let attempt = flood(*b"HTTP/1.1 200 OK\r\nx-odd: a\xffb\r\ncontent-length: 3\r\n\r\nc\xfed", "").await;
    assert_eq!(attempt.end, End::Answered);
    let response = attempt.response.unwrap();
    assert_eq!((response.field("x-odd"), response.body.text.as_str()), (Some("a\\xffb"), "c\\xfed"));
}

#[tokio::test]
async fn a_slow_drip_is_timed_out() {
    let silent = drip("", "").await;
    assert_eq!((&silent.end, silent.bytes_in), (&End::TimedOut, 0));
    let head = drip("HTTP/1.1 200 OK\r\nx-drip: ", "y").await;
    assert_eq!((&head.end, head.response.is_none()), (&End::TimedOut, true));
    let body = drip("HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n", "y").await;
    assert_eq!(body.end, End::TimedOut);
    let response = body.response.unwrap();
    assert!(response.status == 200 && !response.body.complete && response.body.length < 100_000);
    let interim = drip("", "HTTP/1.1 100 Continue\r\n\r\n").await;
    assert_eq!((&interim.end, interim.response.is_none()), (&End::TimedOut, true));
}

#[tokio::test]
async fn a_server_that_reads_nothing_is_timed_out() {
    let peer = Peer::start(|client| async move {
        // More than the socket's buffers hold: the request cannot leave as a whole.
        let readable = client.stream.readable().await;
        readable.unwrap();
        tokio::time::sleep(Duration::from_secs(4)).await;
    })
    .await;
    let mut plan = plan("a");
    plan.timeout = Span::from_millis(1000);
    let big = serde_json::json!({"reference": "x".repeat(12 * 1024 * 1024)});
    plan.payload = Some(crate::text::JsonTemplate::parse(big).unwrap());
    let history = perform(plain(peer.addr), vec![send(plan)]).await;
    let attempt = &history.attempts[0];
    assert_eq!((&attempt.end, attempt.timing.last_out), (&End::TimedOut, None));
    assert!(attempt.request.len() <= 2048 && attempt.payload.len() <= 2048);
    peer.finish().await;
}
