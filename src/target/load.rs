//! From a target file to a target: nothing left to look up, all that is wrong told at once.

use std::{collections::BTreeMap, path::Path};

use http::Method;
use serde_json_path::JsonPath;
use url::Url;

use super::{
    EffectProbe, Hook, HeaderTemplate, Hooks, Limits, Operation, PROFILES, Policy, StatusSet, Target, Tenant,
    fields::{REQUEST_VARS, Reader},
    file::{EffectsFile, HookFile, HooksFile, LimitsFile, OperationFile, TargetFile, Text},
};
use crate::text::{
    Check, Diagnostic, JsonTemplate, Problems, Redactor, Source, Span, Spanned, Template, from_yaml,
};

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
            (format!("the scheme `{}` is not supported", url.scheme()), "write a URL that starts with http:// or https://")
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
    fn no_key_header(&mut self, entries: &[(Text, Text)], policy: &Policy) {
        for (name, _) in entries.iter().filter(|(name, _)| policy.key.header.as_str().eq_ignore_ascii_case(&name.value)) {
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

    fn operation(&mut self, name: &Text, file: &OperationFile, target_policy: &Policy) -> Option<Operation> {
        let mut policy = target_policy.clone();
        self.policy(&mut policy, &file.policy);
        let name = self.check.name("an operation", name);
        let methods = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
        let request = self.request(&file.request, &methods, REQUEST_VARS);
        let json = file.json.as_ref().map(|json| self.json(json, REQUEST_VARS));
        self.no_key_header(&file.headers.0, &policy);
        let headers = self.headers(&file.headers, REQUEST_VARS);
        let variants = self.variants(file, json.as_ref().and_then(Option::as_ref));
        let success = file.success.as_ref().map_or(Some(StatusSet::class(2)), |statuses| self.statuses(statuses));
        let identity = match &file.identity {
            Some(text) => self.json_path(text),
            None => JsonPath::parse("$.id").ok(),
        };
        let effects = file.effects.as_ref().map(|effects| self.effects(effects));
        let (method, path) = request?;
        let json = json.map_or(Some(None), |json| json.map(Some))?;
        let effects = effects.map_or(Some(None), |probe| probe.map(Some))?;
        if let (Some(probe), Some(file)) = (&effects, &file.effects) {
            self.narrows(probe, file, &path, json.as_ref(), &headers);
        }
        Some(Operation {
            name: name?,
            method,
            path,
            json,
            headers,
            variants,
            success: success?,
            identity: identity?,
            effects,
            policy,
        })
    }

    fn variants(&mut self, file: &OperationFile, base: Option<&JsonTemplate>) -> BTreeMap<String, JsonTemplate> {
        let mut variants = BTreeMap::new();
        for (name, patch) in &file.variants.0 {
            let proper = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if ["base", "reordered", "reformatted"].contains(&name.value.as_str()) {
                let title = format!("a variant cannot be called `{}`", name.value);
                let help = "this payload is always there; give the variant another name";
                self.check.error(title, name.at, "a name with a meaning", help);
            } else if name.value.is_empty() || name.value.len() > 64 || !name.value.chars().all(proper) {
                let title = format!("`{}` is no name for a variant", name.value);
                self.check.error(title, name.at, "here", "write letters, digits, hyphens and underscores");
            }
            if file.json.is_none() {
                let help = "give the base payload with `json`: a variant says what changes in it";
                self.check.error("a variant of nothing", name.at, "the operation has no payload", help);
            }
            let Some(template) = self.json(patch, REQUEST_VARS) else { continue };
            if base.is_some_and(|base| base.merged(&template) == *base) {
                let title = format!("the variant `{}` changes nothing", name.value);
                let help = "give at least one member another value; `null` removes a member";
                self.check.error(title, name.at, "the same as `json`", help);
            }
            variants.insert(name.value.clone(), template);
        }
        variants
    }

    fn effects(&mut self, file: &EffectsFile) -> Option<EffectProbe> {
        let get = self.path(&file.get, REQUEST_VARS);
        let count = self.json_path(&file.count);
        let id = file.id.as_ref().map(|id| self.json_path(id));
        let quiet = file.quiet.as_ref().map_or(Some(Span::from_millis(100)), |quiet| self.check.span(quiet));
        Some(EffectProbe { get: get?, count: count?, id: id.map_or(Some(None), |id| id.map(Some))?, quiet: quiet? })
    }

    /// Whether the probe counts the effects of one intent, and not those of everybody.
    fn narrows(
        &mut self,
        probe: &EffectProbe,
        file: &EffectsFile,
        path: &Template,
        json: Option<&JsonTemplate>,
        headers: &[HeaderTemplate],
    ) {
        let asks_for = |name: &str| probe.get.names().any(|other| other == name);
        if !asks_for("reference") && !asks_for("key") {
            let help = "ask for the effects of one request only, such as `get: \"/payments?reference=${reference}\"`";
            let title = "the effect probe counts everybody's effects";
            self.check.error(title, file.get.at, "has neither ${reference} nor ${key}", help);
            return;
        }
        let sent = path.names().any(|name| name == "reference")
            || json.is_some_and(|json| json.names().iter().any(|name| name == "reference"))
            || headers.iter().any(|header| header.value.names().any(|name| name == "reference"));
        if asks_for("reference") && !sent {
            let help = "put \"${reference}\" into a member of `json` that the API stores and can be asked for";
            let title = "the effect probe asks for a reference that is never sent";
            self.check.error(title, file.get.at, "the request carries no ${reference}", help);
        }
    }

    fn hooks(&mut self, file: &HooksFile) -> Hooks {
        Hooks {
            slow: self.header_hook("slow", &file.slow, &["ms"]),
            fail: self.header_hook("fail", &file.fail, &["point", "times"]),
            die: self.header_hook("die", &file.die, &["point", "times"]),
            advance_clock: file.advance_clock.as_ref().and_then(|hook| self.clock_hook(hook)),
        }
    }

    fn header_hook(&mut self, name: &str, hook: &Option<Spanned<HookFile>>, vars: &[&str]) -> Option<Hook> {
        let hook = hook.as_ref()?;
        let example = format!("write `{name}: {{ header: {{ X-Test: \"${{{}}}\" }} }}`", vars.first()?);
        let HookFile { header: Some(headers), request: None, json: None } = &hook.value else {
            let title = format!("the hook `{name}` is a header field on the request it concerns");
            self.check.error(title, hook.at, "here", example);
            return None;
        };
        let templates = self.headers(&headers.value, vars);
        if headers.value.0.is_empty() {
            self.check.error(format!("the hook `{name}` has no header field"), headers.at, "empty", example);
        } else if templates.len() == headers.value.0.len()
            && !templates.iter().any(|header| header.value.names().any(|used| Some(&used) == vars.first()))
        {
            let title = format!("the hook `{name}` does not say `${{{}}}`", vars.first()?);
            self.check.error(title, headers.at, "always the same", example);
        }
        Some(Hook::Headers(templates))
    }

    fn clock_hook(&mut self, hook: &Spanned<HookFile>) -> Option<Hook> {
        let example = "write `advance_clock: { request: POST /test/clock, json: { seconds: \"${seconds}\" } }`";
        let HookFile { header: None, request: Some(request), json } = &hook.value else {
            self.check.error("the hook `advance_clock` is a request of its own", hook.at, "here", example);
            return None;
        };
        let methods = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::GET];
        let parsed = self.request(request, &methods, &["seconds"]);
        let json = json.as_ref().map(|json| self.json(json, &["seconds"]));
        let (method, path) = parsed?;
        let json = json.map_or(Some(None), |json| json.map(Some))?;
        let says = path.names().any(|name| name == "seconds")
            || json.as_ref().is_some_and(|json| json.names().iter().any(|name| name == "seconds"));
        if !says {
            let title = "the hook `advance_clock` does not say `${seconds}`";
            self.check.error(title, request.at, "how far does it move the clock?", example);
        }
        Some(Hook::Request { method, path, json })
    }

    fn limits(&mut self, file: &LimitsFile) -> Limits {
        let mut limits = Limits::default();
        limits.rate = file.rate.as_ref().and_then(|rate| self.number(rate, 1_000_000));
        if let Some(requests) = file.requests.as_ref().and_then(|text| self.number(text, u32::MAX)) {
            limits.requests = requests;
        }
        if let Some(concurrency) = file.concurrency.as_ref().and_then(|text| self.number(text, 1024)) {
            limits.concurrency = u16::try_from(concurrency).unwrap_or(limits.concurrency);
        }
        if let Some(timeout) = file.timeout.as_ref().and_then(|text| self.check.span(text)) {
            limits.timeout = timeout;
            if timeout.millis() == 0 || timeout > Span::from_secs(3600) {
                let at = file.timeout.as_ref().map(|text| text.at).unwrap_or_default();
                self.check.error("a timeout of this length makes no sense", at, "here", "write 1ms to 1h, such as 10s");
            }
        }
        limits
    }
}
