//! What came back: status, type and body of the deciding attempts; of several JSON answers, what differs.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    style::{Line, Paint, Style, labelled},
    text::count,
};
use crate::history::{Attempt, Response};

/// The answers shown in full.
const MOST_ANSWERS: usize = 4;

/// The differing fields shown of each.
const MOST_FIELDS: usize = 6;

/// Beyond this, bodies are not taken apart into fields.
const MOST_LEAVES: usize = 2_000;

/// The lines that show the answers of these attempts.
pub(super) fn answers(attempts: &[&Attempt], style: &Style) -> Vec<Line> {
    let answered: Vec<_> = attempts.iter().filter_map(|attempt| Some((*attempt, attempt.response.as_ref()?))).collect();
    let different = differing(&answered);
    let mut lines = Vec::new();
    for (index, (attempt, response)) in answered.iter().take(MOST_ANSWERS).enumerate() {
        let earlier = answered[..index].iter().find(|(_, r)| r.body.sha256 == response.body.sha256);
        let kind = response.field("content-type").unwrap_or("no content-type");
        let mut head = format!("{}  {} {kind}, {} bytes", attempt.name, response.status, response.body.length);
        if !response.body.complete {
            head += ", cut";
        }
        match (&different, earlier) {
            (_, Some((same, _))) if response.body.length > 0 => head += &format!(", the same body as {}", same.name),
            (Some(fields), _) => head += &format!(", {} of {} differ", fields.paths.len(), count(fields.all, "field")),
            _ => {}
        }
        let label = if index == 0 { "came back" } else { "" };
        lines.extend(labelled(label, &style.clean(&head), Paint::Plain, 3, style));
        if earlier.is_none() {
            lines.extend(body(response, different.as_ref(), index, style));
        }
    }
    if answered.len() > MOST_ANSWERS {
        let more = format!("+ {} more", count(answered.len() - MOST_ANSWERS, "answer"));
        lines.extend(labelled("", &more, Paint::Dim, 1, style));
    }
    lines
}

fn body(response: &Response, different: Option<&Differences>, index: usize, style: &Style) -> Vec<Line> {
    let Some(different) = different else {
        if response.body.text.is_empty() {
            return Vec::new();
        }
        // JSON is shown on one line; anything else as it came.
        let text = match serde_json::from_str::<Value>(&response.body.text) {
            Ok(value) => value.to_string(),
            Err(_) => response.body.text.clone(),
        };
        return labelled("", &style.clean(&text), Paint::Plain, 3, style);
    };
    let mut lines = Vec::new();
    for path in different.paths.iter().take(MOST_FIELDS) {
        let value = different.leaves[index].get(path).map_or("absent", String::as_str);
        lines.extend(labelled("", &style.clean(&format!("{path}: {value}")), Paint::Bold, 2, style));
    }
    if different.paths.len() > MOST_FIELDS {
        let more = format!("+ {}", count(different.paths.len() - MOST_FIELDS, "more field"));
        lines.extend(labelled("", &more, Paint::Dim, 1, style));
    }
    lines
}

/// The fields in which answers differ.
struct Differences {
    /// Their paths.
    paths: Vec<String>,
    /// How many fields there are in all.
    all: usize,
    /// The fields of each answer.
    leaves: Vec<BTreeMap<String, String>>,
}

/// What differs, if all answers are successes in JSON and there are at least two that differ.
fn differing(answered: &[(&Attempt, &Response)]) -> Option<Differences> {
    if answered.len() < 2 || answered.iter().any(|(_, r)| !(200..300).contains(&r.status)) {
        return None;
    }
    let mut all_leaves = Vec::new();
    for (_, response) in answered {
        let value: Value = serde_json::from_str(&response.body.text).ok().filter(Value::is_object)?;
        let mut leaves = BTreeMap::new();
        flatten(String::new(), &value, &mut leaves);
        all_leaves.push(leaves);
    }
    let mut paths: Vec<_> = all_leaves.iter().flat_map(BTreeMap::keys).cloned().collect();
    paths.sort_unstable();
    paths.dedup();
    let all = paths.len();
    paths.retain(|path| all_leaves.iter().any(|leaves| leaves.get(path) != all_leaves[0].get(path)));
    (!paths.is_empty()).then_some(Differences { paths, all, leaves: all_leaves })
}

fn flatten(path: String, value: &Value, leaves: &mut BTreeMap<String, String>) {
    match value {
        _ if leaves.len() >= MOST_LEAVES => {}
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in members {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(path, member, leaves);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                flatten(format!("{path}[{index}]"), item, leaves);
            }
        }
        leaf => {
            leaves.insert(path, leaf.to_string());
        }
    }
}
