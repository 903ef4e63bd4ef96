//! The preconditions of a request: `If-Match` and `If-None-Match` (RFC 9110, 13.1).

use ::http::HeaderMap;

/// What a request demands of the resource it is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::reference) struct Conditions {
    matches: Option<Tags>,
    matches_none: Option<Tags>,
}

/// Which representations a field names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Tags {
    /// Whichever there is.
    Any,
    /// One of these. Weak ones are kept apart, because they never match strongly.
    These(Vec<(bool, String)>),
}

impl Conditions {
    /// Reads the two fields; the error says which one cannot be read.
    pub(in crate::reference) fn read(headers: &HeaderMap) -> Result<Self, String> {
        let read = |name| {
            let lines: Vec<_> = headers.get_all(name).iter().map(|line| line.to_str().unwrap_or("\u{0}")).collect();
            if lines.is_empty() {
                return Ok(None);
            }
            let wrong = || format!("{name} must be * or a list of entity tags, such as \"abc\"");
            tags(&lines.join(",")).map(Some).ok_or_else(wrong)
        };
        Ok(Self { matches: read("if-match")?, matches_none: read("if-none-match")? })
    }

    /// Whether the resource is as it is demanded, given the tag of its current representation.
    pub(super) fn check(&self, current: Option<&str>) -> Result<(), &'static str> {
        let holds = |tags: &Tags, strong: bool| match (tags, current) {
            (_, None) => false,
            (Tags::Any, Some(_)) => true,
            (Tags::These(tags), Some(tag)) => tags.iter().any(|(weak, named)| named == tag && !(strong && *weak)),
        };
        if self.matches.as_ref().is_some_and(|tags| !holds(tags, true)) {
            return Err("the resource is not the one that If-Match names; read it again and decide");
        }
        if self.matches_none.as_ref().is_some_and(|tags| holds(tags, false)) {
            return Err("the resource is there already; read it and see whether it is yours");
        }
        Ok(())
    }
}

fn tags(text: &str) -> Option<Tags> {
    if text.trim() == "*" {
        return Some(Tags::Any);
    }
    let mut rest = text.trim();
    let mut tags = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            break;
        }
        let (weak, quoted) = rest.strip_prefix("W/").map_or((false, rest), |quoted| (true, quoted));
        let (tag, after) = quoted.strip_prefix('"')?.split_once('"')?;
        if tag.chars().any(|c| c.is_control() || c == ' ') {
            return None;
        }
        tags.push((weak, tag.to_owned()));
        rest = after.trim_start();
        if !rest.is_empty() && !rest.starts_with(',') {
            return None;
        }
    }
    (!tags.is_empty()).then_some(Tags::These(tags))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn conditions(name: &'static str, value: &'static str) -> Result<Conditions, String> {
        let mut headers = HeaderMap::new();
        headers.append(name, value.parse().unwrap());
        Conditions::read(&headers)
    }

    #[test]
    fn conditions_are_read_and_checked() {
        let any = |name, value, current| conditions(name, value).unwrap().check(current).is_ok();
        assert!(Conditions::default().check(None).is_ok() && Conditions::default().check(Some("a")).is_ok());
        assert!(any("if-none-match", "*", None) && !any("if-none-match", " * ", Some("a")));
        assert!(!any("if-none-match", "\"b\", W/\"a\"", Some("a")) && any("if-none-match", "\"b\"", Some("a")));
        assert!(any("if-match", "\"a\"", Some("a")) && !any("if-match", "\"a\"", Some("b")));
        assert!(any("if-match", "\"x\" ,,\"a\"", Some("a")) && !any("if-match", "W/\"a\"", Some("a")));
        assert!(!any("if-match", "*", None) && any("if-match", "*", Some("a")) && !any("if-match", "\"a\"", None));
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for value in ["", "a", "\"a", "\"a\" \"b\"", "*, \"a\"", "\"a b\"", ","] {
            assert!(conditions("if-match", value).unwrap_err().contains("if-match"), "{value}");
        }
    }
}
