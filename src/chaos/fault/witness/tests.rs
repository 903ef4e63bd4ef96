#![allow(clippy::unwrap_used)]

use super::super::{Ability, Fault, Protocol, Sizes, compile};
use super::*;

fn recipe(fault: Fault, extensions: bool) -> Recipe {
    let ability = Ability { extensions, exact: true, primer: true };
    let sizes = Sizes { request_head: 100, request: 120, answer: Some(50), patience: Duration::from_secs(9) };
    compile(fault, Protocol::Http1, ability, sizes).unwrap()
}

fn connection(up: u64, down_read: u64, down: u64, requests: u64) -> Connection {
    let flow = |read, written| serde_json::json!({"read": read, "written": written, "records": 0});
    serde_json::from_value(serde_json::json!({
        "number": 1, "speech": "http/1", "accepted_us": 0, "dialled_us": 1, "ended_us": 2,
        "upstream": flow(up, up), "downstream": flow(down_read, down),
        "requests": requests, "answers_begun": 0, "answers": 0, "answers_drained": 0,
        "held": null, "fired": [], "replays": [], "cause": "x", "client": "closed", "server": "closed",
    }))
    .unwrap()
}

fn lost(ending: Ending) -> Seen {
    Seen { sent: 120, whole: 120, received: 0, end: ClientEnd::Lost(ending), took: Duration::ZERO }
}

#[test]
fn a_lost_answer_needs_an_answer() {
    let recipe = recipe(Fault::LoseResponse(Ending::Close), true);
    let seen = lost(Ending::Close);
    let says = |ledger: &Connection| witness(&recipe, &seen, Some(ledger), None);
    assert!(says(&connection(120, 50, 0, 1)).is_ok());
    assert!(says(&connection(120, 0, 0, 1)).unwrap_err().contains("nothing shows that the server had answered"));
    assert!(says(&connection(120, 50, 7, 1)).unwrap_err().contains("went to the client"));
}

#[test]
fn t01_the_ending_must_be_the_one_that_was_asked_for() {
    let recipe = recipe(Fault::LoseResponse(Ending::Reset), true);
    let ledger = connection(120, 50, 0, 1);
    assert!(witness(&recipe, &lost(Ending::Reset), Some(&ledger), None).is_ok());
    let wrong = witness(&recipe, &lost(Ending::Close), Some(&ledger), None).unwrap_err();
    assert_eq!(wrong, "the connection ended by close, and reset was asked for");
}

#[test]
fn t06_bytes_of_earlier_exchanges_do_not_count() {
    let recipe = recipe(Fault::CutBody { after: 5, ending: Ending::Close }, true);
    let base = connection(300, 80, 80, 2);
    let seen = Seen { sent: 105, ..lost(Ending::Close) };
    assert!(witness(&recipe, &seen, Some(&connection(405, 80, 80, 2)), Some(&base)).is_ok());
    let elsewhere = witness(&recipe, &seen, Some(&connection(404, 80, 80, 2)), Some(&base)).unwrap_err();
    assert!(elsewhere.contains("104 bytes of the request reached the server, not 105"), "{elsewhere}");
}

#[test]
fn t08_a_connection_and_written_bytes_are_no_delivery() {
    let recipe = recipe(Fault::CutAtLastByte(Ending::Close), true);
    let seen = lost(Ending::Close);
    let why = witness(&recipe, &seen, Some(&connection(0, 0, 0, 0)), None).unwrap_err();
    assert_eq!(why, "only 0 of 120 bytes reached the server");
}

#[test]
fn what_only_looks_like_the_fault_is_not_it() {
    let answered = Seen { received: 50, end: ClientEnd::Answered, ..lost(Ending::Close) };
    let gave_up = Seen { end: ClientEnd::GaveUp, ..lost(Ending::Close) };
    for word in Fault::WORDS {
        let fault = Fault::from_word(word).unwrap();
        let waits = matches!(fault, Fault::DelayResponse(_) | Fault::SlowRequest(_) | Fault::Hold);
        let quits = matches!(fault, Fault::MuteResponse | Fault::GiveUpUnnoticed(_));
        let recipe = recipe(fault, true);
        let ledger = connection(120, 50, 50, 1);
        if !waits {
            assert!(witness(&recipe, &answered, Some(&ledger), None).is_err(), "{word}: an undisturbed exchange");
        }
        if !quits {
            assert!(witness(&recipe, &gave_up, Some(&ledger), None).is_err(), "{word}: a silent server");
        }
    }
    let late = recipe(Fault::DelayResponse(Duration::from_secs(1)), true);
    assert!(witness(&late, &answered, None, None).unwrap_err().contains("after 0 ms already"));
}
