//! The rarer keys of the `policy` section, and what of them cannot be true together.

use http::Method;

use super::{
    Crash, Disposal, Documented, EmptyKey, ErrorFormat, FingerprintHeaders, FingerprintPart, InFlight, KeyFormat,
    KeyPlace, KeyQuotes, Mismatch, Policy, ReplayKind, RetentionFrom, ScopePart, StoreDown,
    fields::Reader,
    file::{KeyFile, PolicyFile, Text, Words},
    policy_file::DISPOSAL,
};

/// The longest key that a target may document, in characters.
const LONGEST: u32 = 65_536;

impl Reader<'_, '_> {
    pub(super) fn facets(&mut self, policy: &mut Policy, file: &PolicyFile) {
        self.key_facets(policy, &file.key);
        let yes_no = [("true", true), ("false", false)];
        let what = "value of `in_flight_retry_after`";
        self.documented(&mut policy.in_flight_retry_after, &file.in_flight_retry_after, what, &yes_no);
        self.documented(&mut policy.lease_renewed, &file.lease_renewed, "value of `lease_renewed`", &yes_no);
        for (slot, text, what) in [
            (&mut policy.auth_failure, &file.auth_failure, "value of `auth_failure`"),
            (&mut policy.rate_limit, &file.rate_limit, "value of `rate_limit`"),
            (&mut policy.business_failure, &file.business_failure, "value of `business_failure`"),
            (&mut policy.redirect, &file.redirect, "value of `redirect`"),
            (&mut policy.unknown_outcome, &file.unknown_outcome, "value of `unknown_outcome`"),
        ] {
            self.documented(slot, text, what, &DISPOSAL);
        }
        let headers = [("ignored", FingerprintHeaders::Ignored), ("compared", FingerprintHeaders::Compared)];
        let what = "value of `fingerprint_headers`";
        self.documented(&mut policy.fingerprint_headers, &file.fingerprint_headers, what, &headers);
        let kinds = [
            ("verbatim", ReplayKind::Verbatim),
            ("status-and-body", ReplayKind::StatusAndBody),
            ("current-state", ReplayKind::CurrentState),
            ("conflict", ReplayKind::Conflict),
        ];
        self.documented(&mut policy.replay.kind, &file.replay.kind, "value of `replay.kind`", &kinds);
        let from = [
            ("first-use", RetentionFrom::FirstUse),
            ("completion", RetentionFrom::Completion),
            ("last-use", RetentionFrom::LastUse),
        ];
        self.documented(&mut policy.retention_from, &file.retention_from, "value of `retention_from`", &from);
        let crash = [("takeover", Crash::Takeover), ("hold", Crash::Hold)];
        self.documented(&mut policy.crash, &file.crash, "value of `crash`", &crash);
        let down = [("refuse", StoreDown::Refuse), ("run", StoreDown::Run)];
        self.documented(&mut policy.store_down, &file.store_down, "value of `store_down`", &down);
        let formats = [
            ("problem-json", ErrorFormat::ProblemJson),
            ("json", ErrorFormat::Json),
            ("xml", ErrorFormat::Xml),
            ("graphql", ErrorFormat::Graphql),
        ];
        self.documented(&mut policy.error_format, &file.error_format, "value of `error_format`", &formats);
        if let Some(path) = &file.error_code {
            policy.error_code = self.json_path(path);
        }
        let parts = [
            ("method", FingerprintPart::Method),
            ("path", FingerprintPart::Path),
            ("query", FingerprintPart::Query),
            ("body", FingerprintPart::Body),
        ];
        self.several(&mut policy.fingerprint_parts, &file.fingerprint_parts, "part of a request", &parts);
        let scope = [
            ("credential", ScopePart::Credential),
            ("account", ScopePart::Account),
            ("tenant", ScopePart::Tenant),
            ("user", ScopePart::User),
            ("region", ScopePart::Region),
            ("zone", ScopePart::Zone),
            ("mode", ScopePart::Mode),
            ("method", ScopePart::Method),
            ("route", ScopePart::Route),
            ("path", ScopePart::Path),
            ("api-version", ScopePart::ApiVersion),
        ];
        self.several(&mut policy.scope, &file.scope, "part of a scope", &scope);
        for (slot, text) in
            [(&mut policy.in_flight_wait, &file.in_flight_wait), (&mut policy.retention_max, &file.retention_max)]
        {
            match text {
                Some(text) if text.value == "unknown" => *slot = Documented::Unknown,
                Some(text) => *slot = self.check.span(text).map_or(Documented::Unknown, Documented::As),
                None => {}
            }
        }
        self.facet_contradictions(policy, file);
    }

    fn key_facets(&mut self, policy: &mut Policy, file: &KeyFile) {
        let key = &mut policy.key;
        if let Some(place) = &file.place {
            let words = [("header", KeyPlace::Header), ("request", KeyPlace::Request)];
            key.place = self.check.word("value of `place`", place, &words).unwrap_or(key.place);
        }
        let formats = [
            ("any", KeyFormat::Any),
            ("uuid", KeyFormat::Uuid),
            ("uuid4", KeyFormat::Uuid4),
            ("token", KeyFormat::Token),
        ];
        self.documented(&mut key.format, &file.format, "value of `format`", &formats);
        let empty = [("refuse", EmptyKey::Refuse), ("accept", EmptyKey::Accept)];
        self.documented(&mut key.empty, &file.empty, "value of `empty`", &empty);
        let quotes = [("ignored", KeyQuotes::Ignored), ("significant", KeyQuotes::Significant)];
        self.documented(&mut key.quotes, &file.quotes, "value of `quotes`", &quotes);
        for (slot, text) in [(&mut key.min_length, &file.min_length), (&mut key.max_length, &file.max_length)] {
            self.length(slot, text);
        }
        let methods = [
            ("POST", Method::POST),
            ("PUT", Method::PUT),
            ("PATCH", Method::PATCH),
            ("DELETE", Method::DELETE),
            ("GET", Method::GET),
        ];
        self.several(&mut key.methods, &file.methods, "method", &methods);
    }

    fn length(&mut self, slot: &mut Documented<u32>, text: &Option<Text>) {
        let Some(text) = text else { return };
        if text.value == "unknown" {
            *slot = Documented::Unknown;
            return;
        }
        match text.value.parse::<u32>() {
            Ok(length) if (1..=LONGEST).contains(&length) => *slot = Documented::As(length),
            _ => {
                let help = format!("write a number of characters from 1 to {LONGEST}, or `unknown`");
                self.check.error(format!("`{}` is no length of a key", text.value), text.at, "here", help);
            }
        }
    }

    fn several<T: Clone + PartialEq>(
        &mut self,
        slot: &mut Documented<Vec<T>>,
        words: &Option<Words>,
        what: &str,
        known: &[(&'static str, T)],
    ) {
        let Some(words) = words else { return };
        let items = words.items();
        if let [only] = items.as_slice()
            && only.value == "unknown"
        {
            *slot = Documented::Unknown;
            return;
        }
        let choices: Vec<(&str, usize)> = known.iter().enumerate().map(|(index, (word, _))| (*word, index)).collect();
        let mut seen = Vec::new();
        let mut all = Vec::new();
        for item in &items {
            if let Some(index) = self.check.word(what, item, &choices)
                && self.check.once(item, &mut seen)
            {
                all.push(known[index].1.clone());
            }
        }
        *slot = Documented::As(all);
    }

    /// What is written in this section and cannot be true together with the rest.
    fn facet_contradictions(&mut self, policy: &Policy, file: &PolicyFile) {
        let mut told: Vec<(&str, &Text, &str, &str)> = Vec::new();
        let key = &policy.key;
        if let (Some(min), Some(max), Some(text)) =
            (key.min_length.known(), key.max_length.known(), &file.key.min_length)
            && min > max
        {
            told.push(("`min_length` is more than `max_length`", text, "no key fits", "exchange them"));
        }
        if let Some(text) = &file.in_flight_wait
            && policy.in_flight.is(&InFlight::Refuse)
        {
            let help = "remove it, or write `in_flight: wait`";
            told.push(("`in_flight_wait` with `in_flight: refuse`", text, "nobody waits", help));
        }
        if let Some(text) = file.in_flight_retry_after.as_ref().filter(|text| text.value == "true")
            && policy.in_flight.is(&InFlight::Wait)
        {
            let help = "remove it, or write `in_flight: refuse`";
            told.push(("`in_flight_retry_after` with `in_flight: wait`", text, "nothing is refused", help));
        }
        if let Some(text) = file.fingerprint_headers.as_ref().filter(|text| text.value == "compared")
            && policy.mismatch.is(&Mismatch::Replay)
        {
            let help = "remove it: `mismatch: replay` says that requests are not compared";
            told.push(("`fingerprint_headers: compared` with `mismatch: replay`", text, "nothing is compared", help));
        }
        if let (Documented::As(least), Documented::As(most), Some(text)) =
            (policy.retention, policy.retention_max, &file.retention_max)
            && most < least
        {
            let help = "`retention` is the least time that a key is kept, `retention_max` the most";
            told.push(("`retention_max` is shorter than `retention`", text, "never both", help));
        }
        if let Some(text) = file.retention_from.as_ref().filter(|text| text.value != "unknown")
            && policy.retention == Documented::Unknown
        {
            let help = "say how long a completed key is kept: `retention: 24h`";
            told.push(("`retention_from` without `retention`", text, "nothing is counted", help));
        }
        if let Some(text) = file.lease_renewed.as_ref().filter(|text| text.value == "true")
            && policy.lease == Documented::Unknown
        {
            let help = "say how long a running owner holds the key: `lease: 30s`";
            told.push(("`lease_renewed` without `lease`", text, "nothing is renewed", help));
        }
        if let Some(text) = &file.error_code
            && matches!(policy.error_format, Documented::As(ErrorFormat::Xml))
        {
            let help = "remove it: a JSONPath selects nothing in XML";
            told.push(("`error_code` with `error_format: xml`", text, "selects nothing", help));
        }
        let stores = [
            (&file.auth_failure, policy.auth_failure),
            (&file.rate_limit, policy.rate_limit),
            (&file.validation_failure, policy.validation_failure),
        ];
        for (text, value) in stores {
            if let (Some(text), Documented::As(Disposal::Resume)) = (text, value) {
                let help = "write `release` or `store`: these failures come before the work";
                told.push(("nothing was begun that could be resumed", text, "`resume`", help));
            }
        }
        for (title, text, label, help) in told {
            self.check.error(title, text.at, label, help);
        }
    }
}
