//! Network faults through the embedded fault proxy: what hits, and what is known of it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::io::AsyncWriteExt;

use super::support::{Effects, Peer, counted, options, perform_with, plain, plan, send, serve};
use crate::{
    chaos::{Client as Chaos, Embedded},
    drive::Options,
    history::{Attempt, End, History, ProbeResult, Witness},
    schedule::{AttemptPlan, Step},
    suite::NetworkFault,
    target::Target,
    text::Span,
};

fn faulty(name: &str, fault: NetworkFault) -> AttemptPlan {
    AttemptPlan { fault: Some(fault), ..plan(name) }
}

/// Performs with a fault proxy of its own, and checks that it leaves no proxy behind.
async fn perform(target: Target, steps: Vec<Step>) -> History {
    let proxy = Embedded::start("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let chaos = Chaos::new(proxy.url(), "r1").unwrap();
    let history = perform_with(target, Options { chaos: Some(chaos.clone()), ..options() }, steps).await;
    assert_eq!(chaos.cleanup().await.unwrap(), 0, "every proxy was deleted");
    proxy.stop().await;
    history
}

/// An API without idempotency, whose handler goes on when its client is gone.
async fn api(effects: &Effects) -> Peer {
    let effects = effects.clone();
    Peer::start(move |mut client| {
        let effects = effects.clone();
        async move { serve(&mut client.stream, &effects).await }
    })
    .await
}

fn witnessed(attempt: &Attempt) -> Result<&str, &str> {
    match &attempt.fault.as_ref().expect("a fault is recorded").witness {
        Witness::Witnessed(how) => Ok(how),
        Witness::NotWitnessed(why) => Err(why),
    }
}

#[tokio::test]
async fn a_lost_response_is_witnessed_by_its_effect() {
    let peer = api(&Effects::default()).await;
    let steps = vec![send(faulty("first", NetworkFault::LoseResponse)), send(plan("retry"))];
    let history = perform(counted(&format!("http://{}", peer.addr)), steps).await;
    let [first, retry] = history.attempts.as_slice() else { panic!("{history:#?}") };
    assert!(matches!(first.end, End::Lost(_)) && first.bytes_in == 0 && first.response.is_none(), "{first:#?}");
    assert!(witnessed(first).is_ok(), "{first:#?}");
    assert_eq!(first.fault.as_ref().unwrap().recipe, "limit_data downstream bytes=0");
    assert_eq!((&retry.end, &retry.fault), (&End::Answered, &None));
    let purposes: Vec<_> = history.probes.iter().map(|probe| probe.purpose.as_str()).collect();
    assert_eq!(purposes, ["after first", "final"]);
    let ProbeResult::Counted(count) = &history.final_count("k", "default").unwrap().result else { panic!() };
    assert_eq!(count.effects, 2);
    peer.finish().await;
}

#[tokio::test]
async fn a_response_that_never_came_is_not_a_lost_one() {
    let peer = Peer::start(|mut client| async move { client.drain().await }).await;
    let mut first = faulty("first", NetworkFault::LoseResponse);
    first.timeout = Span::from_millis(1500);
    let history = perform(plain(peer.addr), vec![send(first)]).await;
    assert_eq!(history.attempts[0].end, End::TimedOut);
    assert!(witnessed(&history.attempts[0]).unwrap_err().contains("not cut"), "{history:#?}");
    peer.finish().await;
}

#[tokio::test]
async fn without_a_probe_a_lost_response_is_not_witnessed() {
    let peer = api(&Effects::default()).await;
    let history = perform(plain(peer.addr), vec![send(faulty("first", NetworkFault::LoseResponse))]).await;
    assert!(matches!(history.attempts[0].end, End::Lost(_)));
    assert_eq!(witnessed(&history.attempts[0]), Err("no effect probe"));
    peer.finish().await;
}

#[tokio::test]
async fn an_effect_that_never_shows_is_not_a_witness() {
    // Answers the request without doing anything.
    let effects = Effects::default();
    let peer = Peer::start(move |mut client| {
        let effects = effects.clone();
        async move {
            let request = client.request().await.unwrap();
            let text =
                if request.starts_with(b"GET") { effects.answer(&request) } else { super::support::CREATED.into() };
            let _ = client.stream.write_all(text.as_bytes()).await;
            client.drain().await;
        }
    })
    .await;
    let history =
        perform(counted(&format!("http://{}", peer.addr)), vec![send(faulty("first", NetworkFault::LoseResponse))])
            .await;
    assert!(witnessed(&history.attempts[0]).unwrap_err().contains("no effect"), "{history:#?}");
    peer.finish().await;
}

#[tokio::test]
async fn a_response_is_cut_inside_its_body() {
    let peer = api(&Effects::default()).await;
    let steps = vec![send(plan("whole")), send(faulty("half", NetworkFault::CutResponse))];
    let history = perform(counted(&format!("http://{}", peer.addr)), steps).await;
    let [whole, half] = history.attempts.as_slice() else { panic!("{history:#?}") };
    assert!(matches!(half.end, End::Lost(_)), "{half:#?}");
    let response = half.response.as_ref().unwrap();
    let length = whole.response.as_ref().unwrap().body.length;
    assert!(response.status == 201 && !response.body.complete, "{half:#?}");
    assert_eq!((response.body.length, half.bytes_in), (length - length / 2, whole.bytes_in - length / 2));
    assert!(witnessed(half).is_ok(), "{half:#?}");
    peer.finish().await;
}

#[tokio::test]
async fn a_response_cannot_be_cut_before_one_was_measured() {
    let peer = api(&Effects::default()).await;
    let steps = vec![send(faulty("half", NetworkFault::CutResponse))];
    let history = perform(counted(&format!("http://{}", peer.addr)), steps).await;
    let attempt = &history.attempts[0];
    assert!(matches!(&attempt.end, End::NotSent(why) if why.contains("no whole answer to measure")), "{attempt:#?}");
    assert!(witnessed(attempt).is_err());
    assert!(history.probes.is_empty() && peer.finish().await.is_empty());
}

#[tokio::test]
async fn a_request_body_is_cut_in_its_middle() {
    let arrived = Arc::new(Mutex::new(Vec::new()));
    let peer = {
        let arrived = Arc::clone(&arrived);
        Peer::start(move |mut client| {
            let arrived = Arc::clone(&arrived);
            async move {
                let mut bytes = Vec::new();
                let _ = tokio::io::AsyncReadExt::read_to_end(&mut client.stream, &mut bytes).await;
                arrived.lock().unwrap().push(bytes);
            }
        })
        .await
    };
    let history = perform(plain(peer.addr), vec![send(faulty("cut", NetworkFault::CutRequestBody))]).await;
    peer.finish().await;
    let attempt = &history.attempts[0];
    assert!(matches!(attempt.end, End::Lost(_)), "{attempt:#?}");
    assert!(witnessed(attempt).unwrap().contains("limit_data upstream"), "{attempt:#?}");
    let arrived = arrived.lock().unwrap();
    let [bytes] = arrived.as_slice() else { panic!("{} arrivals", arrived.len()) };
    let text = String::from_utf8(bytes.clone()).unwrap();
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, &attempt.payload[..attempt.payload.len() / 2]);
}

#[tokio::test]
async fn a_connection_is_cut_while_the_handler_runs() {
    let effects = Effects::default();
    let peer = {
        let effects = effects.clone();
        Peer::start(move |mut client| {
            let effects = effects.clone();
            async move {
                let request = client.request().await.unwrap();
                if request.starts_with(b"POST") {
                    tokio::time::sleep(Duration::from_millis(3000)).await;
                }
                let _ = client.stream.write_all(effects.answer(&request).as_bytes()).await;
                client.drain().await;
            }
        })
        .await
    };
    let mut cut = faulty("cut", NetworkFault::CutWhileRunning);
    cut.slow = Some(Span::from_millis(3000));
    // The next attempt does not wait for the witness of the first one.
    let steps = vec![Step::Start(Box::new(cut)), send(plan("next")), Step::Join("cut".into())];
    let history = perform(counted(&format!("http://{}", peer.addr)), steps).await;
    let [cut, next] = history.attempts.as_slice() else { panic!("{history:#?}") };
    assert!(matches!(cut.end, End::Lost(_)) && cut.bytes_in == 0, "{cut:#?}");
    assert_eq!(cut.fault.as_ref().unwrap().recipe, "timeout downstream timeout=1500");
    assert!(witnessed(cut).is_ok(), "{cut:#?}");
    assert!(next.timing.first_out.unwrap() < history.probes[0].ended, "{history:#?}");
    assert!(next.timing.opened < cut.timing.ended, "{history:#?}");
    assert!(history.probes[0].began >= cut.timing.last_out.unwrap() + 3_000_000, "{history:#?}");
    peer.finish().await;
}

#[tokio::test]
async fn an_answer_that_comes_before_the_cut_is_no_witness() {
    let peer = api(&Effects::default()).await;
    let mut cut = faulty("cut", NetworkFault::CutWhileRunning);
    (cut.slow, cut.timeout) = (Some(Span::from_secs(60)), Span::from_millis(1500));
    let history = perform(plain(peer.addr), vec![send(cut)]).await;
    assert!(witnessed(&history.attempts[0]).is_err(), "{history:#?}");
    peer.finish().await;
}

#[tokio::test]
async fn a_proxy_that_cannot_be_had_is_not_the_target_s_failure() {
    let peer = api(&Effects::default()).await;
    let target = counted(&format!("http://{}", peer.addr));
    // Nothing listens there: the port is bound and never listens.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let dead = Chaos::new(format!("http://{}", socket.local_addr().unwrap()), "r1").unwrap();
    for chaos in [None, Some(dead)] {
        let steps = vec![send(faulty("first", NetworkFault::LoseResponse)), send(plan("retry"))];
        let history = perform_with(target.clone(), Options { chaos, ..options() }, steps).await;
        let [first, retry] = history.attempts.as_slice() else { panic!("{history:#?}") };
        assert!(matches!(&first.end, End::NotSent(why) if why.contains("fault proxy")), "{first:#?}");
        assert!(witnessed(first).is_err());
        assert_eq!(retry.end, End::Answered);
    }
    peer.finish().await;
}
