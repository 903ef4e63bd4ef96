//! The `policy` section of a target or of an operation.

use http::{HeaderName, HeaderValue};

use super::{
    Disposal, Documented, ExpiredKey, Fingerprint, InFlight, KeySyntax, MalformedKey, Mismatch, Policy, ReplayStatus,
    StatusSet,
    fields::Reader,
    file::{KeyFile, PolicyFile, ReplayFile, Statuses, Text},
};
use crate::text::Spanned;

pub(super) const DISPOSAL: [(&str, Disposal); 4] = [
    ("release", Disposal::Release),
    ("store", Disposal::Store),
    ("hold", Disposal::Hold),
    ("resume", Disposal::Resume),
];

impl Reader<'_, '_> {
    /// Lays a section over a policy.
    pub(super) fn policy(&mut self, policy: &mut Policy, file: &PolicyFile) {
        self.key_policy(policy, &file.key);
        self.replay_policy(policy, &file.replay);
        let in_flight = [("refuse", InFlight::Refuse), ("wait", InFlight::Wait)];
        self.documented(&mut policy.in_flight, &file.in_flight, "value of `in_flight`", &in_flight);
        self.status_of(&mut policy.in_flight_status, &file.in_flight_status);
        let mismatch = [("refuse", Mismatch::Refuse), ("replay", Mismatch::Replay), ("execute", Mismatch::Execute)];
        self.documented(&mut policy.mismatch, &file.mismatch, "value of `mismatch`", &mismatch);
        self.status_of(&mut policy.mismatch_status, &file.mismatch_status);
        let fingerprint = [("json", Fingerprint::Json), ("bytes", Fingerprint::Bytes)];
        self.documented(&mut policy.fingerprint, &file.fingerprint, "value of `fingerprint`", &fingerprint);
        for (slot, text, what) in [
            (&mut policy.failure_before_effect, &file.failure_before_effect, "value of `failure_before_effect`"),
            (&mut policy.failure_after_effect, &file.failure_after_effect, "value of `failure_after_effect`"),
            (&mut policy.validation_failure, &file.validation_failure, "value of `validation_failure`"),
        ] {
            self.documented(slot, text, what, &DISPOSAL);
        }
        let expired = [("fresh", ExpiredKey::Fresh), ("refuse", ExpiredKey::Refuse)];
        self.documented(&mut policy.expired_key, &file.expired_key, "value of `expired_key`", &expired);
        for (slot, text) in [(&mut policy.retention, &file.retention), (&mut policy.lease, &file.lease)] {
            match text {
                Some(text) if text.value == "unknown" => *slot = Documented::Unknown,
                Some(text) => *slot = self.check.span(text).map_or(Documented::Unknown, Documented::As),
                None => {}
            }
        }
        self.facets(policy, file);
        self.contradictions(policy, file);
    }

    fn key_policy(&mut self, policy: &mut Policy, file: &KeyFile) {
        let key = &mut policy.key;
        if let Some(name) = file.header.as_ref().and_then(|text| self.header_name(text)) {
            key.header = name;
        }
        if let Some(syntax) = &file.syntax {
            let words = [("sf-string", KeySyntax::SfString), ("bare", KeySyntax::Bare)];
            key.syntax = self.check.word("key syntax", syntax, &words).unwrap_or(key.syntax);
        }
        self.documented(&mut key.required, &file.required, "value of `required`", &[("true", true), ("false", false)]);
        self.status_of(&mut key.missing_status, &file.missing_status);
        let malformed =
            [("refuse", MalformedKey::Refuse), ("ignore", MalformedKey::Ignore), ("accept", MalformedKey::Accept)];
        self.documented(&mut key.malformed, &file.malformed, "value of `malformed`", &malformed);
        self.status_of(&mut key.malformed_status, &file.malformed_status);
    }

    fn replay_policy(&mut self, policy: &mut Policy, file: &ReplayFile) {
        let replay = &mut policy.replay;
        if let Some(status) = &file.status {
            let items = status.items();
            if let [only] = items.as_slice()
                && only.value == "same"
            {
                replay.status = ReplayStatus::Same;
            } else if let Some(set) = self.statuses(status) {
                replay.status = ReplayStatus::Other(set);
            }
        }
        if let Some(keeps) = &file.keeps {
            let mut seen = Vec::new();
            replay.keeps = keeps.iter().filter_map(|name| self.header_name(name)).collect();
            for name in keeps {
                let folded = Spanned { value: name.value.to_ascii_lowercase(), at: name.at };
                self.check.once(&folded, &mut seen);
            }
        }
        if let Some(marker) = &file.marker {
            replay.marker = self.marker(marker);
        }
    }

    fn marker(&mut self, text: &Text) -> Option<(HeaderName, HeaderValue)> {
        let parsed = text.value.split_once(':').and_then(|(name, value)| {
            let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
            Some((name, HeaderValue::from_str(value.trim()).ok()?))
        });
        if parsed.is_none() {
            let title = format!("`{}` is not a header field", text.value);
            let help = "write name and value in quotes, such as \"Idempotent-Replayed: true\"";
            self.check.error(title, text.at, "here", help);
        }
        parsed
    }

    pub(super) fn documented<T: Copy>(
        &mut self,
        slot: &mut Documented<T>,
        text: &Option<Text>,
        what: &str,
        words: &[(&'static str, T)],
    ) {
        let Some(text) = text else { return };
        let mut all: Vec<(&str, Documented<T>)> =
            words.iter().map(|(word, value)| (*word, Documented::As(*value))).collect();
        all.push(("unknown", Documented::Unknown));
        if let Some(value) = self.check.word(what, text, &all) {
            *slot = value;
        }
    }

    fn status_of(&mut self, slot: &mut StatusSet, statuses: &Option<Statuses>) {
        if let Some(set) = statuses.as_ref().and_then(|statuses| self.statuses(statuses)) {
            *slot = set;
        }
    }

    /// What is written in this section and cannot be true together with the rest.
    fn contradictions(&mut self, policy: &Policy, file: &PolicyFile) {
        let refuses = "a status of a refusal that never comes";
        if let Some(status) = &file.in_flight_status
            && policy.in_flight.is(&InFlight::Wait)
        {
            let help = "remove it, or write `in_flight: refuse`";
            self.check.error("`in_flight_status` with `in_flight: wait`", status.at, refuses, help);
        }
        if let Some(status) = &file.mismatch_status
            && policy.mismatch.known().is_some_and(|mismatch| *mismatch != Mismatch::Refuse)
        {
            let help = "remove it, or write `mismatch: refuse`";
            self.check.error("`mismatch_status` without `mismatch: refuse`", status.at, refuses, help);
        }
        if let Some(fingerprint) = file.fingerprint.as_ref().filter(|text| text.value != "unknown")
            && policy.mismatch.is(&Mismatch::Replay)
        {
            let help = "remove it: `mismatch: replay` says that payloads are not compared";
            self.check.error("`fingerprint` with `mismatch: replay`", fingerprint.at, "nothing is compared", help);
        }
        if let Some(status) = &file.key.missing_status
            && policy.key.required.is(&false)
        {
            let help = "remove it, or write `required: true`";
            self.check.error("`missing_status` with `required: false`", status.at, refuses, help);
        }
        if let Some(status) = &file.key.malformed_status
            && policy.key.malformed.known().is_some_and(|malformed| *malformed != MalformedKey::Refuse)
        {
            let help = "remove it, or write `malformed: refuse`";
            self.check.error("`malformed_status` without `malformed: refuse`", status.at, refuses, help);
        }
        if let Some(expired) = file.expired_key.as_ref().filter(|text| text.value != "unknown")
            && policy.retention == Documented::Unknown
            && file.retention.as_ref().is_none_or(|text| text.value == "unknown")
        {
            let help = "say how long a completed key is kept: `retention: 24h`";
            self.check.error("`expired_key` without `retention`", expired.at, "no key ever expires", help);
        }
    }
}
