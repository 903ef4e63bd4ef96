//! Versions of Toxiproxy servers.

use std::fmt;

use serde_json::Value;

/// What a server says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    text: String,
    numbers: Option<(u64, u64, u64)>,
}

/// The first version with `reset_peer`.
const OLDEST: (u64, u64, u64) = (2, 2, 0);

impl Version {
    /// Reads the answer to `GET /version`. Early servers answer something that is not quite JSON, and servers built
    /// from source call themselves `git`.
    pub(super) fn find(body: &str) -> Option<Self> {
        let body = body.trim();
        if let Ok(Value::Object(answer)) = serde_json::from_str(body) {
            let text = answer.get("version")?.as_str()?;
            return (text.len() <= 100).then(|| Self { text: text.to_owned(), numbers: numbers(text) });
        }
        let plausible = body.len() <= 100
            && (body.contains("version") || body.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit()));
        let found = plausible.then(|| numbers(body)).flatten()?;
        Some(Self { text: format!("{}.{}.{}", found.0, found.1, found.2), numbers: Some(found) })
    }

    /// Major, minor and patch number; `None` for a development build.
    pub fn numbers(&self) -> Option<(u64, u64, u64)> {
        self.numbers
    }

    /// A development build counts as recent: only new ones call themselves so.
    pub(super) fn is_too_old(&self) -> bool {
        self.numbers.is_some_and(|numbers| numbers < OLDEST)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The first run of digits and dots with at least two numbers.
fn numbers(text: &str) -> Option<(u64, u64, u64)> {
    text.split(|c: char| !c.is_ascii_digit() && c != '.').find_map(|run| {
        let mut parts = run.split('.');
        let major = parts.next()?.parse().ok()?;
        let minor = parts.next()?.parse().ok()?;
        Some((major, minor, parts.next().and_then(|patch| patch.parse().ok()).unwrap_or(0)))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn versions_are_read_leniently() {
        let read = |body| Version::find(body).and_then(|version| version.numbers());
        assert_eq!(read("{\"version\": \"2.12.0\"}\n"), Some((2, 12, 0)));
        assert_eq!(read("{\"version\": \"git-v2.9.1-rc1\"}"), Some((2, 9, 1)));
        assert_eq!(read("{\"version\": 2.5.0}"), Some((2, 5, 0)));
        assert_eq!(read("v2.1"), Some((2, 1, 0)));
        let development = Version::find("{\"version\": \"git\"}").unwrap();
        assert_eq!(development.numbers(), None);
        assert!(!development.is_too_old());
        assert!(Version::find("{\"version\":\"2.1.4\"}").unwrap().is_too_old());
    }

    #[test]
    fn other_servers_are_not_taken_for_a_toxiproxy() {
        for body in ["", "{}", "[]", "<html><center>nginx/1.18.0</center></html>", "{\"version\": 3}", "hello"] {
            assert!(Version::find(body).is_none(), "{body}");
        }
    }
}
