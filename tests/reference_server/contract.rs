//! What holds in every store and with any number of nodes.

use crate::client::{Reply, advance, aside, count, keyed, pay, send, until};
use crate::subject::{Subject, everywhere};
use libtest_mimic::Trial;
use std::net::SocketAddr;

pub(crate) fn trials() -> Vec<Trial> {
    [
        everywhere("every operation happens once", every_operation_happens_once),
        everywhere("a burst has one effect", a_burst_has_one_effect),
        everywhere("changes at once add up", changes_at_once_add_up),
        everywhere("an event that is told many times has one effect", an_event_has_one_effect),
        everywhere("a crash between any two phases charges once", a_crash_between_phases_charges_once),
        everywhere("a living owner keeps its key, a hung one is fenced", leases),
        everywhere("a key of one tenant is nothing to another", tenants),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Sends the same from one node after the other, through the common port.
fn on_every_node(subject: &Subject, request: impl Fn(SocketAddr) -> Reply) -> Vec<Reply> {
    subject.nodes.iter().chain([&subject.addr, &subject.addr]).map(|addr| request(*addr)).collect()
}

fn every_operation_happens_once(subject: &Subject) {
    let operations = [
        ("POST", "/payments", r#"{"amount":1,"currency":"TRY","reference":"REF"}"#, "/payments"),
        ("POST", "/v1/payments", r#"{"amount":1,"currency":"TRY","reference":"REF"}"#, "/payments"),
        ("POST", "/charges", r#"{"amount":1,"currency":"TRY","reference":"REF"}"#, "/test/provider/charges"),
        ("POST", "/payments/batch", r#"{"items":[{"amount":1,"currency":"TRY","reference":"REF"},5]}"#, "/payments"),
        ("POST", "/payments/pay_demo/refunds", r#"{"amount":1,"reference":"REF"}"#, "/refunds"),
        ("PATCH", "/payments/pay_demo", r#"{"add":1,"reference":"REF"}"#, "/changes"),
        ("POST", "/receipts", r#"{"reference":"REF"}"#, "/receipts"),
        ("POST", "/statements", r#"{"reference":"REF"}"#, "/statements"),
        ("POST", "/exports", r#"{"reference":"REF"}"#, "/exports"),
    ];
    for (n, (method, path, body, list)) in operations.into_iter().enumerate() {
        let (reference, key) = (format!("ref-{n}"), format!("key-{n}"));
        let body = body.replace("REF", &reference);
        let replies = on_every_node(subject, |addr| keyed(addr, method, path, &key, &body, &[]).expect("an answer"));
        let first = &replies[0];
        assert!((200..300).contains(&first.status) && !first.replayed(), "{path}: {first:?}");
        for replay in &replies[1..] {
            assert!(replay.replayed(), "{path}: {replay:?}");
            assert_eq!((replay.status, &replay.body), (first.status, &first.body), "{path}");
        }
        let other = keyed(subject.addr, method, path, &key, &body.replace(&reference, "other"), &[]);
        assert_eq!(other.expect("an answer").problem(), (422, "key-reused".into()), "{path}");
        assert_eq!(count(subject.addr, list, &reference), 1, "{path}");
    }
    until("the export is done", || {
        let exports = send(subject.addr, "GET", "/exports?reference=ref-8", &[], "").expect("an answer").json();
        exports["items"][0]["status"] == "done"
    });
}

fn a_burst_has_one_effect(subject: &Subject) {
    for round in 0..3 {
        let (key, reference) = (format!("k{round}"), format!("r{round}"));
        let burst: Vec<_> = (0..32)
            .map(|n| {
                let addr = subject.nodes.get(n % (subject.nodes.len() + 1)).copied().unwrap_or(subject.addr);
                let (key, reference) = (key.clone(), reference.clone());
                aside(move || pay(addr, &key, &reference, &[("X-Test-Delay-Ms", "50")]).expect("an answer"))
            })
            .collect();
        let replies: Vec<_> = burst.into_iter().map(|reply| reply.join().expect("no panic")).collect();
        let fresh: Vec<_> = replies.iter().filter(|reply| reply.status == 201 && !reply.replayed()).collect();
        assert_eq!(fresh.len(), 1, "{replies:?}");
        for reply in &replies {
            match reply.status {
                201 => assert_eq!(reply.body, fresh[0].body),
                _ => assert_eq!(reply.problem(), (409, "key-in-use".into())),
            }
        }
        assert_eq!(count(subject.addr, "/payments", &reference), 1);
    }
}

fn changes_at_once_add_up(subject: &Subject) {
    let before = send(subject.addr, "GET", "/payments/pay_demo", &[], "").expect("an answer").json();
    let addr = subject.addr;
    let changes: Vec<_> = (0..8)
        .map(|n| {
            let body = r#"{"add":5,"reference":"r"}"#;
            aside(move || keyed(addr, "PATCH", "/payments/pay_demo", &format!("k{n}"), body, &[]).expect("an answer"))
        })
        .collect();
    for change in changes {
        let reply = change.join().expect("no panic");
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    let after = send(addr, "GET", "/payments/pay_demo", &[], "").expect("an answer").json();
    assert_eq!(after["amount"].as_i64().map(|amount| amount - 40), before["amount"].as_i64());
    assert_eq!(count(addr, "/changes", "r"), 8);
}

fn an_event_has_one_effect(subject: &Subject) {
    let addr = subject.addr;
    let body = r#"{"id":"evt_1","amount":3,"reference":"r"}"#;
    let told: Vec<_> =
        (0..16).map(|_| aside(move || send(addr, "POST", "/webhooks", &[], body).expect("an answer"))).collect();
    let mut processed = 0;
    for told in told {
        let reply = told.join().expect("no panic");
        assert_eq!(reply.status, 200, "{reply:?}");
        processed += usize::from(reply.json()["status"] == "processed");
    }
    assert_eq!((processed, count(addr, "/credits", "r")), (1, 1));
}

fn a_crash_between_phases_charges_once(subject: &Subject) {
    for moment in ["before", "started", "between", "after", "committed"] {
        let addr = subject.addr;
        let body = format!(r#"{{"amount":7,"currency":"TRY","reference":"{moment}"}}"#);
        let charge = |headers: &[(&str, &str)]| keyed(addr, "POST", "/charges", moment, &body, headers);
        assert_eq!(charge(&[("X-Test-Fail", &format!("crash-{moment}"))]), None);
        advance(addr, 30);
        let retry = charge(&[]).expect("an answer");
        assert_eq!((retry.status, retry.replayed()), (201, moment == "committed"), "{moment} {retry:?}");
        let again = charge(&[]).expect("an answer");
        assert_eq!((again.replayed(), &again.body), (true, &retry.body));
        until("the notification has come", || count(addr, "/test/notifications", moment) == 1);
        let happened = (count(addr, "/payments", moment), count(addr, "/test/provider/charges", moment));
        assert_eq!(happened, (1, 1), "{moment}");
    }
}

fn leases(subject: &Subject) {
    let addr = subject.addr;
    let owned = || send(addr, "GET", "/health", &[], "").expect("an answer").json()["owners"] == 1;
    let slow = aside(move || pay(addr, "slow", "slow", &[("X-Test-Delay-Ms", "1500")]).expect("an answer"));
    until("the slow one is at work", owned);
    for _ in 0..3 {
        advance(addr, 30);
        assert_eq!(pay(addr, "slow", "slow", &[]).expect("an answer").problem(), (409, "key-in-use".into()));
    }
    let slow = slow.join().expect("no panic");
    assert_eq!(pay(addr, "slow", "slow", &[]).expect("an answer").body, slow.body);

    let headers = [("X-Test-Delay-Ms", "2000"), ("X-Test-Stall", "yes")];
    let hung = aside(move || pay(addr, "hung", "hung", &headers).expect("an answer"));
    until("the hung one is at work", owned);
    advance(addr, 30);
    let second = pay(addr, "hung", "hung", &[]).expect("an answer");
    assert_eq!((second.status, second.replayed()), (201, false));
    assert_eq!(hung.join().expect("no panic").problem(), (409, "lease-lost".into()));
    assert_eq!((count(addr, "/payments", "slow"), count(addr, "/payments", "hung")), (1, 1));
}

fn tenants(subject: &Subject) {
    let a = [("Authorization", "Bearer token-a")];
    let b = [("Authorization", "Bearer token-b")];
    let first = pay(subject.addr, "k", "r", &a).expect("an answer");
    let second = pay(subject.addr, "k", "r", &b).expect("an answer");
    assert_eq!((first.status, second.status, second.replayed()), (201, 201, false));
    let location = format!("/payments/{}", first.json()["id"].as_str().expect("an id"));
    assert_eq!(send(subject.addr, "GET", &location, &b, "").expect("an answer").status, 404);
    assert_eq!(send(subject.addr, "GET", &location, &a, "").expect("an answer").status, 200);
}
