//! The faults in what a request is taken for: its scope, its key and its fingerprint.

use super::store::seize;
use super::{Fault, FaultSet};
use crate::reference::app::App;
use crate::reference::core::{Answer, Claim, Fingerprint, OwnerToken, State};
use crate::reference::http::{Problem, problem};
use crate::reference::key::{Key, KeyError};
use crate::reference::keyed::Keyed;
use crate::reference::store::{End, KeyId, Phase, Scope};
use axum::http::request::Parts;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// How much of a body [`Fault::BeginningCompared`] looks at, in bytes.
const BEGINNING: usize = 24;
/// How much of a key [`Fault::LongKeyTruncated`] keeps, in characters.
const KEPT: usize = 24;

/// What a request is taken for, by a server with faults.
pub(in crate::reference) fn taken_for(faults: FaultSet, mut request: Keyed, bytes: &[u8]) -> Keyed {
    let on = |fault| faults.contains(fault);
    if on(Fault::CrossTenantReplay) {
        request.id.scope.tenant.clear();
    }
    if let Some(fingerprint) = compared(faults, &request.input.body, bytes) {
        request.fingerprint = fingerprint;
    }
    if on(Fault::CrossEndpointCollision) {
        request.id.scope = Scope { method: "*", route: "*", ..request.id.scope };
        request.fingerprint = Fingerprint(Sha256::digest(sorted(&request.input.body)).into());
    }
    if on(Fault::MismatchExecutesAsNew) {
        request.id.key.push_str(&request.fingerprint.text());
    }
    if on(Fault::KeyCaseFolded) {
        request.id.key.make_ascii_lowercase();
    }
    if on(Fault::LongKeyTruncated) {
        request.id.key = request.id.key.chars().take(KEPT).collect();
    }
    let blank = request.id.key.trim().is_empty() && on(Fault::BlankKeyUnprotected);
    if blank || ignored_by(faults, request.id.scope.route) {
        request.id.key = unprotected().0;
    }
    request
}

/// Whether the route takes no notice of keys.
fn ignored_by(faults: FaultSet, route: &str) -> bool {
    let fault = match route {
        "/v1/payments" => Fault::ParallelPathIgnoresKey,
        "/payments/batch" => Fault::BatchIgnoresKey,
        "/payments/{id}/refunds" => Fault::RefundIgnoresKey,
        "/payments/{id}" => Fault::ChangeIgnoresKey,
        "/exports" => Fault::ExportIgnoresKey,
        "/receipts" => Fault::BinaryNotStored,
        "/statements" => Fault::StreamNotStored,
        _ => return false,
    };
    faults.contains(fault)
}

/// A key that nobody else has, which protects nobody from anything.
fn unprotected() -> Key {
    Key(uuid::Uuid::new_v4().to_string())
}

/// What is compared in the place of the whole request.
fn compared(faults: FaultSet, body: &Value, bytes: &[u8]) -> Option<Fingerprint> {
    let on = |fault| faults.contains(fault);
    let member = |name: &str| body.get(name).unwrap_or(&Value::Null).to_string();
    let without = |name: &str| {
        let mut body = body.clone();
        body.as_object_mut().map(|members| members.shift_remove(name));
        sorted(&body)
    };
    let text = if on(Fault::PayloadMismatchIgnored) {
        String::new()
    } else if on(Fault::PartialFingerprint) {
        member("amount") + &member("currency")
    } else if on(Fault::AmountNotCompared) {
        without("amount")
    } else if on(Fault::NestedNotCompared) {
        let mut flat = body.clone();
        for value in flat.as_object_mut()?.values_mut().filter(|value| value.is_object() || value.is_array()) {
            *value = Value::Null;
        }
        sorted(&flat)
    } else if on(Fault::UnknownNotCompared) {
        ["amount", "currency", "reference", "card", "metadata"].map(member).concat()
    } else if on(Fault::BeginningCompared) {
        // The rest of the request has its say where it is longer.
        String::from_utf8_lossy(&bytes[..bytes.len().min(BEGINNING)]).into_owned()
    } else if on(Fault::NumbersAsFloats) {
        let mut rounded = body.clone();
        for value in rounded.as_object_mut()?.values_mut() {
            if let Some(number) = value.as_f64() {
                *value = number.into();
            }
        }
        sorted(&rounded)
    } else if on(Fault::OverStrictFingerprint) {
        String::from_utf8_lossy(bytes).into_owned()
    } else if on(Fault::MemberOrderCompared) {
        body.to_string()
    } else {
        return None;
    };
    Some(Fingerprint(Sha256::digest(text).into()))
}

/// The body with its members in the order of their names.
fn sorted(body: &Value) -> String {
    let mut members: Vec<_> =
        body.as_object().into_iter().flatten().map(|(name, value)| (name, value.to_string())).collect();
    members.sort();
    format!("{members:?}")
}

/// The key of a request whose key is missing or malformed, by a server that does not mind.
pub(in crate::reference) fn excused(faults: FaultSet, error: KeyError) -> Result<Key, KeyError> {
    let on = |fault| faults.contains(fault);
    match error {
        KeyError::Missing if on(Fault::MissingKeyRuns) => Ok(unprotected()),
        KeyError::Empty if on(Fault::EmptyKeyShared) => Ok(Key(String::new())),
        KeyError::Missing => Err(error),
        _ if on(Fault::KeyValidationGap) => Ok(unprotected()),
        error => Err(error),
    }
}

/// What a server says to a key that it did not expect: [`Fault::LongKeyCrashes`].
pub(in crate::reference) fn crash(faults: FaultSet, error: KeyError) -> Option<Answer> {
    let crashes = error == KeyError::TooLong && faults.contains(Fault::LongKeyCrashes);
    crashes.then(|| problem(Problem::Internal, "value too long for type character varying(255)"))
}

/// Claims the key of a request that did not arrive whole, and keeps it: [`Fault::TruncatedRequestKeepsKey`].
pub(in crate::reference) async fn claim_too_early(app: &App, id: KeyId) {
    if app.faults.contains(Fault::TruncatedRequestKeepsKey) {
        let request = Claim { fingerprint: Fingerprint([0; 32]), owner: OwnerToken::fresh(), now: app.clock.now() };
        seize(&*app.store, &id, request, app.terms).await;
    }
}

/// Stores the refusal of unknown credentials, or finds one that was stored: [`Fault::UnauthorizedPinned`].
pub(in crate::reference) async fn pinned(app: &App, head: &Parts, refusal: Option<&Answer>) -> Option<Answer> {
    if !app.faults.contains(Fault::UnauthorizedPinned) {
        return None;
    }
    let scope = Scope { tenant: "nobody".to_owned(), method: "ANY", route: "*" };
    let id = KeyId { scope, key: Key::read(&app.contract.key, &head.headers, &head.uri, b"").ok()?.0 };
    let Some(refusal) = refusal else {
        return match app.store.look(id).await.ok()??.state {
            State::Completed(answer) => Some(answer),
            State::Claimed { .. } => None,
        };
    };
    let (owner, now) = (OwnerToken::fresh(), app.clock.now());
    let _ = app.store.claim(id.clone(), Claim { fingerprint: Fingerprint([0; 32]), owner, now }, app.terms).await;
    let phase = Phase { owner, effects: Vec::new(), end: End::Answer(refusal.clone()), now };
    let _ = app.store.commit_phase(id, phase, app.terms).await;
    None
}
