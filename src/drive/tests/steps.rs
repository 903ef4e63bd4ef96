//! Steps, resends, time, politeness, probes, secrets and interrupts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{HeaderName, Method};
use serde_json::json;
use tokio::{io::AsyncWriteExt, net::TcpSocket};

use super::support::{
    CREATED, Effects, Peer, answer, burst, counted, options, perform, perform_on, perform_with, plain, plan, schedule,
    send, serve, target, time,
};
use crate::{
    drive::{DriveError, Driver, Interrupt, Options},
    history::{End, Probe, ProbeResult},
    schedule::{PlannedKey, Step, TimeMove},
    target::{HeaderTemplate, Hook, Limits},
    text::{JsonTemplate, Span, Template},
};

/// Answers with each of these in turn, the last one again and again.
async fn in_turn(answers: Vec<String>) -> Peer {
    let count = Arc::new(AtomicUsize::new(0));
    Peer::start(move |mut client| {
        let (answers, count) = (answers.clone(), Arc::clone(&count));
        async move {
            if client.request().await.is_ok() {
                let index = count.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
                client.stream.write_all(answers[index].as_bytes()).await.unwrap();
            }
            client.drain().await;
        }
    })
    .await
}

fn until_settled(name: &str) -> Step {
    Step::Send { attempt: Box::new(plan(name)), until_settled: true }
}

#[tokio::test]
async fn an_attempt_is_sent_again_while_it_is_refused_as_in_flight() {
    let conflict = answer("409 Conflict", "{}");
    let peer = in_turn(vec![conflict.clone(), conflict, CREATED.to_owned()]).await;
    let history = perform(plain(peer.addr), vec![until_settled("r")]).await;
    assert_eq!(peer.finish().await.len(), 3);
    let names: Vec<_> = history.attempts.iter().map(|a| (&*a.name, a.resend_of.as_deref())).collect();
    assert_eq!(names, [("r", None), ("r~2", Some("r")), ("r~3", Some("r"))]);
    assert_eq!(history.attempt("r").unwrap().response.as_ref().unwrap().status, 201);
    let keys: Vec<_> = history.attempts.iter().map(|a| (a.key_field.clone(), a.payload_sha256.clone())).collect();
    assert!(keys.iter().all(|key| *key == keys[0]));
}

#[tokio::test]
async fn a_resend_waits_as_long_as_it_is_asked_to() {
    let conflict = answer("409 Conflict", "{}").replace("content-type", "retry-after: 1\r\ncontent-type");
    let peer = in_turn(vec![conflict, CREATED.to_owned()]).await;
    let history = perform(plain(peer.addr), vec![until_settled("r")]).await;
    let [first, second] = history.attempts.as_slice() else { panic!("{history:#?}") };
    assert!(second.timing.opened - first.timing.ended >= 1_000_000);
    peer.finish().await;
}

#[tokio::test]
async fn nothing_else_is_sent_again() {
    for first in [answer("429 Too Many Requests", "{}"), answer("500 Oh", "{}"), "HTTP/1.1 409 Conf".to_owned()] {
        let peer = Peer::start(move |mut client| {
            let first = first.clone();
            async move {
                client.request().await.unwrap();
                client.stream.write_all(first.as_bytes()).await.unwrap();
            }
        })
        .await;
        let history = perform(plain(peer.addr), vec![until_settled("r")]).await;
        assert_eq!((peer.finish().await.len(), history.attempts.len()), (1, 1));
    }
}

#[tokio::test]
async fn a_refusal_that_stays_is_given_up() {
    let peer = in_turn(vec![answer("409 Conflict", "{}")]).await;
    let mut target = plain(peer.addr);
    target.operations[0].policy.lease = crate::target::Documented::As(Span::from_secs(0));
    let history = perform(target, vec![until_settled("r")]).await;
    let sent = history.attempts.len();
    assert_eq!(peer.finish().await.len(), sent);
    // 100, 200, 400, 800 ms and then 1 s each fit into 5 s.
    assert!((3..=9).contains(&sent) && history.stopped.is_none(), "{sent}");
}

#[tokio::test]
async fn the_clock_hook_is_asked_and_must_agree() {
    let peer = in_turn(vec!["HTTP/1.1 204 No Content\r\n\r\n".to_owned(), answer("500 Broken", "no clock")]).await;
    let mut target = plain(peer.addr);
    target.hooks.advance_clock = Some(Hook::Request {
        method: Method::POST,
        path: Template::parse("/test/clock").unwrap(),
        json: Some(JsonTemplate::parse(json!({"seconds": "${seconds}"})).unwrap()),
    });
    let hook = || Step::Time(TimeMove { span: Span::from_millis(86_400_001), by_hook: true, past: None });
    let history = perform(target, vec![hook(), hook(), send(plan("never"))]).await;
    let arrivals = peer.finish().await;
    assert!(String::from_utf8_lossy(&arrivals[0]).ends_with("\r\n\r\n{\"seconds\":86401}"));
    assert_eq!((history.controls.len(), history.attempts.len()), (2, 0));
    assert_eq!(history.controls[0].failed, None);
    assert!(history.controls[1].failed.as_ref().unwrap().contains("no clock"));
    assert!(history.stopped.unwrap().contains("500"));
}

#[tokio::test]
async fn waiting_is_recorded() {
    let peer = Peer::answering(CREATED).await;
    let history = perform(plain(peer.addr), vec![time(30), send(plan("a"))]).await;
    let control = &history.controls[0];
    assert!(control.ended - control.began >= 30_000 && history.attempts[0].timing.opened >= control.ended);
    peer.finish().await;
}

#[tokio::test]
async fn the_budget_stops_the_history() {
    let peer = Peer::answering(CREATED).await;
    let mut target = plain(peer.addr);
    target.limits = Limits { requests: 2, ..Limits::default() };
    let history = perform(target, vec![send(plan("a")), burst(2, |_| ()), send(plan("b"))]).await;
    assert_eq!((peer.finish().await.len(), history.attempts.len()), (1, 1));
    assert!(history.stopped.unwrap().contains("budget of 2"));
}

#[tokio::test]
async fn a_burst_that_needs_more_seats_than_there_are_is_still_sent() {
    let peer = Peer::answering(CREATED).await;
    let mut target = plain(peer.addr);
    target.limits = Limits { concurrency: 1, ..Limits::default() };
    let steps = vec![Step::Start(Box::new(plan("a"))), burst(4, |_| ()), send(plan("b"))];
    let history = perform(target, steps).await;
    assert!(history.attempts.iter().all(|attempt| attempt.end == End::Answered));
    assert_eq!(peer.finish().await.len(), 6);
}

#[tokio::test]
async fn effects_are_counted_by_intent_and_tenant() {
    let effects = Effects::default();
    let peer = {
        let effects = effects.clone();
        Peer::start(move |mut client| {
            let effects = effects.clone();
            async move { serve(&mut client.stream, &effects).await }
        })
        .await
    };
    let mut keyless = plan("keyless");
    (keyless.key, keyless.intent) = (PlannedKey::None, "keyless".into());
    let steps = vec![send(plan("a")), send(plan("b")), send(keyless)];
    let history = perform(counted(&format!("http://{}", peer.addr)), steps).await;
    peer.finish().await;
    let counts: Vec<_> = history.probes.iter().map(|probe| (&*probe.intent, &*probe.purpose, count(probe))).collect();
    assert_eq!(counts, [("k", "final", 2), ("keyless", "final", 1)]);
    let ProbeResult::Counted(found) = &history.final_count("k", "default").unwrap().result else { panic!() };
    assert_eq!((found.ids.as_slice(), found.polls), (["0".to_owned(), "1".to_owned()].as_slice(), 2));
    assert_eq!(history.probes[0].reference, history.attempts[0].reference);
}

fn count(probe: &Probe) -> u64 {
    match &probe.result {
        ProbeResult::Counted(count) => count.effects,
        ProbeResult::Failed(why) => panic!("{why}"),
    }
}

#[tokio::test]
async fn a_count_is_believed_only_when_it_stays_still() {
    let items = |n: usize| answer("200 OK", &json!({"items": vec![json!({"id": 1}); n]}).to_string());
    let peer = in_turn(vec![CREATED.to_owned(), items(0), items(1), items(2), items(2), items(0)]).await;
    let history = perform(counted(&format!("http://{}", peer.addr)), vec![send(plan("a"))]).await;
    let ProbeResult::Counted(found) = &history.probes[0].result else { panic!("{history:#?}") };
    assert_eq!((found.effects, found.polls), (2, 4));
    assert_eq!(peer.finish().await.len(), 6, "one request, four polls, and one for a reference that was never sent");
}

#[tokio::test]
async fn a_count_that_lags_behind_an_answer_is_waited_for() {
    let items = |n: usize| answer("200 OK", &json!({"items": vec![json!({"id": 1}); n]}).to_string());
    let peer = in_turn(vec![CREATED.to_owned(), items(0), items(0), items(0), items(1), items(1), items(0)]).await;
    let history = perform(counted(&format!("http://{}", peer.addr)), vec![send(plan("a"))]).await;
    assert_eq!(count(&history.probes[0]), 1);
    peer.finish().await;
    let peer = in_turn(vec![CREATED.to_owned(), items(0)]).await;
    let history = perform(counted(&format!("http://{}", peer.addr)), vec![send(plan("a"))]).await;
    assert_eq!(count(&history.probes[0]), 0, "not for ever");
    peer.finish().await;
}

#[tokio::test]
async fn a_probe_that_does_not_count_by_reference_counts_nothing() {
    let items = answer("200 OK", &json!({"items": [{"id": 1}]}).to_string());
    for (probed, wanted) in [(items, "never sent"), (answer("200 OK", "\"items\""), "nothing to count")] {
        let peer = in_turn(vec![CREATED.to_owned(), probed]).await;
        let history = perform(counted(&format!("http://{}", peer.addr)), vec![send(plan("a"))]).await;
        let ProbeResult::Failed(why) = &history.probes[0].result else { panic!("{history:#?}") };
        assert!(why.contains(wanted), "{why}");
        peer.finish().await;
    }
}

#[tokio::test]
async fn effects_are_counted_after_slow_handlers_that_nobody_waits_for() {
    let effects = Effects::default();
    let peer = Peer::start(move |mut client| {
        let effects = effects.clone();
        async move {
            let request = client.request().await.unwrap();
            if request.starts_with(b"POST") {
                // Well before the end of the time that it is said to take, well after that of the attempt.
                tokio::time::sleep(Duration::from_millis(2000)).await;
            }
            let _ = client.stream.write_all(effects.answer(&request).as_bytes()).await;
            client.drain().await;
        }
    })
    .await;
    let mut slow = plan("slow");
    (slow.slow, slow.timeout) = (Some(Span::from_secs(4)), Span::from_millis(1000));
    let history = perform(counted(&format!("http://{}", peer.addr)), vec![send(slow)]).await;
    assert_eq!(history.attempts[0].end, End::TimedOut);
    assert_eq!(count(&history.probes[0]), 1);
    peer.finish().await;
}

#[tokio::test]
async fn a_probe_that_says_nothing_has_failed() {
    for (bad, word) in [
        (answer("503 Busy", "try later"), "503"),
        (answer("200 OK", "<html>"), "not JSON"),
        (answer("200 OK", &"x".repeat(1024 * 1024 + 1)), "1 MiB"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n{}".to_owned(), "in time"),
    ] {
        let peer = in_turn(vec![CREATED.to_owned(), bad]).await;
        let mut target = counted(&format!("http://{}", peer.addr));
        target.limits.timeout = Span::from_secs(3);
        let history = perform(target, vec![send(plan("a"))]).await;
        let ProbeResult::Failed(why) = &history.probes[0].result else { panic!("{history:#?}") };
        assert!(why.contains(word), "{why}");
        peer.finish().await;
    }
}

#[tokio::test]
async fn secrets_do_not_reach_the_history() {
    let echo = answer("201 Created", "{\"id\": \"secret-token\", \"note\": \"secret-token\"}");
    let echo = echo.replace("content-type", "x-echo: secret-token\r\ncontent-type");
    let peer = in_turn(vec![echo]).await;
    let mut target = plain(peer.addr);
    target.redactor.add("secret-token");
    target.operations[0].path = Template::parse("/payments?token=secret-token").unwrap();
    let history = perform(target, vec![send(plan("a"))]).await;
    assert!(String::from_utf8_lossy(&peer.finish().await[0]).contains("secret-token"));
    let text = serde_json::to_string(&history).unwrap();
    assert!(text.contains("***") && !text.contains("secret-token"), "{text}");
}

#[tokio::test]
async fn an_interrupt_ends_what_is_under_way_and_keeps_the_record() {
    let (interrupter, interrupt) = Interrupt::pair();
    let interrupter = Arc::new(interrupter);
    let peer = Peer::start(move |mut client| {
        let interrupter = Arc::clone(&interrupter);
        async move {
            client.request().await.unwrap();
            interrupter.interrupt();
            client.drain().await;
        }
    })
    .await;
    let options = Options { interrupt, ..options() };
    let steps = vec![Step::Start(Box::new(plan("a"))), time(3_600_000), send(plan("b"))];
    let history = perform_with(plain(peer.addr), options, steps).await;
    assert_eq!(peer.finish().await.len(), 1);
    assert_eq!((history.attempts.len(), &history.attempts[0].end), (1, &End::TimedOut));
    assert_eq!(history.stopped.as_deref(), Some("interrupted"));
}

#[tokio::test]
async fn every_round_has_its_own_key_and_reference() {
    let peer = Peer::answering(CREATED).await;
    let target = plain(peer.addr);
    let schedule = schedule(&target, vec![send(plan("a"))]);
    let driver = Driver::new(Arc::new(target), options()).await.unwrap();
    let first = perform_on(&driver, &schedule).await;
    let second = driver.clone().perform(&schedule, 1).await;
    peer.finish().await;
    assert_ne!(first.attempts[0].key_field, second.attempts[0].key_field);
    assert_ne!(first.attempts[0].reference, second.attempts[0].reference);
    assert!(second.attempts[0].timing.opened >= first.attempts[0].timing.ended, "one clock for all");
}

#[tokio::test]
async fn a_special_field_replaces_a_general_one_and_a_hook_replaces_both() {
    let peer = Peer::answering(CREATED).await;
    let mut target = plain(peer.addr);
    let field = |name: &'static str, value: &str| HeaderTemplate {
        name: HeaderName::from_static(name),
        value: Template::parse(value).unwrap(),
    };
    target.operations[0].headers =
        vec![field("content-type", "application/merge-patch+json"), field("x-a", "1"), field("x-a", "${run}")];
    let mut plan = plan("a");
    plan.hook_headers = vec![(HeaderName::from_static("x-slow"), "5".parse().unwrap())];
    plan.slow = Some(Span::from_millis(5));
    let history = perform(target, vec![send(plan)]).await;
    let text = String::from_utf8(peer.finish().await.remove(0)).unwrap();
    for field in ["content-type: application/merge-patch+json\r\n", "x-a: 1\r\nx-a: r1\r\n", "x-slow: 5\r\n"] {
        assert!(text.contains(field), "{field} in {text}");
    }
    assert_eq!(history.attempts[0].hooks, ["slow 5ms"]);
}

#[tokio::test]
async fn a_node_that_refuses_cannot_be_reached_and_one_that_listens_can() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let refusing = format!("http://user:pass@{}", socket.local_addr().unwrap());
    let peer = Peer::start(|mut client| async move { client.drain().await }).await;
    let good = format!("http://{}", peer.addr);
    let driver = Driver::new(Arc::new(target(&[good.clone(), refusing])), options()).await.unwrap();
    let error = driver.reach(Duration::from_millis(100)).await.unwrap_err();
    let DriveError::Unreachable { node, why } = &error else { panic!("{error}") };
    assert!(node == &format!("http://{}", socket.local_addr().unwrap()) && why.contains("refused"), "{error}");
    let driver = Driver::new(Arc::new(target(&[good])), options()).await.unwrap();
    driver.reach(Duration::ZERO).await.unwrap();
    assert!(peer.finish().await.iter().all(Vec::is_empty), "reaching sends no request");
}

#[tokio::test]
async fn a_run_id_that_no_header_can_hold_is_refused() {
    let target = Arc::new(target(&["http://127.0.0.1:1".to_owned()]));
    let options = Options { run: "a\r\nb".into(), ..options() };
    assert!(matches!(Driver::new(target, options).await.err(), Some(DriveError::RunId(_))));
}
