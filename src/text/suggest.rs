//! The nearest name to a misspelt one.

/// The candidate that was most likely meant, if one is near enough.
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(name);
    let most = (folded.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&folded, &fold(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= most && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Case and the kind of separator do not make two names different. Long names are cut: the comparison is quadratic.
fn fold(name: &str) -> String {
    name.chars().take(64).map(|c| if c == '_' || c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// A help text: the nearest candidate if there is one, and the whole list otherwise.
pub fn suggestion(name: &str, candidates: &[&str]) -> String {
    match closest(name, candidates.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => one_of(candidates),
    }
}

/// The candidates that look most alike, best first.
pub fn most_alike<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>, how_many: usize) -> Vec<&'a str> {
    let folded = fold(name);
    let mut scored: Vec<_> =
        candidates.into_iter().map(|candidate| (strsim::jaro_winkler(&folded, &fold(candidate)), candidate)).collect();
    scored.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    scored.into_iter().take(how_many).map(|(_, candidate)| candidate).collect()
}

/// A help text that lists what can be written.
pub fn one_of(candidates: &[&str]) -> String {
    let quoted: Vec<_> = candidates.iter().map(|candidate| format!("`{candidate}`")).collect();
    match quoted.as_slice() {
        [] => "nothing can be written here".to_owned(),
        [only] => format!("write {only}"),
        [first @ .., last] => format!("write one of {} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_near_name_and_no_far_one() {
        let rules = ["at-most-one-effect", "one-result-per-key", "lost"];
        assert_eq!(closest("at-most-one-efect", rules), Some("at-most-one-effect"));
        assert_eq!(closest("One_Result_Per_Key", rules), Some("one-result-per-key"));
        assert_eq!(closest("lsot", rules), Some("lost"));
        assert_eq!(closest("zebra", rules), None);
        assert_eq!(closest("", rules), None);
        assert_eq!(closest("x", ["y"]), None);
    }

    #[test]
    fn a_huge_name_is_compared_in_little_time() {
        assert_eq!(closest(&"a".repeat(1_000_000), ["abc"]), None);
    }

    #[test]
    fn lists_read_as_english() {
        assert_eq!(one_of(&["a"]), "write `a`");
        assert_eq!(one_of(&["a", "b", "c"]), "write one of `a`, `b` or `c`");
        assert_eq!(suggestion("drfat", &["draft", "other"]), "did you mean `draft`?");
    }
}
