//! From a payload's role to a payload.

use serde_json::{Map, Value};

use super::{Encoding, compile::Obstacle};
use crate::{target::Operation, text::JsonTemplate};

/// The payload of a role and how it is written.
///
/// `base`, `reordered`, `reformatted` and `escaped` are the base payload in other bytes, and `unreadable` is its first
/// half. Every other role is a variant that
/// the target declares; `changed` is derived by adding 1 to the first whole number if it is not declared.
pub(super) fn of_role(operation: &Operation, role: &str) -> Result<(Option<JsonTemplate>, Encoding), Obstacle> {
    let base = operation.json.as_ref();
    match role {
        "base" => Ok((base.cloned(), Encoding::Compact)),
        "reordered" | "reformatted" | "escaped" | "unreadable" => {
            let base = base.ok_or_else(|| no_payload(operation))?;
            if role == "reordered" && base.member_count() < 2 {
                return Err(Obstacle::new(
                    format!("the payload of `{}` has fewer than two members to reorder", operation.name),
                    "nothing: it does not apply",
                ));
            }
            let encoding = match role {
                "reordered" => Encoding::Reordered,
                "reformatted" => Encoding::Spaced,
                "escaped" => Encoding::Escaped,
                _ => Encoding::Half,
            };
            Ok((Some(base.clone()), encoding))
        }
        declared => {
            let base = base.ok_or_else(|| no_payload(operation))?;
            let patch = match operation.variants.get(declared) {
                Some(patch) => patch.clone(),
                None if declared == "changed" => derived_change(base).ok_or_else(|| missing(operation, declared))?,
                None => return Err(missing(operation, declared)),
            };
            Ok((Some(base.merged(&patch)), Encoding::Compact))
        }
    }
}

fn no_payload(operation: &Operation) -> Obstacle {
    Obstacle::new(format!("`{}` has no payload", operation.name), "give the operation a `json` payload")
}

fn missing(operation: &Operation, role: &str) -> Obstacle {
    Obstacle::new(
        format!("`{}` declares no payload variant `{role}`", operation.name),
        format!("add `{role}` under `variants` of the operation"),
    )
}

fn derived_change(base: &JsonTemplate) -> Option<JsonTemplate> {
    let (name, number) = base.first_whole_number()?;
    let patch = Value::Object(Map::from_iter([(name.to_owned(), Value::from(number.checked_add(1)?))]));
    JsonTemplate::parse(patch).ok()
}
