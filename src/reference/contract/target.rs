//! The policy section of a target file that says what a contract says.

use super::values::{
    Canon, Crash, Different, Failures, Inputs, Malformed, Place, ReplayKind, StatusOr, Syntax, written,
};
use super::{Contract, Disposal, Status};

/// What of a contract a target file cannot say, so that the suites cannot be run against it.
#[must_use]
pub fn untestable(contract: &Contract) -> Option<String> {
    if contract.key.location.place != Place::Header {
        let place = &contract.key.location;
        return Some(format!("its key travels in {place}, and suites send keys in header fields only"));
    }
    (contract.replay == ReplayKind::Refuse).then(|| {
        "it refuses every repeat, and suites cannot tell that from a refusal of a repeat whose first request still runs"
            .to_owned()
    })
}

/// The lines of the `policy` section.
#[must_use]
pub fn policy_yaml(contract: &Contract) -> String {
    let mut lines = vec!["policy:".to_owned(), format!("  key: {{ {} }}", key(contract))];
    let mut line = |name: &str, value: String| lines.push(format!("  {name}: {value}"));
    match contract.in_flight {
        StatusOr::Status(status) => {
            line("in_flight", "refuse".into());
            line("in_flight_status", status.to_string());
        }
        StatusOr::Word(_) => line("in_flight", "wait".into()),
    }
    let compared = contract.inputs != Inputs::None;
    match contract.mismatch {
        StatusOr::Status(status) if compared => {
            line("mismatch", "refuse".into());
            line("mismatch_status", status.to_string());
        }
        StatusOr::Word(Different::Execute) if compared => line("mismatch", "execute".into()),
        _ => line("mismatch", "replay".into()),
    }
    if compared && contract.mismatch != StatusOr::Word(Different::Replay) {
        let fingerprint = if contract.canon == Canon::Json { "json" } else { "bytes" };
        line("fingerprint", fingerprint.into());
    }
    line("replay", format!("{{ {} }}", replay(contract)));
    line("failure_before_effect", failure(contract.failure_before).into());
    line("failure_after_effect", failure(contract.failure_after).into());
    line("validation_failure", if contract.validation == Disposal::Store { "store" } else { "release" }.into());
    line("retention", written(contract.retention));
    line("expired_key", if matches!(contract.expired, StatusOr::Word(_)) { "fresh" } else { "refuse" }.into());
    // An owner that is never taken over holds its key for as long as a result would.
    line("lease", if contract.crash == Crash::Hold { "unknown".into() } else { written(contract.lease) });
    lines.push(String::new());
    lines.join("\n")
}

fn key(contract: &Contract) -> String {
    let key = &contract.key;
    let mut parts = Vec::new();
    if key.location.place == Place::Header {
        parts.push(format!("header: {}", key.location.name));
    }
    parts.push(format!("syntax: {}", if key.syntax == Syntax::Bare { "bare" } else { "sf-string" }));
    parts.push(format!("required: {}", key.required));
    if key.required
        && let Status::Is(status) = key.missing_status
    {
        parts.push(format!("missing_status: {status}"));
    }
    // What suites send as malformed is malformed as a Structured Field; as bare characters some of it is a key.
    let malformed = match (key.syntax, key.malformed) {
        (Syntax::SfString, Malformed::Reject) => "refuse",
        (Syntax::SfString, Malformed::Ignore) => "ignore",
        (Syntax::SfString, Malformed::Raw) => "accept",
        _ => "unknown",
    };
    parts.push(format!("malformed: {malformed}"));
    if malformed == "refuse"
        && let Status::Is(status) = key.malformed_status
    {
        parts.push(format!("malformed_status: {status}"));
    }
    parts.join(", ")
}

fn replay(contract: &Contract) -> String {
    let mut parts = Vec::new();
    match (contract.replay, contract.replay_status) {
        (ReplayKind::Refuse, _) => parts.push("status: 409".to_owned()),
        (_, Status::Is(status)) => parts.push(format!("status: {status}")),
        (_, Status::Same) => {}
    }
    let kept = ["Location", "Content-Type"].into_iter();
    let kept: Vec<_> = kept.filter(|name| !contract.dropped.contains(&name.to_ascii_lowercase())).collect();
    parts.push(format!("keeps: [{}]", kept.join(", ")));
    if let Some((name, value)) = &contract.marker.0 {
        parts.push(format!("marker: \"{name}: {value}\""));
    }
    parts.join(", ")
}

fn failure(failures: Failures) -> &'static str {
    match failures {
        Failures::Store => "store",
        // Where an operation documents something of its own, its section says so.
        Failures::Operation | Failures::Release => "release",
        Failures::Hold => "unknown",
    }
}
