//! The faults on the way from a stored answer, or a refusal, to a response.

use super::{Fault, FaultSet};
use crate::reference::core::{Answer, Verdict};
use crate::reference::http::{Problem, problem};
use serde_json::json;

/// A replay, as a server with faults makes it of the stored answer.
pub(in crate::reference) fn replayed(faults: FaultSet, mut answer: Answer) -> Answer {
    let on = |fault| faults.contains(fault);
    if on(Fault::StatusDriftOnReplay) && answer.status == 201 {
        answer.status = 200;
    }
    if on(Fault::FailureReplayedAsSuccess) && answer.status >= 500 {
        answer.status = 200;
    }
    if on(Fault::ReplayHeadersWrong) {
        answer.headers.retain(|(name, _)| name != "location");
    }
    for (name, value) in &mut answer.headers {
        match name.as_str() {
            "content-type" if on(Fault::ContentTypeChanged) => "text/plain".clone_into(value),
            "location" if on(Fault::LocationChanged) => {
                *value = format!("/payments/pay_{}", uuid::Uuid::new_v4().simple())
            }
            _ => {}
        }
    }
    if on(Fault::BodyCorruptedOnReplay) {
        answer.body = Vec::new().into();
    }
    if on(Fault::BodyTruncated) {
        answer.body = answer.body.slice(..answer.body.len().min(32));
    }
    let text = || String::from_utf8_lossy(&answer.body).into_owned();
    if on(Fault::BodyEncodedTwice) {
        answer.body = json!(text()).to_string().into();
    } else if on(Fault::BodyWrapped) {
        answer.body = json!({ "statusCode": answer.status, "body": text() }).to_string().into();
    } else if on(Fault::BinaryAsText) {
        answer.body = text().into();
    }
    answer
}

/// What a server with faults says in the place of what it has found.
pub(in crate::reference) fn refusal(faults: FaultSet, verdict: &Verdict) -> Option<Answer> {
    let on = |fault| faults.contains(fault);
    let crash = || Some(problem(Problem::Internal, "duplicate key value violates unique constraint"));
    match verdict {
        Verdict::InFlight(_) if on(Fault::DuplicateYields5xx) => crash(),
        Verdict::Replay(_) if on(Fault::ReplayYields5xx) => crash(),
        Verdict::Mismatch if on(Fault::MismatchYields5xx) => crash(),
        Verdict::Replay(_) if on(Fault::ReplayAlwaysConflicts) => {
            Some(problem(Problem::KeyInUse, "this request was sent before"))
        }
        _ => None,
    }
}

/// Whether an answer carries the marker of replays.
pub(in crate::reference) fn seems_a_replay(faults: FaultSet, replay: bool, status: u16) -> bool {
    match replay {
        true => !faults.contains(Fault::ReplayUnmarked),
        false => faults.contains(Fault::FirstAnswerMarked) && status < 300,
    }
}

/// The field that browsers may send the key in.
pub(in crate::reference) fn allowed_in_browsers(faults: FaultSet, key: Option<&str>) -> Option<&str> {
    key.filter(|_| !faults.contains(Fault::CorsBlocksKey))
}

/// The field that scripts in browsers may see the marker in.
pub(in crate::reference) fn shown_to_scripts(faults: FaultSet, marker: Option<&str>) -> Option<&str> {
    marker.filter(|_| !faults.contains(Fault::CorsHidesMarker))
}
