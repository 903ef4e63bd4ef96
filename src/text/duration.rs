//! Lengths of time as people write them.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Serialize, Serializer};

/// A length of time written with its unit, such as `250ms`, `30s`, `5m`, `24h` or `7d`.
///
/// The longest accepted span is 10 years, so that arithmetic on spans cannot overflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(Duration);

/// Why a text is not a length of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a length of time: write a whole number and a unit, such as 250ms, 30s, 5m, 24h or 7d")]
pub struct DurationError {
    text: String,
}

const LONGEST: Duration = Duration::from_secs(10 * 366 * 86_400);
const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

impl Span {
    /// A span of whole milliseconds, cut off at the longest accepted span.
    pub fn from_millis(ms: u64) -> Self {
        Self(Duration::from_millis(ms).min(LONGEST))
    }

    /// A span of whole seconds, cut off at the longest accepted span.
    pub fn from_secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs).min(LONGEST))
    }

    /// The span as a standard duration.
    pub fn duration(self) -> Duration {
        self.0
    }

    /// The span in milliseconds.
    pub fn millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }
}

impl FromStr for Span {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || DurationError { text: text.to_owned() };
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| error())?;
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(error)?;
        let ms = number.checked_mul(*factor).ok_or_else(error)?;
        let span = Duration::from_millis(ms);
        if span > LONGEST { Err(error()) } else { Ok(Self(span)) }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.millis();
        let (name, factor) =
            UNITS.iter().rev().find(|(_, factor)| ms.is_multiple_of(*factor) && ms >= *factor).unwrap_or(&UNITS[0]);
        write!(f, "{}{name}", ms / factor)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Span {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Span;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a length of time such as 250ms, 30s, 5m, 24h or 7d")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Span, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_every_unit() {
        for text in ["250ms", "30s", "5m", "24h", "7d", "0ms", "90s"] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.to_string().parse::<Span>().unwrap(), span, "{text}");
        }
        assert_eq!("24h".parse::<Span>().unwrap().to_string(), "1d");
        assert_eq!("1500ms".parse::<Span>().unwrap().to_string(), "1500ms");
    }

    #[test]
    fn refuses_what_is_not_a_length_of_time() {
        for text in
            ["", "5", "s", "-1s", "1.5s", "5 s", "99999999999999999999s", "18446744073709551615d", "4000d", "1w"]
        {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }
}
