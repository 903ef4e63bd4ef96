//! The table of switches.

use super::Contract;
use super::values::{duration, written};
use std::fmt;
use std::str::FromStr;

/// One choice of a contract.
#[derive(Debug)]
pub struct Switch {
    /// Its name.
    pub name: &'static str,
    /// The values it may have, for people.
    pub values: &'static str,
    /// One line of help.
    pub help: &'static str,
    set: fn(&mut Contract, &str) -> Option<()>,
    get: fn(&Contract) -> String,
}

impl Switch {
    /// How the switch is set in a contract.
    #[must_use]
    pub fn value(&self, contract: &Contract) -> String {
        (self.get)(contract)
    }
}

/// A switch and a value for it that is known to be right: `NAME=VALUE`.
#[derive(Debug, Clone)]
pub struct Setting {
    switch: &'static Switch,
    value: String,
}

impl Setting {
    pub(super) fn apply(&self, contract: &mut Contract) {
        // The value was tried when the setting was read.
        let _ = (self.switch.set)(contract, &self.value);
    }

    /// The name of the switch.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.switch.name
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.switch.name, self.value)
    }
}

/// Text that is no setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSwitch {
    /// There is no value.
    #[error("\"{0}\" is no setting; write NAME=VALUE, such as mismatch=409")]
    NoValue(String),
    /// There is no such switch.
    #[error("there is no policy switch \"{given}\"{}", .nearest.map_or_else(String::new, |name| format!("; did you mean \"{name}\"?")))]
    NoSwitch {
        /// What was given.
        given: String,
        /// A switch with a similar name.
        nearest: Option<&'static str>,
    },
    /// The switch has no such value.
    #[error("\"{value}\" is no value of the policy switch {name}; it takes {values}")]
    NoSuchValue {
        /// The switch.
        name: &'static str,
        /// What was given.
        value: String,
        /// What it takes.
        values: &'static str,
    },
}

impl FromStr for Setting {
    type Err = BadSwitch;

    fn from_str(given: &str) -> Result<Self, Self::Err> {
        // What is wrong may be quoted back to a terminal, so only its beginning is kept.
        let short = |text: &str| text.chars().take(80).collect::<String>();
        let (name, value) = given.split_once('=').ok_or_else(|| BadSwitch::NoValue(short(given)))?;
        let switch = SWITCHES.iter().find(|switch| switch.name == name).ok_or_else(|| {
            let nearest = SWITCHES
                .iter()
                .map(|switch| (strsim::jaro_winkler(switch.name, name), switch.name))
                .filter(|(likeness, _)| *likeness > 0.75)
                .max_by(|a, b| a.0.total_cmp(&b.0));
            BadSwitch::NoSwitch { given: short(name), nearest: nearest.map(|(_, name)| name) }
        })?;
        match (switch.set)(&mut Contract::default(), value) {
            Some(()) => Ok(Self { switch, value: value.to_owned() }),
            None => Err(BadSwitch::NoSuchValue { name: switch.name, value: short(value), values: switch.values }),
        }
    }
}

fn put<T: FromStr>(slot: &mut T, text: &str) -> Option<()> {
    *slot = text.parse().ok()?;
    Some(())
}

fn yes_no(slot: &mut bool, text: &str) -> Option<()> {
    *slot = match text {
        "yes" => true,
        "no" => false,
        _ => return None,
    };
    Some(())
}

fn yes(on: bool) -> String {
    if on { "yes" } else { "no" }.to_owned()
}

/// A list with `+` between its members; `none` for none of them.
fn list(slot: &mut Vec<String>, text: &str) -> Option<()> {
    let proper =
        |name: &&str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_/".contains(&b));
    let names: Vec<_> = if text == "none" { Vec::new() } else { text.split('+').collect() };
    if !names.iter().all(proper) {
        return None;
    }
    *slot = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    Some(())
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join("+") }
}

macro_rules! switches {
    ($($name:literal, $values:literal, $help:literal, |$c:ident, $text:ident| $set:expr, |$g:ident| $get:expr;)*) => {
        /// Every switch, in the order of the documentation.
        pub static SWITCHES: &[Switch] = &[$(Switch {
            name: $name,
            values: $values,
            help: $help,
            set: |$c, $text| $set,
            get: |$g| $get,
        }),*];
    };
}

switches! {
    "key.loc", "header:NAME, body:MEMBER or query:NAME", "where the key travels",
        |c, text| put(&mut c.key.location, text), |c| c.key.location.to_string();
    "key.syntax", "sf-string, bare or either", "how the key is written there",
        |c, text| put(&mut c.key.syntax, text), |c| c.key.syntax.to_string();
    "key.quote_equiv", "yes or no", "whether \"k\" and k are one key where both are taken",
        |c, text| yes_no(&mut c.key.quotes_equal, text), |c| yes(c.key.quotes_equal);
    "key.min", "a number of characters", "the shortest key",
        |c, text| put(&mut c.key.min, text).filter(|()| c.key.min >= 1), |c| c.key.min.to_string();
    "key.max", "a number of characters", "the longest key",
        |c, text| put(&mut c.key.max, text).filter(|()| c.key.max >= 1), |c| c.key.max.to_string();
    "key.charset", "ascii, visible, name or name-or-space", "the characters a key may have",
        |c, text| put(&mut c.key.charset, text), |c| c.key.charset.to_string();
    "key.format", "any, uuid or uuid4", "the format a key must have",
        |c, text| put(&mut c.key.format, text), |c| c.key.format.to_string();
    "key.empty", "reject or accept", "whether an empty key is one",
        |c, text| put(&mut c.key.empty, text), |c| c.key.empty.to_string();
    "key.malformed", "reject, ignore or raw", "what is done with a key that breaks these rules",
        |c, text| put(&mut c.key.malformed, text), |c| c.key.malformed.to_string();
    "key.malformed_status", "a status", "the status of the refusal of a malformed key",
        |c, text| put(&mut c.key.malformed_status, text), |c| c.key.malformed_status.to_string();
    "required", "yes or no", "whether a request must have a key",
        |c, text| yes_no(&mut c.key.required, text), |c| yes(c.key.required);
    "missing.status", "a status", "the status of the refusal of a missing key",
        |c, text| put(&mut c.key.missing_status, text), |c| c.key.missing_status.to_string();
    "methods", "POST, PUT, PATCH and DELETE, with + between them", "the methods whose requests may carry a key",
        |c, text| put(&mut c.methods, text), |c| c.methods.to_string();
    "methods.other", "ignore or reject", "what a key on another method comes to",
        |c, text| put(&mut c.methods_other, text), |c| c.methods_other.to_string();
    "fp.inputs", "none, body, path+body, method+path+query+body or method+path+query+body+headers",
        "what of a request is compared",
        |c, text| put(&mut c.inputs, text), |c| c.inputs.to_string();
    "fp.canon", "json or bytes", "how bodies are compared",
        |c, text| put(&mut c.canon, text), |c| c.canon.to_string();
    "fp.ignore", "none, or names of members with + between them", "members of the body that may change",
        |c, text| list(&mut c.ignored, text), |c| listed(&c.ignored);
    "mismatch", "a status, replay-original or execute-as-new", "what a different request under a used key gets",
        |c, text| put(&mut c.mismatch, text), |c| c.mismatch.to_string();
    "inflight", "a status or wait", "what a duplicate gets while the first request runs",
        |c, text| put(&mut c.in_flight, text), |c| c.in_flight.to_string();
    "inflight.wait", "a time", "how long a duplicate waits at most, where it waits",
        |c, text| { c.in_flight_wait = duration(text)?; Some(()) }, |c| written(c.in_flight_wait);
    "inflight.retry_after", "yes or no", "whether a refused duplicate is told when to come back",
        |c, text| yes_no(&mut c.retry_after, text), |c| yes(c.retry_after);
    "inflight.first", "yes or no", "whether another payload is told of the conflict while the first request runs",
        |c, text| yes_no(&mut c.in_flight_first, text), |c| yes(c.in_flight_first);
    "store.4xx_auth", "store or release", "what becomes of the key after a refusal for the credentials",
        |c, text| put(&mut c.unauthorized, text), |c| c.unauthorized.to_string();
    "store.4xx_validation", "store or release", "what becomes of the key after a failed validation",
        |c, text| put(&mut c.validation, text), |c| c.validation.to_string();
    "store.4xx_business", "store or release", "what becomes of the key after a final refusal, such as a declined card",
        |c, text| put(&mut c.declined, text), |c| c.declined.to_string();
    "store.5xx_pre", "operation, store, release or hold", "what becomes of the key after a failure before the effect",
        |c, text| put(&mut c.failure_before, text), |c| c.failure_before.to_string();
    "store.5xx_post", "operation, store, release or hold", "what becomes of the key after a failure after the effect",
        |c, text| put(&mut c.failure_after, text), |c| c.failure_after.to_string();
    "store.unknown", "release or hold", "what becomes of the key when the server stops before the outcome is known",
        |c, text| put(&mut c.unknown, text).filter(|()| matches!(text, "release" | "hold")), |c| c.unknown.to_string();
    "replay.kind", "verbatim, current-state or 409+resource-id", "what a repeat gets",
        |c, text| put(&mut c.replay, text), |c| c.replay.to_string();
    "replay.status", "same or a status", "the status of a replay",
        |c, text| put(&mut c.replay_status, text), |c| c.replay_status.to_string();
    "replay.hdr.drop", "none, or names of fields with + between them", "fields that a replay does not have",
        |c, text| list(&mut c.dropped, text), |c| listed(&c.dropped);
    "marker", "none or NAME: VALUE", "the field that marks a replay",
        |c, text| put(&mut c.marker, text), |c| c.marker.to_string();
    "scope", "global, or tenant, method and route with + between them", "what tells keys of one name apart",
        |c, text| put(&mut c.scope, text), |c| c.scope.to_string();
    "ttl", "a time", "how long a result is kept",
        |c, text| { c.retention = duration(text)?; Some(()) }, |c| written(c.retention);
    "ttl.base", "completed or first-seen", "what that time counts from",
        |c, text| put(&mut c.retention_base, text), |c| c.retention_base.to_string();
    "ttl.after", "new or a status", "what a key gets after that time",
        |c, text| put(&mut c.expired, text), |c| c.expired.to_string();
    "lease", "a time", "how long a claim keeps others out",
        |c, text| { c.lease = duration(text)?; Some(()) }, |c| written(c.lease);
    "crash", "takeover or hold-until-retention", "what becomes of the key of a dead owner",
        |c, text| put(&mut c.crash, text), |c| c.crash.to_string();
    "store.down", "a status or open", "what a request gets while the store of the keys cannot be used",
        |c, text| put(&mut c.store_down, text), |c| c.store_down.to_string();
    "err.format", "problem+json, json or xml", "how errors are written",
        |c, text| put(&mut c.errors, text), |c| c.errors.to_string();
    "disconnect", "yes or no", "whether the work is finished when the client hangs up",
        |c, text| yes_no(&mut c.finishes, text), |c| yes(c.finishes);
    "stream.store", "yes or no", "whether streamed answers are stored and replayed",
        |c, text| yes_no(&mut c.stores_streams, text), |c| yes(c.stores_streams);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn every_switch_reads_what_it_writes_and_changes_one_thing() {
        for switch in SWITCHES {
            let text = format!("{}={}", switch.name, switch.value(&Contract::default()));
            let setting: Setting = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(setting.to_string(), text);
            assert_eq!(Contract::default().with(&[setting]), Contract::default());
            assert!(!switch.help.contains('\n') && !switch.values.is_empty());
        }
    }

    #[test]
    fn bad_settings_say_what_is_right() {
        for (text, part) in [
            ("mismatch", "NAME=VALUE"),
            ("mismach=409", "did you mean \"mismatch\"?"),
            ("mismatch=often", "a status, replay-original or execute-as-new"),
            ("mismatch=200", "a status"),
            ("mismatch=0409", "a status"),
            ("key.loc=cookie:x", "header:NAME"),
            ("key.max=0", "a number"),
            ("scope=tenant+tenant", "global"),
            ("marker=x", "NAME: VALUE"),
            ("marker=a: b\r\nc: d", "NAME: VALUE"),
            ("ttl=0s", "a time"),
            ("ttl=99999999999999999999h", "a time"),
            ("methods=GET", "POST"),
            ("store.unknown=store", "release or hold"),
        ] {
            let error = text.parse::<Setting>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!("x".repeat(9000).parse::<Setting>().unwrap_err().to_string().len() < 300);
    }
}
