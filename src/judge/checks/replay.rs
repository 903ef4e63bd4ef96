//! Rules about what a replay looks like.

use http::{HeaderName, header};
use serde_json::Value;

use super::{Check, found};
use crate::{
    history::{Attempt, Response},
    judge::{
        Decision, Finding, classify,
        seen::{Seen, Success, before},
    },
    spec::{RuleId, id},
    suite::Word,
    target::{ReplayKind, ReplayStatus},
};

/// How much of a body the record holds as text, in bytes.
const RECORDED: u64 = 8 * 1024;

/// Status, body, `Location` and `Content-Type` of replays.
pub(super) struct Fidelity;

impl Check for Fidelity {
    fn check(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (original, replay) in seen.replays() {
            let pair = [original.attempt, replay.attempt];
            let mut add = |rule: RuleId, (decision, message): (Decision, String)| {
                let shown = if decision == Decision::Held { &pair[..0] } else { &pair[..] };
                findings.push(found(rule, decision, message, shown));
            };
            add(id::REPLAY_SAME_STATUS, status(seen, &original, &replay));
            let (mut decision, message) = body(original.response, replay.response, replay.attempt);
            // The state of today under the same identity is what such an API documents.
            if decision == Decision::Broken && seen.policy.replay.kind.is(&ReplayKind::CurrentState) {
                decision = Decision::Deviation;
            }
            add(id::REPLAY_SAME_BODY, (decision, message));
            let fields =
                [(id::REPLAY_KEEPS_LOCATION, header::LOCATION), (id::REPLAY_KEEPS_CONTENT_TYPE, header::CONTENT_TYPE)];
            for (rule, name) in fields {
                if let Some(decided) = field(seen, &original, &replay, &name) {
                    add(rule, decided);
                }
            }
        }
        findings.extend(hollow(seen));
        findings
    }
}

fn status(seen: &Seen<'_>, original: &Success<'_>, replay: &Success<'_>) -> (Decision, String) {
    let (was, is) = (original.response.status, replay.response.status);
    let name = &replay.attempt.name;
    if was == is {
        return (Decision::Held, format!("`{name}` was answered {is} like the original"));
    }
    let message = format!("the original was answered {was}, the replay `{name}` {is}");
    match &seen.policy.replay.status {
        ReplayStatus::Other(set) if set.contains(is) => (Decision::Deviation, format!("{message}, as documented")),
        // Of an overlap it is not known which one was the original.
        ReplayStatus::Other(set) if set.contains(was) && !before(original.attempt, replay.attempt) => {
            (Decision::Deviation, format!("one of two equal results was answered {is}, the other {was}, as documented"))
        }
        _ => (Decision::Broken, message),
    }
}

fn body(original: &Response, replay: &Response, attempt: &Attempt) -> (Decision, String) {
    let (was, is) = (&original.body, &replay.body);
    let name = &attempt.name;
    if was.sha256 == is.sha256 && was.length == is.length {
        return (Decision::Held, format!("`{name}` has the body of the original, byte by byte"));
    }
    let encoded = [original, replay].iter().any(|response| response.field("content-encoding").is_some());
    if encoded || was.length.max(is.length) > RECORDED {
        let why = "the bodies differ in bytes; encoded or long ones are not compared by value";
        return (Decision::Undecided, format!("`{name}`: {why}"));
    }
    let (Ok(old), Ok(new)) = (serde_json::from_str::<Value>(&was.text), serde_json::from_str::<Value>(&is.text)) else {
        return (Decision::Broken, format!("the replay `{name}` has another body than the original"));
    };
    if old == new {
        return (Decision::Held, format!("`{name}` has the body of the original in other bytes"));
    }
    (Decision::Broken, format!("the replay `{name}` has another body than the original: {}", difference(&old, &new)))
}

/// The first members that differ.
fn difference(old: &Value, new: &Value) -> String {
    let (Value::Object(was), Value::Object(is)) = (old, new) else { return "the values differ".into() };
    let names = was.keys().chain(is.keys().filter(|name| !was.contains_key(*name)));
    let differing: Vec<_> = names.filter(|name| was.get(*name) != is.get(*name)).take(4).cloned().collect();
    format!("`{}` differ", differing.join("`, `"))
}

/// `None` if the original did not have the field.
fn field(
    seen: &Seen<'_>,
    original: &Success<'_>,
    replay: &Success<'_>,
    name: &HeaderName,
) -> Option<(Decision, String)> {
    let was = original.response.field(name.as_str())?;
    let who = &replay.attempt.name;
    let is = replay.response.field(name.as_str());
    let same_node = original.attempt.node == replay.attempt.node;
    if is.is_some_and(|is| same_field(name, was, is, same_node)) {
        return Some((Decision::Held, format!("`{who}` has the {name} of the original")));
    }
    let message = match is {
        Some(is) => format!("the original has {name} `{was}`, the replay `{who}` `{is}`"),
        None => format!("the original has {name} `{was}`, the replay `{who}` has none"),
    };
    let kept = seen.policy.replay.keeps.contains(name);
    // What is documented not to be kept is a field that is missing, not one with another value.
    let decision = if kept || is.is_some() { Decision::Broken } else { Decision::Deviation };
    Some((decision, message))
}

fn same_field(name: &HeaderName, was: &str, is: &str, same_node: bool) -> bool {
    if name == header::CONTENT_TYPE {
        // Case, spaces and the charset that JSON has anyway say nothing new.
        let plain = |value: &str| {
            let value: String = value.to_ascii_lowercase().split_whitespace().collect();
            value.replace("charset=\"utf-8\"", "charset=utf-8").replace(";charset=utf-8", "")
        };
        return plain(was) == plain(is);
    }
    // Each node may write its own address.
    let path = |value: &str| {
        let rest = value.split_once("://").map_or(value, |(_, rest)| rest);
        rest.find('/').map_or_else(String::new, |at| rest[at..].to_owned())
    };
    was == is || (!same_node && path(was) == path(is))
}

/// Successes that name nothing, after one that did.
fn hollow(seen: &Seen<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (first, second) in seen.success_pairs() {
        let (a, b) = (first.attempt, second.attempt);
        let fresh = first.identity.is_none() || second.identity.is_some() || !before(a, b);
        if fresh || a.payload_sha256 != b.payload_sha256 || first.response.body.sha256 == second.response.body.sha256 {
            continue;
        }
        let other =
            matches!(&seen.policy.replay.status, ReplayStatus::Other(set) if set.contains(second.response.status));
        let decision = if other { Decision::Deviation } else { Decision::Broken };
        let message =
            format!("`{}` was answered with success and without the result that `{}` was given", b.name, a.name);
        findings.push(found(id::REPLAY_SAME_BODY, decision, message, &[a, b]));
    }
    findings
}

/// A replay, and nothing but a replay, carries the documented marker.
pub(super) struct Marker;

impl Check for Marker {
    fn check(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let Some((name, _)) = &seen.policy.replay.marker else { return Vec::new() };
        let rule = id::REPLAY_MARKER_AS_DOCUMENTED;
        let mut findings = Vec::new();
        for success in seen.successes().filter(|success| success.identity.is_some()) {
            let attempt = success.attempt;
            let Some(marked) = classify::marked(seen, success.response) else { continue };
            let rivals: Vec<_> = seen.rivals(attempt).collect();
            let twin = |other: &&&Attempt| seen.success(other).is_some_and(|s| s.identity == success.identity);
            let unseen = rivals.iter().any(|other| seen.may_have_executed_unseen(other));
            let twins: Vec<_> = rivals.iter().filter(twin).collect();
            let replayed = twins.iter().any(|other| before(other, attempt));
            let nothing_to_replay = twins.is_empty() && !unseen && attempt.key.is_some();
            let finding = match (marked, replayed) {
                (false, true) => {
                    let message = format!("`{}` is a replay and does not carry {name}", attempt.name);
                    found(rule, Decision::Broken, message, &[attempt])
                }
                (true, false) if nothing_to_replay => {
                    let message = format!("`{}` carries {name}, and nothing before it could be replayed", attempt.name);
                    found(rule, Decision::Broken, message, &[attempt])
                }
                (true, true) => found(rule, Decision::Held, format!("`{}` is marked as a replay", attempt.name), &[]),
                (false, false) if seen.is(attempt, Word::Executed) => {
                    found(rule, Decision::Held, format!("`{}` did the work and is not marked", attempt.name), &[])
                }
                _ => match twins.iter().find(|other| unmarked_too(seen, other)) {
                    // Of equal answers in an overlap only one can be the execution.
                    Some(other) if !marked => {
                        let message = format!("neither `{}` nor `{}` carries {name}", other.name, attempt.name);
                        found(rule, Decision::Broken, message, &[other, attempt])
                    }
                    _ => continue,
                },
            };
            findings.push(finding);
        }
        findings
    }
}

fn unmarked_too(seen: &Seen<'_>, attempt: &Attempt) -> bool {
    seen.success(attempt).and_then(|success| classify::marked(seen, success.response)) == Some(false)
}
