//! From a target file to a target: nothing left to look up, all that is wrong told at once.

use std::path::Path;

use url::Url;

use super::{
    Operation, PROFILES, Policy, Target, Tenant,
    fields::{REQUEST_VARS, Reader},
    file::{TargetFile, Text},
};
use crate::text::{Check, Diagnostic, Problems, Redactor, Source, Template, from_yaml};

/// Gives the value of an environment variable.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Looks a variable up in the environment of the process.
pub fn process_env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Whether a target file has to say where the API is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseUrl {
    /// It has to: `base_url` or `nodes`.
    Required,
    /// Whoever reads it knows better, and calls [`Target::with_nodes`]. A target without nodes sends nothing.
    Optional,
}

impl Target {
    /// Reads a target file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(path: &Path, env: Lookup<'_>, base_url: BaseUrl) -> Result<Self, Problems> {
        Self::of(&Source::read(path)?, env, base_url)
    }

    /// Reads a target from a text; `file_name` is what people know it by.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str, file_name: &str, env: Lookup<'_>, base_url: BaseUrl) -> Result<Self, Problems> {
        Self::of(&Source::from_bytes(file_name, text.as_bytes())?, env, base_url)
    }

    /// The same target at other addresses. They are base URLs, at least one.
    #[must_use]
    pub fn with_nodes(self, nodes: Vec<Url>) -> Self {
        Self { nodes, ..self }
    }

    fn of(source: &Source, env: Lookup<'_>, base_url: BaseUrl) -> Result<Self, Problems> {
        let file: TargetFile = from_yaml(source)?;
        let redactor = Redactor::new();
        let mut check = Check::new(source);
        let target = Reader { check: &mut check, env, redactor: &redactor }.target(&file, base_url);
        check.finish(target, &redactor)
    }
}

impl Reader<'_, '_> {
    fn target(&mut self, file: &TargetFile, base_url: BaseUrl) -> Option<Target> {
        let name = self.check.name("a target", &file.target);
        let profile = self.profile(file);
        let nodes = self.nodes(file, base_url);
        let mut policy = profile.policy();
        self.policy(&mut policy, &file.policy);
        let tenants = self.tenants(file, &policy);
        let operations = self.operations(file, &policy);
        let hooks = self.hooks(&file.hooks);
        let limits = self.limits(&file.limits);
        Some(Target {
            name: name?,
            profile: profile.name.to_owned(),
            nodes,
            tenants,
            operations,
            hooks,
            limits,
            redactor: self.redactor.clone(),
        })
    }

    fn profile(&mut self, file: &TargetFile) -> &'static super::Profile {
        let Some(text) = &file.profile else { return &PROFILES[0] };
        let words: Vec<_> = PROFILES.iter().map(|profile| (profile.name, profile)).collect();
        self.check.word("profile", text, &words).unwrap_or(&PROFILES[0])
    }

    fn nodes(&mut self, file: &TargetFile, base_url: BaseUrl) -> Vec<Url> {
        let help = "add `base_url: https://staging.example.com`, or `nodes: [URL, URL]` for several instances";
        match (&file.base_url, &file.nodes) {
            (Some(_), Some(nodes)) => {
                let help = "keep `base_url` for one address, or `nodes` for several";
                self.check.error("both `base_url` and `nodes` are given", nodes.at, "the second one", help);
                Vec::new()
            }
            (Some(url), None) => self.base_url(url).into_iter().collect(),
            (None, Some(nodes)) => {
                if nodes.value.is_empty() {
                    self.check.error("`nodes` is empty", nodes.at, "here", help);
                }
                let mut seen: Vec<(Url, &Text)> = Vec::new();
                for text in &nodes.value {
                    let Some(url) = self.base_url(text) else { continue };
                    if let Some((_, first)) = seen.iter().find(|(other, _)| *other == url) {
                        self.check.push(
                            Diagnostic::new("two nodes have the same address")
                                .at(text.at, "the second one")
                                .at(first.at, "the first one")
                                .help("remove one of them"),
                        );
                    }
                    seen.push((url, text));
                }
                seen.into_iter().map(|(url, _)| url).collect()
            }
            (None, None) => {
                if base_url == BaseUrl::Required {
                    self.check.error("the target has no address", file.target.at, "in this target", help);
                }
                Vec::new()
            }
        }
    }

    /// A base URL. Values of the environment are not shown: they may have credentials in them.
    fn base_url(&mut self, text: &Text) -> Option<Url> {
        let template = match Template::parse(&text.value) {
            Ok(template) => template,
            Err(error) => {
                self.check.error(error.to_string(), text.at, "here", "write a URL or ${env:NAME}");
                return None;
            }
        };
        let missing: Vec<_> =
            template.env_names().filter(|name| (self.env)(name).is_none()).map(str::to_owned).collect();
        for name in &missing {
            let near = self.check.source().find(text.at, &format!("${{env:{name}}}"));
            self.env_missing(name, near);
        }
        if let Some(name) = template.names().next() {
            let title = format!("nothing gives `${{{name}}}` a value here");
            let help = format!("for an environment variable write ${{env:{name}}}");
            self.check.error(title, text.at, "unknown placeholder", help);
            return None;
        }
        if !missing.is_empty() {
            return None;
        }
        let from_env = template.has_env();
        let written = template.resolve_env(&|name| (self.env)(name)).ok()?.to_string();
        let label = if from_env { "what the environment gives here" } else { "here" };
        let url = match Url::parse(written.trim()) {
            Ok(url) => url,
            Err(error) => {
                let help = "write a whole URL, such as https://staging.example.com/api";
                self.check.error(format!("this is not a URL: {error}"), text.at, label, help);
                return None;
            }
        };
        self.redact_url(&url);
        let (title, help) = if !matches!(url.scheme(), "http" | "https") {
            (
                format!("the scheme `{}` is not supported", url.scheme()),
                "write a URL that starts with http:// or https://",
            )
        } else if url.host().is_none() {
            ("the URL has no host".to_owned(), "write a whole URL, such as https://staging.example.com/api")
        } else if !url.username().is_empty() || url.password().is_some() {
            (
                "the URL has a user name or password".to_owned(),
                "send them as a header field of a tenant: `tenants: { default: { headers: { Authorization: \"Basic ${env:BASIC}\" } } }`",
            )
        } else if url.query().is_some() || url.fragment().is_some() {
            (
                "the URL has a query or a fragment".to_owned(),
                "remove it; what every request needs goes into the header fields of a tenant",
            )
        } else {
            return Some(url);
        };
        self.check.error(title, text.at, label, help);
        None
    }

    fn redact_url(&self, url: &Url) {
        for secret in [url.username(), url.password().unwrap_or_default(), url.query().unwrap_or_default()] {
            self.redactor.add(secret);
        }
    }

    fn tenants(&mut self, file: &TargetFile, policy: &Policy) -> Vec<Tenant> {
        if file.tenants.0.is_empty() {
            return vec![Tenant { name: "default".to_owned(), headers: Vec::new() }];
        }
        let mut tenants = Vec::new();
        for (name, tenant) in &file.tenants.0 {
            self.no_key_header(&tenant.headers.0, policy);
            let headers = self.headers(&tenant.headers, REQUEST_VARS);
            tenants.extend(self.check.name("a tenant", name).map(|name| Tenant { name, headers }));
        }
        tenants
    }

    /// The key is sent by the tool, and only where a case says so.
    pub(super) fn no_key_header(&mut self, entries: &[(Text, Text)], policy: &Policy) {
        for (name, _) in entries.iter().filter(|(name, _)| policy.key.header.as_str().eq_ignore_ascii_case(&name.value))
        {
            let title = format!("the key's header field `{}` cannot be set here", name.value);
            self.check.error(title, name.at, "every case sends its own keys", "remove it");
        }
    }

    fn operations(&mut self, file: &TargetFile, policy: &Policy) -> Vec<Operation> {
        let help = "add one: `operations: { create: { request: POST /payments, json: {...} } }`";
        let Some(operations) = &file.operations else {
            self.check.error("the target has no operation", file.target.at, "in this target", help);
            return Vec::new();
        };
        if operations.value.0.is_empty() {
            self.check.error("the target has no operation", operations.at, "empty", help);
        }
        operations
            .value
            .0
            .iter()
            .filter_map(|(name, operation)| self.operation(name, &operation.value, policy))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use serde_json::json;

    use super::super::{Documented, Hook, InFlight, KeySyntax, ReplayStatus};
    use super::*;
    use crate::text::{Span, Var, Vars};

    fn env(name: &str) -> Option<String> {
        (name == "TOKEN").then(|| "sesame ${reference}".to_owned())
    }

    fn parse(text: &str) -> Target {
        Target::parse(text, "t.yaml", &env, BaseUrl::Optional)
            .unwrap_or_else(|problems| panic!("{}", problems.render(false, 100)))
    }

    const SMALLEST: &str = "target: t\noperations: { create: { request: POST /p } }\n";

    #[test]
    fn the_smallest_file_has_every_default() {
        let target = parse(SMALLEST);
        assert_eq!(target.profile, "draft");
        assert_eq!((target.tenants.len(), target.default_tenant().name.as_str()), (1, "default"));
        let operation = target.operation("create").unwrap();
        assert!(operation.success.contains(204) && !operation.success.contains(300));
        assert_eq!(operation.identity.query_located(&json!({"id": 7})).len(), 1);
        assert_eq!(operation.policy, crate::target::Policy::default(), "nothing is stated, so nothing is documented");
        assert_eq!(target.limits, crate::target::Limits::default());
        assert!(Target::parse(SMALLEST, "t.yaml", &env, BaseUrl::Required).is_err());
        let url = Url::parse("http://127.0.0.1:1").unwrap();
        assert_eq!(target.with_nodes(vec![url.clone()]).nodes, [url]);
    }

    #[test]
    fn the_order_of_the_file_is_kept_and_an_operation_overrides_the_policy() {
        let target = parse(
            "target: t\ntenants: { zeta: {}, alpha: {} }\npolicy: { in_flight: refuse, retention: 24h, key: { syntax: bare } }\noperations:\n  \
             z: { request: POST /z, policy: { in_flight: wait, retention: unknown } }\n  a: { request: PUT /a }\n",
        );
        assert_eq!(target.tenants.iter().map(|tenant| tenant.name.as_str()).collect::<Vec<_>>(), ["zeta", "alpha"]);
        let [z, a] = target.operations.as_slice() else { panic!("two operations") };
        assert_eq!((z.name.as_str(), a.name.as_str()), ("z", "a"));
        assert!(z.policy.in_flight.is(&InFlight::Wait) && a.policy.in_flight.is(&InFlight::Refuse));
        assert_eq!(z.policy.retention, Documented::Unknown);
        assert_eq!(a.policy.retention, Documented::As(Span::from_secs(86_400)));
        assert!(z.policy.key.syntax == KeySyntax::Bare && z.policy.replay.status == ReplayStatus::Same);
    }

    #[test]
    fn secrets_are_known_and_environment_values_are_never_templates() {
        let target = parse(
            "target: t\ntenants:\n  default: { headers: { Authorization: \"Bearer ${env:TOKEN}\" } }\n  \
             other: { headers: { Authorization: Basic b3BlbjpzZXNhbWU, X-Plain: visible } }\n\
             operations: { create: { request: POST /p, json: { who: \"${env:TOKEN}\", r: \"${reference}\" } } }\n",
        );
        let shown = target.redactor.redact("Bearer sesame ${reference} / b3BlbjpzZXNhbWU / visible");
        assert_eq!(shown, "Bearer *** / *** / visible");
        let vars = Vars::from([("reference".to_owned(), Var::Text("r1".to_owned()))]);
        let header = &target.tenants[0].headers[0];
        assert_eq!(header.value.render(&vars).unwrap(), "Bearer sesame ${reference}");
        let json = target.operations[0].json.as_ref().unwrap().render(&vars).unwrap();
        assert_eq!(json, json!({"who": "sesame ${reference}", "r": "r1"}));
    }

    #[test]
    fn hooks_are_read() {
        let target = parse(&format!(
            "{SMALLEST}hooks:\n  slow: {{ header: {{ X-Ms: \"${{ms}}\" }} }}\n  \
             advance_clock: {{ request: POST /clock, json: {{ seconds: \"${{seconds}}\" }} }}\n"
        ));
        assert!(matches!(&target.hooks.slow, Some(Hook::Headers(headers)) if headers[0].name == "x-ms"));
        let Some(Hook::Request { json: Some(json), .. }) = &target.hooks.advance_clock else { panic!("a request") };
        let vars = Vars::from([("seconds".to_owned(), Var::Number(60))]);
        assert_eq!(json.render(&vars).unwrap(), json!({"seconds": 60}));
        assert!(target.hooks.fail.is_none() && target.hooks.die.is_none());
    }
}
