//! What a contract makes of requests, endings and answers. Pure functions.

use super::Contract;
use super::values::{
    Canon, Different, Disposal, Failures, Format, Inputs, Other, Place, ReplayKind, RetentionBase, Status, StatusOr,
};
use crate::reference::core::{Answer, Fingerprint, Record, Time};
use crate::reference::fingerprint::{digest, fingerprint};
use crate::reference::http::{Problem, problem};
use crate::reference::policy::{Ending, Policy};
use crate::reference::store::Scope;
use http::HeaderMap;
use serde_json::{Value, json};

/// Fields that every attempt writes anew, or that say nothing about what is asked for.
const VOLATILE: &[&str] = &[
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "date",
    "host",
    "traceparent",
    "tracestate",
    "transfer-encoding",
    "user-agent",
];

/// What becomes of the key and the result of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::reference) enum Kept {
    /// The result is stored and its effects are committed.
    Stored,
    /// Both are dropped, and the key is free again.
    Released,
    /// Both are dropped, and the key stays refused until its lease ends.
    Held,
}

impl Contract {
    /// Whether keys mean something on this operation.
    pub(in crate::reference) fn honours(&self, method: &str, streamed: bool) -> bool {
        self.methods.0.iter().any(|honoured| honoured == method) && (self.stores_streams || !streamed)
    }

    /// Whether a key is refused where it means nothing.
    pub(in crate::reference) fn refuses_key(&self, method: &str) -> bool {
        self.methods_other == Other::Reject && !self.methods.0.iter().any(|honoured| honoured == method)
    }

    /// The field that carries the key, if one does.
    pub(in crate::reference) fn key_field(&self) -> Option<&str> {
        (self.key.location.place == Place::Header).then_some(self.key.location.name.as_str())
    }

    /// The name of the field that marks replays, if there is one.
    pub(in crate::reference) fn marker_name(&self) -> Option<&str> {
        self.marker.0.as_ref().map(|(name, _)| name.as_str())
    }

    /// The scope of a key.
    pub(in crate::reference) fn scope(&self, scope: Scope) -> Scope {
        let parts = self.scope;
        Scope {
            tenant: if parts.tenant { scope.tenant } else { String::new() },
            method: if parts.method { scope.method } else { "*" },
            route: if parts.route { scope.route } else { "*" },
        }
    }

    /// What a request asks for; `None` when its body has no canonical form. `path` includes the query.
    pub(in crate::reference) fn fingerprint(
        &self,
        (method, path): (&str, &str),
        headers: &HeaderMap,
        bytes: &[u8],
    ) -> Option<Fingerprint> {
        let inputs = if self.mismatch == StatusOr::Word(Different::Replay) { Inputs::None } else { self.inputs };
        let bare = path.split('?').next().unwrap_or_default();
        let (method, path) = match inputs {
            Inputs::None => return Some(Fingerprint([0; 32])),
            Inputs::Body => ("", ""),
            Inputs::PathBody => ("", bare),
            Inputs::MethodPathQueryBody | Inputs::AndHeaders => (method, path),
        };
        let shown;
        let bytes = if self.ignored.is_empty() {
            bytes
        } else {
            let mut body: Value = serde_json::from_slice(bytes).ok()?;
            if let Some(members) = body.as_object_mut() {
                members.retain(|name, _| !self.ignored.contains(&name.to_ascii_lowercase()));
            }
            shown = body.to_string().into_bytes();
            &shown[..]
        };
        let of_body = match self.canon {
            Canon::Json => fingerprint(method, path, bytes)?,
            Canon::Bytes => digest(&[method.as_bytes(), path.as_bytes(), bytes]),
        };
        if inputs != Inputs::AndHeaders {
            return Some(of_body);
        }
        let chosen = |name: &&http::HeaderName| {
            let name = name.as_str();
            !VOLATILE.contains(&name) && !name.starts_with("x-test-") && name != self.key.location.name
        };
        let mut fields: Vec<_> = headers
            .keys()
            .filter(chosen)
            .map(|name| {
                let values: Vec<_> = headers.get_all(name).iter().map(http::HeaderValue::as_bytes).collect();
                [name.as_str().as_bytes(), b"=", &values.join(&b", "[..])].concat()
            })
            .collect();
        fields.sort();
        let mut parts: Vec<&[u8]> = vec![&of_body.0];
        parts.extend(fields.iter().map(Vec::as_slice));
        Some(digest(&parts))
    }

    /// What becomes of a result. `after` says that the execution had come to an effect.
    pub(in crate::reference) fn keeps(&self, policy: Policy, ending: Ending, after: bool) -> Kept {
        let disposal = |disposal| if disposal == Disposal::Store { Kept::Stored } else { Kept::Released };
        let failures = |failures| match failures {
            Failures::Operation if policy.keeps(Ending::Failed) => Kept::Stored,
            Failures::Store => Kept::Stored,
            Failures::Operation | Failures::Release => Kept::Released,
            Failures::Hold => Kept::Held,
        };
        match ending {
            Ending::Succeeded => Kept::Stored,
            Ending::Declined => disposal(self.declined),
            Ending::Rejected => disposal(self.validation),
            Ending::Failed | Ending::Unwound => failures(if after { self.failure_after } else { self.failure_before }),
            Ending::Interrupted => failures(self.unknown),
        }
    }

    /// The time that the retention of a result counts from.
    pub(in crate::reference) fn retention_from(&self, claimed: Time, now: Time) -> Time {
        if self.retention_base == RetentionBase::FirstSeen { claimed } else { now }
    }

    /// Whether expired records may be removed. They may not where an expired key has to be known.
    pub(in crate::reference) fn forgets(&self) -> bool {
        matches!(self.expired, StatusOr::Word(_))
    }

    /// The refusal of a key that has expired, if it is refused.
    pub(in crate::reference) fn expired(&self, record: Option<&Record>, now: Time) -> Option<Answer> {
        let StatusOr::Status(status) = self.expired else { return None };
        let gone = record.is_some_and(|record| crate::reference::core::expired(record, now));
        gone.then(|| with_status(problem(Problem::KeyExpired, "the result of this key is not kept any more"), status))
    }

    /// A refusal for the sake of the key, with the status that the contract has for it.
    pub(in crate::reference) fn refuse(&self, kind: Problem, detail: impl AsRef<str>) -> Answer {
        let mut answer = problem(kind, detail);
        let status = match kind {
            Problem::KeyMissing => self.key.missing_status.of(answer.status),
            Problem::KeyMalformed => self.key.malformed_status.of(answer.status),
            Problem::KeyReused => status_of(self.mismatch, answer.status),
            Problem::KeyInUse => status_of(self.in_flight, answer.status),
            Problem::StoreUnavailable => status_of(self.store_down, answer.status),
            _ => answer.status,
        };
        if kind == Problem::KeyInUse && !self.retry_after {
            answer.headers.retain(|(name, _)| name != "retry-after");
        }
        with_status(answer, status)
    }

    /// A replay of a stored answer.
    pub(in crate::reference) fn replay(&self, mut answer: Answer) -> Answer {
        if self.replay == ReplayKind::Refuse && answer.status < 300 {
            let made: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            let detail =
                format!("this request was sent before and made {}", made["id"].as_str().unwrap_or("what it asks for"));
            return problem(Problem::Repeated, detail);
        }
        if let (Status::Is(status), 200..=299) = (self.replay_status, answer.status) {
            answer.status = status;
        }
        answer.headers.retain(|(name, _)| !self.dropped.contains(name));
        answer
    }

    /// The answer with the marker of replays, if the contract has one.
    pub(in crate::reference) fn marked(&self, mut answer: Answer) -> Answer {
        answer.headers.extend(self.marker.0.clone());
        answer
    }

    /// The answer in the format of the contract's errors.
    pub(in crate::reference) fn written(&self, mut answer: Answer) -> Answer {
        let is_problem =
            |(name, value): &(String, String)| name == "content-type" && value == "application/problem+json";
        if self.errors == Format::Problem || !answer.headers.iter().any(is_problem) {
            return answer;
        }
        let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let text = |name: &str| said[name].as_str().unwrap_or_default().to_owned();
        let code = text("type").rsplit('/').next().unwrap_or_default().replace('-', "_");
        let (content_type, body) = match self.errors {
            Format::Xml => {
                let escaped = |text: String| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                let message = escaped(text("detail"));
                (
                    "application/xml",
                    format!("<Error><Code>{}</Code><Message>{message}</Message></Error>", escaped(code)),
                )
            }
            _ => ("application/json", json!({ "error": { "type": code, "message": text("detail") } }).to_string()),
        };
        for (name, value) in &mut answer.headers {
            if name == "content-type" {
                content_type.clone_into(value);
            }
        }
        answer.body = body.into();
        answer
    }
}

fn status_of<T>(choice: StatusOr<T>, otherwise: u16) -> u16 {
    match choice {
        StatusOr::Status(status) => status,
        StatusOr::Word(_) => otherwise,
    }
}

/// The problem document with another status.
fn with_status(mut answer: Answer, status: u16) -> Answer {
    if answer.status != status {
        answer.status = status;
        if let Ok(mut body) = serde_json::from_slice::<Value>(&answer.body) {
            body["status"] = status.into();
            answer.body = body.to_string().into();
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::reference::contract::Setting;

    fn contract(settings: &[&str]) -> Contract {
        let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
        Contract::default().with(&settings)
    }

    #[test]
    fn only_failures_are_a_matter_of_the_operation() {
        let draft = Contract::default();
        assert_eq!(draft.keeps(Policy::Draft, Ending::Succeeded, true), Kept::Stored);
        assert_eq!(draft.keeps(Policy::Draft, Ending::Failed, true), Kept::Released);
        assert_eq!(draft.keeps(Policy::StoredFailures, Ending::Unwound, false), Kept::Stored);
        let both = contract(&["store.5xx_pre=hold", "store.5xx_post=store"]);
        assert_eq!(both.keeps(Policy::StoredFailures, Ending::Failed, false), Kept::Held);
        assert_eq!(both.keeps(Policy::Draft, Ending::Failed, true), Kept::Stored);
        assert_eq!(
            contract(&["store.4xx_validation=store"]).keeps(Policy::Draft, Ending::Rejected, false),
            Kept::Stored
        );
    }

    #[test]
    fn refusals_have_the_statuses_of_the_contract() {
        let odd = contract(&["mismatch=409", "inflight=425", "missing.status=422", "inflight.retry_after=no"]);
        let reused = odd.refuse(Problem::KeyReused, "x");
        assert_eq!(
            (reused.status, serde_json::from_slice::<Value>(&reused.body).unwrap()["status"].as_u64()),
            (409, Some(409))
        );
        assert_eq!(odd.refuse(Problem::KeyMissing, "x").status, 422);
        let in_use = odd.refuse(Problem::KeyInUse, "x");
        assert_eq!(in_use.status, 425);
        assert!(in_use.headers.iter().all(|(name, _)| name != "retry-after"));
    }

    #[test]
    fn what_is_compared_is_chosen() {
        let of = |settings: &[&str], (method, path, body): (&str, &str, &str)| {
            contract(settings).fingerprint((method, path), &HeaderMap::new(), body.as_bytes()).unwrap()
        };
        let (a, b) = (("POST", "/a?x=1", r#"{"k":1,"t":1}"#), ("PATCH", "/a?x=2", r#"{"t":2,"k":1}"#));
        assert_ne!(of(&[], a), of(&[], b));
        assert_eq!(of(&["fp.inputs=none"], a), of(&["fp.inputs=none"], b));
        assert_eq!(of(&["mismatch=replay-original"], a), of(&["mismatch=replay-original"], b));
        assert_ne!(of(&["fp.inputs=body"], a), of(&["fp.inputs=body"], b));
        assert_eq!(of(&["fp.inputs=path+body", "fp.ignore=t"], a), of(&["fp.inputs=path+body", "fp.ignore=t"], b));
        let spaced = ("POST", "/a?x=1", r#"{ "k":1,"t":1}"#);
        assert_eq!(of(&[], a), of(&[], spaced));
        assert_ne!(of(&["fp.canon=bytes"], a), of(&["fp.canon=bytes"], spaced));
    }

    #[test]
    fn errors_are_written_as_documented() {
        let answer = Contract::default().refuse(Problem::KeyReused, "a < b");
        let json = contract(&["err.format=json"]).written(answer.clone());
        assert_eq!(json.body, r#"{"error":{"type":"key_reused","message":"a < b"}}"#);
        let xml = contract(&["err.format=xml"]).written(answer.clone());
        assert_eq!(xml.body, "<Error><Code>key_reused</Code><Message>a &lt; b</Message></Error>");
        assert_eq!(Contract::default().written(answer.clone()), answer);
    }
}
