//! What makes an attempt unlike others, and what of it a target cannot do.

use super::{Extra, Form, PlannedKey, compile::Obstacle};
use crate::{
    suite::{Case, Credentials, KeyForm, KeyLength, Request},
    target::{KeyFormat, KeyPlace, Operation, Target},
    text::is_secret_name,
};

/// Fresh keys are UUIDs of 36 characters.
const FRESH: u32 = 36;

pub(super) fn of(
    case: &Case,
    target: &Target,
    operation: &Operation,
    request: &Request,
    key: &PlannedKey,
) -> Result<Extra, Obstacle> {
    let policy = &operation.policy.key;
    if policy.place == KeyPlace::Request && (!matches!(key, PlannedKey::Symbol(_)) || request.wire.is_some()) {
        return Err(Obstacle::new(
            format!("the key of `{}` is a part of its request and no header field", operation.name),
            "nothing: a part of the request can neither be left out nor be malformed",
        ));
    }
    if let PlannedKey::Symbol(_) = key {
        fits(operation, FRESH)?;
    }
    let form = match key {
        PlannedKey::Symbol(symbol) => case.keys.iter().find(|(name, _)| name == symbol),
        PlannedKey::None | PlannedKey::Raw(_) => None,
    };
    let tenant = target.tenants.iter().find(|tenant| Some(&tenant.name) == request.tenant.as_ref());
    let tenant = tenant.or_else(|| target.tenants.first());
    if request.credentials != Credentials::Own
        && tenant.is_none_or(|tenant| tenant.headers.iter().all(|header| !is_secret_name(header.name.as_str())))
    {
        return Err(Obstacle::new(
            "the tenant has no credentials that could be left out",
            "give the tenant `headers` such as Authorization",
        ));
    }
    Ok(Extra {
        form: form.map(|(_, form)| formed(operation, form)).transpose()?,
        credentials: request.credentials,
        wire: request.wire.clone(),
    })
}

fn formed(operation: &Operation, form: &KeyForm) -> Result<Form, Obstacle> {
    let policy = &operation.policy.key;
    if policy.format.known().is_some_and(|format| *format != KeyFormat::Any) {
        return Err(Obstacle::new(
            format!("`{}` documents that keys have a fixed format", operation.name),
            "nothing: it does not apply",
        ));
    }
    let documented = || {
        policy.max_length.known().copied().ok_or_else(|| {
            Obstacle::new(
                format!("`{}` documents no longest key", operation.name),
                "set `policy.key.max_length` in the target file",
            )
        })
    };
    let length = match form.length {
        None => None,
        Some(KeyLength::Longest) => Some(documented()?),
        Some(KeyLength::TooLong) => Some(documented()?.saturating_add(1)),
        Some(KeyLength::Of(length)) => {
            if !form.beyond_limits {
                fits(operation, length)?;
            }
            Some(length)
        }
    };
    // A probe that asks for `${key}` knows fresh characters only.
    if operation.effects.as_ref().is_some_and(|probe| probe.get.names().any(|name| name == "key")) {
        return Err(Obstacle::new(
            "the effect probe asks for the key, and this key has special characters",
            "let the effect probe ask for `${reference}`",
        ));
    }
    Ok(Form { chars: form.chars.clone(), length: length.and_then(|length| usize::try_from(length).ok()) })
}

/// Whether a key of so many characters is one that the API documents to take.
fn fits(operation: &Operation, length: u32) -> Result<(), Obstacle> {
    let policy = &operation.policy.key;
    let (min, max) = (policy.min_length.known(), policy.max_length.known());
    if min.is_some_and(|min| length < *min) || max.is_some_and(|max| length > *max) {
        return Err(Obstacle::new(
            format!("`{}` documents that keys of {length} characters are refused", operation.name),
            "nothing: it does not apply",
        ));
    }
    Ok(())
}
