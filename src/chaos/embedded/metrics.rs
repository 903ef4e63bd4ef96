//! Counters in the text format of Prometheus, with the names and labels of Toxiproxy. As there, a connection is counted
//! when it is over: these are no live counters.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use crate::chaos::Stream;

/// Combinations of labels that are counted; further ones are not, so that memory is bounded.
const MAX_SERIES: usize = 10_000;

/// What a counter belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Labels {
    pub(super) stream: Stream,
    pub(super) proxy: String,
    pub(super) listener: String,
    pub(super) upstream: String,
}

impl Labels {
    fn text(&self) -> String {
        let direction = self.stream.as_str();
        let [proxy, listener, upstream] = [&self.proxy, &self.listener, &self.upstream].map(|value| escaped(value));
        format!("{{direction=\"{direction}\",listener=\"{listener}\",proxy=\"{proxy}\",upstream=\"{upstream}\"}}")
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The counters of a server.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    series: Mutex<BTreeMap<Labels, (u64, u64)>>,
}

impl Metrics {
    /// A connection has ended after so many bytes.
    pub(super) fn count(&self, labels: Labels, received: u64, sent: u64) {
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        if series.len() >= MAX_SERIES && !series.contains_key(&labels) {
            return;
        }
        let counted = series.entry(labels).or_default();
        counted.0 += received;
        counted.1 += sent;
    }

    pub(super) fn text(&self) -> String {
        let series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        for (name, what) in [("received", "received from the source"), ("sent", "sent to the destination")] {
            let name = format!("toxiproxy_proxy_{name}_bytes_total");
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# HELP {name} Bytes {what}, on connections that are over.\n# TYPE {name} counter");
            for (labels, (received, sent)) in series.iter() {
                let value = if name.contains("received") { received } else { sent };
                let _ = writeln!(text, "{name}{} {value}", labels.text());
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_counters_add_up() {
        let metrics = Metrics::default();
        let labels = Labels {
            stream: Stream::Upstream,
            proxy: "a\"b\\".to_owned(),
            listener: "127.0.0.1:1".to_owned(),
            upstream: "x:1".to_owned(),
        };
        metrics.count(labels.clone(), 5, 4);
        metrics.count(labels, 1, 1);
        let text = metrics.text();
        let line = r#"total{direction="upstream",listener="127.0.0.1:1",proxy="a\"b\\",upstream="x:1"} "#;
        assert!(text.contains(&format!("received_bytes_{line}6\n")) && text.contains(&format!("sent_bytes_{line}5\n")));
    }
}
