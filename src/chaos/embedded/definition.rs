//! A toxic as the API stores it: lenient like Toxiproxy, minus the values that would crash it.

use serde_json::{Map, Number, Value, json};

use super::body::{Fields, Refusal};
use crate::chaos::Stream;

/// Attributes of each type. Units as in the API: milliseconds, kilobytes per second, bytes; the slicer's delay is in
/// microseconds. Negative numbers are accepted where they do no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attributes {
    Latency { latency: i64, jitter: i64 },
    Bandwidth { rate: i64 },
    SlowClose { delay: i64 },
    Timeout { timeout: i64 },
    ResetPeer { timeout: i64 },
    Slicer { average_size: i64, size_variation: i64, delay: i64 },
    LimitData { bytes: i64 },
    Noop,
}

impl Attributes {
    /// The type of that name with every attribute at its default, zero.
    fn of_type(name: &str) -> Option<Self> {
        Some(match name {
            "latency" => Self::Latency { latency: 0, jitter: 0 },
            "bandwidth" => Self::Bandwidth { rate: 0 },
            "slow_close" => Self::SlowClose { delay: 0 },
            "timeout" => Self::Timeout { timeout: 0 },
            "reset_peer" => Self::ResetPeer { timeout: 0 },
            "slicer" => Self::Slicer { average_size: 0, size_variation: 0, delay: 0 },
            "limit_data" => Self::LimitData { bytes: 0 },
            "noop" => Self::Noop,
            _ => return None,
        })
    }

    fn type_name(&self) -> &'static str {
        match self {
            Self::Latency { .. } => "latency",
            Self::Bandwidth { .. } => "bandwidth",
            Self::SlowClose { .. } => "slow_close",
            Self::Timeout { .. } => "timeout",
            Self::ResetPeer { .. } => "reset_peer",
            Self::Slicer { .. } => "slicer",
            Self::LimitData { .. } => "limit_data",
            Self::Noop => "noop",
        }
    }

    fn fields_mut(&mut self) -> Vec<(&'static str, &mut i64)> {
        match self {
            Self::Latency { latency, jitter } => vec![("latency", latency), ("jitter", jitter)],
            Self::Bandwidth { rate } => vec![("rate", rate)],
            Self::SlowClose { delay } => vec![("delay", delay)],
            Self::Timeout { timeout } | Self::ResetPeer { timeout } => vec![("timeout", timeout)],
            Self::Slicer { average_size, size_variation, delay } => {
                vec![("average_size", average_size), ("size_variation", size_variation), ("delay", delay)]
            }
            Self::LimitData { bytes } => vec![("bytes", bytes)],
            Self::Noop => vec![],
        }
    }

    fn to_json(mut self) -> Value {
        let fields = self.fields_mut().into_iter();
        Value::Object(fields.map(|(name, value)| (name.to_owned(), Value::from(*value))).collect::<Map<_, _>>())
    }

    /// Takes over the attributes that are given and keeps the others.
    fn merge(mut self, given: &Fields) -> Result<Self, Refusal> {
        for (name, value) in self.fields_mut() {
            if let Some(given) = given.integer(name)? {
                *value = given;
            }
        }
        self.check()?;
        Ok(self)
    }

    /// Refuses what makes a real Toxiproxy recurse for ever or panic.
    fn check(&self) -> Result<(), Refusal> {
        let why = match *self {
            Self::Slicer { average_size, .. } if average_size < 1 => "slicer needs an average_size of at least 1",
            Self::Slicer { average_size, size_variation, .. } if !(0..average_size).contains(&size_variation) => {
                "slicer needs a size_variation from 0 to below average_size"
            }
            Self::Bandwidth { rate } if rate < 0 => "bandwidth needs a rate of at least 0",
            Self::Latency { jitter, .. } if jitter > i64::MAX / 2 => "latency needs a smaller jitter",
            _ => return Ok(()),
        };
        Err(Refusal::new(400, format!("invalid toxic attributes: {why}")))
    }
}

/// A toxic of a proxy.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    /// Tells instances apart that had the same name one after the other.
    pub(super) instance: u64,
    pub(super) name: String,
    pub(super) stream: Stream,
    /// The stream in the letter case it was given in; the API echoes it.
    stream_text: String,
    pub(super) toxicity: f32,
    pub(super) attributes: Attributes,
}

impl Definition {
    /// Reads the body of a toxic creation.
    pub(super) fn create(instance: u64, body: &Fields) -> Result<Self, Refusal> {
        let type_name = body.text("type")?.unwrap_or_default();
        let stream_text = body.text("stream")?.unwrap_or_else(|| "downstream".to_owned());
        let toxicity = body.float("toxicity")?.unwrap_or(1.0);
        let name = body.text("name")?.unwrap_or_default();
        let attributes = body.object("attributes")?;
        let stream = match stream_text.to_ascii_lowercase().as_str() {
            "upstream" => Stream::Upstream,
            "downstream" => Stream::Downstream,
            _ => return Err(Refusal::new(400, "stream was invalid, can be either upstream or downstream")),
        };
        let name = if name.is_empty() { format!("{type_name}_{stream_text}") } else { name };
        let defaults = Attributes::of_type(&type_name).ok_or_else(|| Refusal::new(400, "invalid toxic type"))?;
        if name.contains('/') {
            return Err(Refusal::new(400, "invalid toxic name: a name with `/` cannot be addressed"));
        }
        let attributes = defaults.merge(&attributes)?;
        Ok(Self { instance, name, stream, stream_text, toxicity, attributes })
    }

    /// Reads the body of a toxic update: given attributes and toxicity change, all else stays. Nothing changes when
    /// any of it is refused.
    pub(super) fn update(&self, body: &Fields) -> Result<Self, Refusal> {
        let toxicity = body.float("toxicity")?.unwrap_or(self.toxicity);
        let attributes = self.attributes.merge(&body.object("attributes")?)?;
        Ok(Self { toxicity, attributes, ..self.clone() })
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "attributes": self.attributes.to_json(),
            "name": self.name,
            "type": self.attributes.type_name(),
            "stream": self.stream_text,
            "toxicity": short_number(self.toxicity),
        })
    }
}

/// The shortest text that reads back as the same 32-bit number: 0.2 and not 0.20000000298.
fn short_number(value: f32) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e9 {
        return Value::from(value as i64);
    }
    let shortest = value.to_string().parse::<f64>().ok();
    shortest.and_then(Number::from_f64).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn create(body: &str) -> Result<Definition, Refusal> {
        Definition::create(1, &Fields::decode(body.as_bytes()).unwrap())
    }

    #[test]
    fn toxicity_is_written_as_it_was_given() {
        let toxic = create(r#"{"type":"latency","toxicity":0.2}"#).unwrap();
        assert_eq!(toxic.to_json().to_string().matches("\"toxicity\":0.2}").count(), 1);
        assert_eq!(create(r#"{"type":"noop"}"#).unwrap().to_json()["toxicity"], json!(1));
    }

    #[test]
    fn crashers_are_refused_at_creation_and_at_update() {
        for body in [
            r#"{"type":"slicer"}"#,
            r#"{"type":"slicer","attributes":{"average_size":10,"size_variation":11}}"#,
            r#"{"type":"slicer","attributes":{"average_size":10,"size_variation":-1}}"#,
            r#"{"type":"bandwidth","attributes":{"rate":-1}}"#,
            r#"{"type":"latency","attributes":{"jitter":9223372036854775807}}"#,
        ] {
            assert_eq!(create(body).unwrap_err().status, 400, "{body}");
        }
        let slicer = create(r#"{"type":"slicer","attributes":{"average_size":10}}"#).unwrap();
        let worse = Fields::decode(br#"{"attributes":{"average_size":0}}"#).unwrap();
        assert!(slicer.update(&worse).is_err());
    }

    #[test]
    fn the_stream_keeps_its_letter_case() {
        let toxic = create(r#"{"type":"latency","stream":"UPSTREAM"}"#).unwrap();
        assert_eq!(toxic.name, "latency_UPSTREAM");
        assert_eq!(toxic.stream, Stream::Upstream);
        assert_eq!(toxic.to_json()["stream"], "UPSTREAM");
    }

    #[test]
    fn an_update_keeps_what_is_not_given() {
        let toxic = create(r#"{"type":"latency","toxicity":0.5,"attributes":{"latency":100,"jitter":10}}"#).unwrap();
        let after = toxic.update(&Fields::decode(br#"{"attributes":{"jitter":20},"type":"noop"}"#).unwrap()).unwrap();
        assert_eq!(after.attributes, Attributes::Latency { latency: 100, jitter: 20 });
        assert_eq!(after.toxicity, 0.5);
    }
}
