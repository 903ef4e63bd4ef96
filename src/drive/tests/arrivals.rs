//! One send is one arrival, whatever becomes of it, and the bytes are those that the history speaks of.

use tokio::{io::AsyncWriteExt, net::TcpSocket, sync::Barrier};

use super::support::{CREATED, Client, Peer, burst, perform, plain, plan, send};
use crate::{
    drive::words::sha256,
    history::{Attempt, End, History},
    schedule::{PlannedKey, Step},
    text::Template,
};

/// The bytes of each arrival are those of one attempt, and every attempt that sent anything is one arrival.
fn assert_equal(history: &History, arrivals: &[Vec<u8>]) {
    let mut left: Vec<&Attempt> = history.attempts.iter().filter(|attempt| attempt.bytes_out > 0).collect();
    assert_eq!(arrivals.len(), left.len(), "arrivals and attempts: {history:#?}");
    for arrival in arrivals {
        let text = String::from_utf8(arrival.clone()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let index = left
            .iter()
            .position(|attempt| {
                attempt.bytes_out == arrival.len() as u64
                    && attempt.payload_sha256 == sha256(body.as_bytes())
                    && attempt.request.lines().next().unwrap() == head.split(" HTTP/1.1").next().unwrap()
                    && attempt
                        .key_field
                        .as_ref()
                        .is_none_or(|key| head.contains(&format!("idempotency-key: {key}\r\n")))
            })
            .unwrap_or_else(|| panic!("nothing in the history is this arrival: {text}\n{history:#?}"));
        left.remove(index);
    }
}

async fn created(mut client: Client) {
    client.request().await.unwrap();
    client.stream.write_all(CREATED.as_bytes()).await.unwrap();
    client.drain().await;
}

#[tokio::test]
async fn sent_attempts_arrive_once_each() {
    let peer = Peer::start(created).await;
    let mut raw = plan("raw");
    raw.key = PlannedKey::Raw(Template::parse("  not \"a\u{e9} ${key}").unwrap());
    let mut bare = plan("bare");
    bare.key = PlannedKey::None;
    bare.payload = None;
    let steps = vec![send(plan("a")), send(plan("a2")), send(raw), send(bare)];
    let history = perform(plain(peer.addr), steps).await;
    assert_equal(&history, &peer.finish().await);
    for attempt in &history.attempts {
        assert_eq!(attempt.end, End::Answered, "{attempt:#?}");
        let response = attempt.response.as_ref().unwrap();
        assert_eq!((response.status, response.identity.as_deref()), (201, Some("\"p1\"")));
        assert_eq!(response.field("location"), Some("/payments/p1"));
        assert_eq!((response.body.length, response.body.complete), (27, true));
        assert_eq!(attempt.bytes_in, CREATED.len() as u64);
        let timing = attempt.timing;
        assert!(Some(timing.opened) <= timing.first_out && timing.first_out <= timing.last_out, "{timing:?}");
        assert!(timing.first_out < timing.first_in && timing.first_in <= Some(timing.ended), "{timing:?}");
    }
    assert_eq!(history.attempts[0].key_field, history.attempts[1].key_field);
    assert_eq!(history.stopped, None);
}

#[tokio::test]
async fn every_request_says_where_it_comes_from() {
    let peer = Peer::start(created).await;
    perform(plain(peer.addr), vec![send(plan("a"))]).await;
    let arrival = String::from_utf8(peer.finish().await.remove(0)).unwrap();
    let agent = format!("user-agent: idemproof/{} (run r1)\r\n", env!("CARGO_PKG_VERSION"));
    for field in [&agent, "x-idemproof-run: r1\r\n", "content-type: application/json\r\n", "authorization: Bearer "] {
        assert!(arrival.contains(field), "{field} in {arrival}");
    }
}

#[tokio::test]
async fn a_burst_arrives_once_each() {
    let peer = Peer::start(created).await;
    let bodiless = burst(3, |plan| plan.payload = None);
    let history = perform(plain(peer.addr), vec![burst(8, |_| ()), bodiless]).await;
    assert_equal(&history, &peer.finish().await);
    assert_eq!(history.burst("dup").count(), 11);
    assert!(history.attempts.iter().all(|attempt| attempt.end == End::Answered), "{history:#?}");
}

#[tokio::test]
async fn a_started_attempt_is_under_way_while_the_next_one_is_sent() {
    // The first of two requests is answered only when the second one is there.
    let both = std::sync::Arc::new(Barrier::new(2));
    let peer = Peer::start(move |mut client| {
        let both = both.clone();
        async move {
            client.request().await.unwrap();
            both.wait().await;
            client.stream.write_all(CREATED.as_bytes()).await.unwrap();
            client.drain().await;
        }
    })
    .await;
    let steps = vec![Step::Start(Box::new(plan("a"))), send(plan("b")), Step::Join("a".into())];
    let history = perform(plain(peer.addr), steps).await;
    assert_equal(&history, &peer.finish().await);
    let [a, b] = history.attempts.as_slice() else { panic!("{history:#?}") };
    assert_eq!((a.name.as_str(), &a.end, &b.end), ("a", &End::Answered, &End::Answered));
    assert!(a.timing.last_out.unwrap() <= b.timing.opened, "{history:#?}");
    assert!(a.timing.ended >= b.timing.last_out.unwrap(), "{history:#?}");
}

#[tokio::test]
async fn a_refused_connection_is_not_sent() {
    // Bound but not listening: the port refuses, and nobody else can get it.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let steps = vec![send(plan("a")), burst(3, |_| ())];
    let history = perform(plain(socket.local_addr().unwrap()), steps).await;
    assert_eq!(history.attempts.len(), 4);
    for attempt in &history.attempts {
        assert!(matches!(&attempt.end, End::NotSent(why) if why.contains("refused")), "{attempt:#?}");
        assert_eq!((attempt.bytes_out, attempt.timing.first_out), (0, None));
    }
}

#[tokio::test]
async fn a_reset_arrives_once_and_is_told_from_a_close() {
    let peer = Peer::start(|mut client| async move {
        client.request().await.unwrap();
        client.reset();
    })
    .await;
    let history = perform(plain(peer.addr), vec![send(plan("a")), burst(3, |_| ())]).await;
    assert_equal(&history, &peer.finish().await);
    for attempt in &history.attempts {
        assert!(matches!(&attempt.end, End::Lost(cut) if cut.reset), "{attempt:#?}");
        assert!(attempt.timing.last_out.is_some());
    }
    let peer = Peer::start(|mut client| async move {
        client.request().await.unwrap();
    })
    .await;
    let history = perform(plain(peer.addr), vec![send(plan("a"))]).await;
    assert_equal(&history, &peer.finish().await);
    assert!(matches!(&history.attempts[0].end, End::Lost(cut) if !cut.reset), "{history:#?}");
}

#[tokio::test]
async fn an_answer_cut_at_any_byte_is_one_arrival_and_says_what_came() {
    let head = CREATED.find("\r\n\r\n").unwrap() + 4;
    for length in 0..=CREATED.len() {
        let peer = Peer::start(move |mut client| async move {
            client.request().await.unwrap();
            client.stream.write_all(&CREATED.as_bytes()[..length]).await.unwrap();
        })
        .await;
        let history = perform(plain(peer.addr), vec![send(plan("a"))]).await;
        assert_equal(&history, &peer.finish().await);
        let attempt = &history.attempts[0];
        assert_eq!(attempt.bytes_in, length as u64);
        if length == CREATED.len() {
            assert_eq!(attempt.end, End::Answered);
            continue;
        }
        assert!(matches!(&attempt.end, End::Lost(cut) if !cut.reset), "{length}: {attempt:#?}");
        let came = attempt.response.as_ref().map(|response| {
            assert!(response.status == 201 && response.identity.is_none());
            (response.body.length, response.body.complete, response.body.text.as_str())
        });
        assert_eq!(came, (length >= head).then(|| ((length - head) as u64, false, &CREATED[head..length])), "{length}");
    }
}

#[tokio::test]
async fn a_request_cut_at_any_part_is_one_arrival() {
    for length in [0, 1, 100, 200] {
        let peer = Peer::start(move |mut client| async move {
            client.exactly(length).await.unwrap();
            // Bytes that nobody has read make this a reset.
        })
        .await;
        let history = perform(plain(peer.addr), vec![send(plan("a"))]).await;
        assert_eq!(peer.finish().await.len(), 1);
        let end = &history.attempts[0].end;
        // The close may be seen before the first byte is written.
        assert!(matches!(end, End::Lost(_)) || (length == 0 && matches!(end, End::NotSent(_))), "{length}: {end:?}");
    }
}

#[tokio::test]
async fn redirects_are_answers_and_bodies_stay_as_they_came() {
    let redirect = "HTTP/1.1 307 Temporary Redirect\r\nlocation: /elsewhere\r\ncontent-encoding: gzip\r\n\
        content-length: 4\r\n\r\nab\u{e9}";
    let peer = Peer::answering(redirect).await;
    let history = perform(plain(peer.addr), vec![send(plan("a"))]).await;
    assert_equal(&history, &peer.finish().await);
    let response = history.attempts[0].response.as_ref().unwrap();
    assert_eq!((response.status, response.body.text.as_str()), (307, "ab\u{e9}"));
    assert_eq!(response.field("content-encoding"), Some("gzip"));
}

#[tokio::test]
async fn a_key_that_cannot_be_sent_is_not_sent() {
    let peer = Peer::answering(CREATED).await;
    let mut raw = plan("raw");
    raw.key = PlannedKey::Raw(Template::literal("a\nb"));
    let history = perform(plain(peer.addr), vec![send(raw)]).await;
    assert!(peer.finish().await.is_empty());
    assert!(matches!(&history.attempts[0].end, End::NotSent(why) if why.contains("forbids")), "{history:#?}");
}
