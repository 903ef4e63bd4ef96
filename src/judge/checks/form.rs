//! Rules about the form of answers, and about what is documented. Most are only asked where a case names them.

use serde_json::Value;

use super::{Check, found};
use crate::{
    history::{Attempt, Micros, Response},
    judge::{
        Decision, Finding, classify,
        seen::{Seen, answer, before, start},
    },
    spec::{RuleId, id},
    suite::Word,
};

/// How much of a body the record holds as text, in bytes.
const RECORDED: u64 = 8 * 1024;
/// Dates count whole seconds; two answers this far apart cannot have the same one by chance.
const DATES_APART: Micros = 2_000_000;

fn asked(seen: &Seen<'_>, rule: RuleId) -> bool {
    seen.schedule.rules.contains(&rule)
}

/// The body as JSON, if all of it is in the record.
fn json(response: &Response) -> Option<Value> {
    let whole = response.body.complete && response.body.length <= RECORDED;
    whole.then(|| serde_json::from_str(&response.body.text).ok()).flatten()
}

fn decide(rule: RuleId, good: bool, message: String, attempt: &Attempt) -> Finding {
    let decision = if good { Decision::Held } else { Decision::Broken };
    found(rule, decision, message, if good { &[][..] } else { std::slice::from_ref(&attempt) })
}

/// What calls itself a problem document is one.
pub(super) struct ProblemJson;

impl Check for ProblemJson {
    fn check(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for attempt in seen.sent() {
            let Some(response) = answer(attempt) else { continue };
            let named = response.field("content-type").is_some_and(|value| {
                value.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/problem+json"))
            });
            if !named || !response.body.complete || response.body.length > RECORDED {
                continue;
            }
            let (good, what) = match json(response) {
                Some(Value::Object(members)) => match members.get("status") {
                    None => (true, "a problem document".to_owned()),
                    Some(status) if status.as_u64() == Some(u64::from(response.status)) => {
                        (true, "a problem document with its own status".to_owned())
                    }
                    Some(status) => (false, format!("{} with a problem document that says {status}", response.status)),
                },
                Some(_) => (false, "a problem document that is no JSON object".to_owned()),
                None => (false, "a problem document that is no JSON".to_owned()),
            };
            let message = format!("`{}` was answered with {what}", attempt.name);
            findings.push(decide(id::PROBLEM_JSON_IS_VALID, good, message, attempt));
        }
        findings
    }
}

/// Links, markers, hints and codes of refusals.
pub(super) struct Refusals;

impl Check for Refusals {
    fn check(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for attempt in seen.sent() {
            let Some(response) = answer(attempt) else { continue };
            let name = &attempt.name;
            let is = |word| seen.is(attempt, word);
            if asked(seen, id::REFUSAL_LINKS_DOCUMENTATION) && (is(Word::MissingKey) || is(Word::Mismatch)) {
                let good = links(response);
                let message = format!("the refusal of `{name}` {} a link", if good { "has" } else { "has not" });
                findings.push(decide(id::REFUSAL_LINKS_DOCUMENTATION, good, message, attempt));
            }
            let refused = is(Word::MissingKey) || is(Word::Mismatch) || is(Word::InFlight);
            if asked(seen, id::REFUSAL_CARRIES_NO_MARKER)
                && refused
                && let Some(marked) = classify::marked(seen, response)
            {
                let message =
                    format!("the refusal of `{name}` is {}marked as a replay", if marked { "" } else { "not " });
                findings.push(decide(id::REFUSAL_CARRIES_NO_MARKER, !marked, message, attempt));
            }
            if asked(seen, id::IN_FLIGHT_SAYS_WHEN_TO_RETRY) && is(Word::InFlight) {
                let good = response.field("retry-after").is_some();
                let message = format!("the refusal of `{name}` {} Retry-After", if good { "has" } else { "has no" });
                findings.push(decide(id::IN_FLIGHT_SAYS_WHEN_TO_RETRY, good, message, attempt));
            }
        }
        if asked(seen, id::REFUSAL_TOLD_FROM_BUSINESS_ERROR) {
            findings.extend(told_apart(seen));
        }
        findings
    }
}

/// Whether an answer links to something: in a Link field, or anywhere in its body.
fn links(response: &Response) -> bool {
    let described = response.field("link").is_some_and(|value| value.contains("describedby"));
    let kind = json(response).and_then(|body| body.get("type")?.as_str().map(str::to_owned));
    let typed = kind.is_some_and(|kind| kind.starts_with('/'));
    described || typed || response.body.text.contains("://")
}

/// Whether a mismatch looks unlike a failed validation.
fn told_apart(seen: &Seen<'_>) -> Option<Finding> {
    let mismatch = seen.sent().find(|attempt| seen.is(attempt, Word::Mismatch))?;
    let business = seen.sent().find(|attempt| attempt.role == "invalid" && attempt.intent != mismatch.intent)?;
    let (one, other) = (answer(mismatch)?, answer(business)?);
    if !(400..500).contains(&other.status) {
        return None;
    }
    let rule = id::REFUSAL_TOLD_FROM_BUSINESS_ERROR;
    let by_status = one.status != other.status;
    let by_code = matches!((code(seen, one), code(seen, other)), (Some(one), Some(other)) if one != other);
    let what = match (by_status, by_code) {
        (true, _) => "status",
        (false, true) => "code",
        (false, false) => "neither status nor code",
    };
    let message = format!("`{}` and `{}` are told apart by {what}", mismatch.name, business.name);
    Some(decide(rule, by_status || by_code, message, mismatch))
}

/// What tells one error from another: the documented path, or the members that most APIs use.
fn code(seen: &Seen<'_>, response: &Response) -> Option<String> {
    let body = json(response)?;
    if let Some(path) = &seen.policy.error_code {
        let nodes = path.query(&body).all();
        return (!nodes.is_empty()).then(|| nodes.iter().map(ToString::to_string).collect());
    }
    let members = ["type", "code", "error"];
    members.iter().find_map(|name| body.get(*name).filter(|value| !value.is_object()).map(ToString::to_string))
}

/// A replay has a date of its own.
pub(super) struct Date;

impl Check for Date {
    fn check(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (original, replay) in seen.replays() {
            let (first, second) = (original.attempt, replay.attempt);
            let far = before(first, second) && start(second) - first.timing.ended >= DATES_APART;
            let dates = original.response.field("date").zip(replay.response.field("date"));
            if let Some((was, is)) = dates.filter(|_| far) {
                let message = format!("the original says {was}, the replay `{}` {is}", second.name);
                findings.push(decide(id::REPLAY_HAS_ITS_OWN_DATE, was != is, message, second));
            }
        }
        findings
    }
}
