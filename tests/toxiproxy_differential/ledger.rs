//! What a row has seen, in a form that two servers can be compared by: answers without names and ports, bytes by
//! length and digest, endings, and whether something came at once.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use serde_json::Value;

tokio::task_local! {
    static SEEN: RefCell<Vec<String>>;
}

/// What comes later than this was delayed.
const AT_ONCE: Duration = Duration::from_millis(80);

/// Runs something and gives what was seen meanwhile.
pub(crate) async fn record<T>(work: impl Future<Output = T>) -> (T, Vec<String>) {
    SEEN.scope(RefCell::new(Vec::new()), async {
        let done = work.await;
        (done, SEEN.with(|seen| std::mem::take(&mut *seen.borrow_mut())))
    })
    .await
}

/// Notes one thing, if anybody wants to know.
pub(crate) fn note(line: impl FnOnce() -> String) {
    let _ = SEEN.try_with(|seen| seen.borrow_mut().push(line()));
}

/// Bytes in a word.
pub(crate) fn bytes(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{} bytes ({:08x})", bytes.len(), hasher.finish() as u32)
}

/// A time in a word.
pub(crate) fn bucket(elapsed: Duration) -> &'static str {
    if elapsed < AT_ONCE { "at once" } else { "later" }
}

/// A text of a server without what differs from run to run.
pub(crate) fn plain(text: &str) -> String {
    // The words about bad JSON are those of each language's library.
    let text = text.split_once("bad request body: ").map_or(text, |(before, _)| before);
    let text = match serde_json::from_str::<Value>(text) {
        Ok(value) => sorted(value).to_string(),
        Err(_) => text.to_owned(),
    };
    let mut plain = String::new();
    let mut digits = String::new();
    for c in text.chars().chain(['\n']) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        plain.push_str(if digits.len() > 2 { "N" } else { &digits });
        digits.clear();
        plain.push(c);
    }
    plain.trim_end().to_owned()
}

/// Members in the order of their names, without the one that no client needs.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.into_iter().filter(|(name, _)| name != "Logger").collect();
            members.sort_by(|a, b| plain_name(&a.0).cmp(plain_name(&b.0)).then_with(|| a.0.cmp(&b.0)));
            Value::Object(members.into_iter().map(|(name, value)| (name, sorted(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

fn plain_name(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit())
}
