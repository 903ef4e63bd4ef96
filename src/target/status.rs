//! Sets of HTTP status codes.

use std::{fmt, ops::RangeInclusive, str::FromStr};

/// A set of final HTTP status codes, written `409`, `2xx`, or a list of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusSet(Vec<RangeInclusive<u16>>);

/// Why a text is not a status code or a class of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a status: write a code from 200 to 599, such as 409, or a class, such as 2xx")]
pub struct StatusSetError(pub String);

impl StatusSet {
    /// The set of these codes.
    pub fn of(codes: &[u16]) -> Self {
        Self(codes.iter().map(|code| *code..=*code).collect())
    }

    /// Every code of a class, such as 2 for 200 to 299.
    pub fn class(digit: u16) -> Self {
        Self(vec![digit * 100..=digit * 100 + 99])
    }

    /// The union of several sets.
    pub fn union(sets: impl IntoIterator<Item = Self>) -> Self {
        Self(sets.into_iter().flat_map(|set| set.0).collect())
    }

    /// Whether a status code is in the set.
    pub fn contains(&self, status: u16) -> bool {
        self.0.iter().any(|range| range.contains(&status))
    }

    /// Whether the set is exactly this one code.
    pub fn is_just(&self, status: u16) -> bool {
        self.0.len() == 1 && self.0[0] == (status..=status)
    }
}

impl FromStr for StatusSet {
    type Err = StatusSetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || StatusSetError(text.to_owned());
        if let Some(digit) = text.strip_suffix("xx") {
            let digit: u16 = digit.parse().map_err(|_| error())?;
            return if (2..=5).contains(&digit) { Ok(Self::class(digit)) } else { Err(error()) };
        }
        let code: u16 = text.parse().map_err(|_| error())?;
        if (200..=599).contains(&code) { Ok(Self::of(&[code])) } else { Err(error()) }
    }
}

impl fmt::Display for StatusSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(" or ")?;
            }
            if range.start() == range.end() {
                write!(f, "{}", range.start())?;
            } else {
                write!(f, "{}xx", range.start() / 100)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_codes_and_classes() {
        assert!("409".parse::<StatusSet>().unwrap().is_just(409));
        let ok: StatusSet = "2xx".parse().unwrap();
        assert!(ok.contains(200) && ok.contains(299) && !ok.contains(300));
        assert_eq!(StatusSet::union([ok, StatusSet::of(&[409])]).to_string(), "2xx or 409");
    }

    #[test]
    fn refuses_everything_else() {
        for text in ["", "99", "100", "600", "1xx", "6xx", "xx", "2x", "abc", "-200", "70000"] {
            assert!(text.parse::<StatusSet>().is_err(), "{text}");
        }
    }
}
