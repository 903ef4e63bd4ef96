//! The keyed endpoints of a target.

use std::collections::BTreeMap;

use http::Method;
use serde_json_path::JsonPath;

use super::{
    EffectProbe, HeaderTemplate, Operation, Policy, StatusSet,
    fields::{REQUEST_VARS, Reader},
    file::{EffectsFile, OperationFile, Text},
};
use crate::text::{JsonTemplate, Span, Template};

impl Reader<'_, '_> {
    /// One operation; its policy is laid over that of the target.
    pub(super) fn operation(&mut self, name: &Text, file: &OperationFile, target_policy: &Policy) -> Option<Operation> {
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
        if let Some(methods) = policy.key.methods.known().filter(|methods| !methods.contains(&method)) {
            let known: Vec<_> = methods.iter().map(Method::as_str).collect();
            let title = format!("the policy says that keys are not honoured on {method}");
            let help = format!("`key.methods` has {}: add {method}, or leave the operation out", known.join(", "));
            self.check.error(title, file.request.at, "this method", help);
        }
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
            if ["base", "reordered", "reformatted", "escaped", "unreadable"].contains(&name.value.as_str()) {
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
}
