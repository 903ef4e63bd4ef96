//! The fault vocabulary: what can be done to the bytes of one direction of a proxied connection.

use std::fmt;

use serde_json::{Map, Value};

/// The direction a toxic works on. The two directions of a connection are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    /// From the client to the server: requests.
    Upstream,
    /// From the server to the client: responses.
    Downstream,
}

impl Stream {
    /// The name used by the Toxiproxy API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Upstream => "upstream",
            Self::Downstream => "downstream",
        }
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One toxic with its attributes. Values that crash or confuse a real Toxiproxy cannot be expressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Toxic {
    /// Every byte leaves `latency_ms` plus or minus up to `jitter_ms` milliseconds after it arrived.
    Latency {
        /// Delay in milliseconds.
        latency_ms: u32,
        /// Largest deviation from the delay, in milliseconds.
        jitter_ms: u32,
    },
    /// Lets `rate_kb` kilobytes (of 1000 bytes) per second through. Zero holds everything until the toxic is
    /// changed or removed, and then delivers it.
    Bandwidth {
        /// Kilobytes per second.
        rate_kb: u32,
    },
    /// Bytes pass; the end of the stream is passed on `delay_ms` milliseconds later.
    SlowClose {
        /// Delay of the end in milliseconds.
        delay_ms: u32,
    },
    /// Swallows all bytes and closes the connection after `timeout_ms` milliseconds without one in this direction.
    /// Zero swallows and never closes. Removing it closes the connection, because bytes were lost.
    Timeout {
        /// Silence in milliseconds until the connection is closed; zero for never.
        timeout_ms: u32,
    },
    /// Swallows the first bytes seen in this direction and resets the connection `timeout_ms` milliseconds later.
    /// A real Toxiproxy resets only connections opened while this toxic was there, and closes others.
    ResetPeer {
        /// Milliseconds between the first byte and the reset.
        timeout_ms: u32,
    },
    /// Closes the connection when `bytes` bytes have passed since the toxic was added. Zero closes when the first
    /// byte arrives, and lets none through.
    LimitData {
        /// Bytes that pass.
        bytes: u64,
    },
    /// Cuts the stream into small pieces.
    Slicer(Slices),
    /// Changes nothing.
    Noop,
}

/// How a slicer cuts. Checked at construction, because other values crash a real Toxiproxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slices {
    average: u32,
    variation: u32,
    delay_us: u32,
}

impl Slices {
    /// Pieces of about `average` bytes, give or take `variation`, each followed by a pause of `delay_us`
    /// microseconds.
    ///
    /// # Errors
    /// When `average` is zero or `variation` is not below it.
    pub fn new(average: u32, variation: u32, delay_us: u32) -> Result<Self, BadToxic> {
        if average == 0 || variation >= average {
            return Err(BadToxic { average, variation });
        }
        Ok(Self { average, variation, delay_us })
    }
}

/// Attributes that no Toxiproxy survives.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "slicer: average size {average} with variation {variation}: the average must be at least 1 and the variation below it"
)]
pub struct BadToxic {
    average: u32,
    variation: u32,
}

impl Toxic {
    /// The type name used by the Toxiproxy API.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Latency { .. } => "latency",
            Self::Bandwidth { .. } => "bandwidth",
            Self::SlowClose { .. } => "slow_close",
            Self::Timeout { .. } => "timeout",
            Self::ResetPeer { .. } => "reset_peer",
            Self::LimitData { .. } => "limit_data",
            Self::Slicer(_) => "slicer",
            Self::Noop => "noop",
        }
    }

    /// The attributes object as the Toxiproxy API writes it.
    pub(crate) fn attributes(&self) -> Map<String, Value> {
        let fields: Vec<(&str, u64)> = match *self {
            Self::Latency { latency_ms, jitter_ms } => {
                vec![("latency", latency_ms.into()), ("jitter", jitter_ms.into())]
            }
            Self::Bandwidth { rate_kb } => vec![("rate", rate_kb.into())],
            Self::SlowClose { delay_ms } => vec![("delay", delay_ms.into())],
            Self::Timeout { timeout_ms } | Self::ResetPeer { timeout_ms } => vec![("timeout", timeout_ms.into())],
            // The API counts in signed 64-bit numbers; more than that many bytes never pass anyway.
            Self::LimitData { bytes } => vec![("bytes", bytes.min(i64::MAX as u64))],
            Self::Slicer(Slices { average, variation, delay_us }) => {
                vec![("average_size", average.into()), ("size_variation", variation.into()), ("delay", delay_us.into())]
            }
            Self::Noop => vec![],
        };
        fields.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect()
    }
}

impl fmt::Display for Toxic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.type_name())?;
        for (name, value) in self.attributes() {
            write!(f, " {name}={value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_use_the_names_of_the_api() {
        let attributes = Toxic::Latency { latency_ms: 5, jitter_ms: 2 }.attributes();
        assert_eq!(Value::Object(attributes), serde_json::json!({"latency": 5, "jitter": 2}));
        assert_eq!(Toxic::LimitData { bytes: u64::MAX }.attributes()["bytes"], i64::MAX);
        assert!(Toxic::Noop.attributes().is_empty());
    }

    #[test]
    fn slices_that_crash_a_real_server_cannot_be_made() {
        assert!(Slices::new(0, 0, 0).is_err());
        assert!(Slices::new(10, 10, 0).is_err());
        assert!(Slices::new(1, 0, 0).is_ok());
    }

    #[test]
    fn a_toxic_reads_as_type_and_attributes() {
        assert_eq!(Toxic::ResetPeer { timeout_ms: 7 }.to_string(), "reset_peer timeout=7");
    }
}
