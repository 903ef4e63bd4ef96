//! Who asks: the tenant that the credentials name.

use super::{Problem, problem};
use crate::reference::core::Answer;
use axum::http::HeaderMap;

/// Every tenant there is.
pub(in crate::reference) const TENANTS: [&str; 3] = ["public", "tenant-a", "tenant-b"];

/// The tenant of a request. Without credentials it is the public one.
pub(super) fn tenant(headers: &HeaderMap) -> Result<&'static str, Answer> {
    let mut lines = headers.get_all("authorization").iter();
    match (lines.next().map(|line| line.to_str().unwrap_or("")), lines.next()) {
        (None, _) => return Ok("public"),
        (Some(line), None) => {
            if let Some((scheme, token)) = line.split_once(' ')
                && scheme.eq_ignore_ascii_case("bearer")
            {
                match token.trim_matches(' ') {
                    "token-a" => return Ok("tenant-a"),
                    "token-b" => return Ok("tenant-b"),
                    _ => {}
                }
            }
        }
        (Some(_), Some(_)) => {}
    }
    Err(problem(Problem::Unauthorized, "send Authorization: Bearer token-a or token-b, or no Authorization at all"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn of(lines: &[&'static str]) -> Result<&'static str, u16> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("authorization", line.parse().unwrap());
        }
        tenant(&headers).map_err(|answer| answer.status)
    }

    #[test]
    fn known_credentials_name_a_tenant_and_others_are_refused() {
        assert_eq!(of(&[]), Ok("public"));
        assert_eq!(of(&["Bearer token-a"]), Ok("tenant-a"));
        assert_eq!(of(&["bearer  token-b"]), Ok("tenant-b"));
        for lines in
            [&["Bearer token-c"][..], &["token-a"], &["Basic token-a"], &[""], &["Bearer token-a", "Bearer token-a"]]
        {
            assert_eq!(of(lines), Err(401), "{lines:?}");
        }
    }
}
