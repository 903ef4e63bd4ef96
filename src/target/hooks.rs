//! What a tester may make the target do, and how politely.

use http::Method;

use super::{
    Hook, Hooks, Limits,
    fields::Reader,
    file::{HookFile, HooksFile, LimitsFile},
};
use crate::text::{Span, Spanned};

impl Reader<'_, '_> {
    /// The hooks.
    pub(super) fn hooks(&mut self, file: &HooksFile) -> Hooks {
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

    /// The limits, with their defaults.
    pub(super) fn limits(&mut self, file: &LimitsFile) -> Limits {
        let rate = file.rate.as_ref().and_then(|rate| self.number(rate, 1_000_000));
        let mut limits = Limits { rate, ..Limits::default() };
        if let Some(requests) = file.requests.as_ref().and_then(|text| self.number(text, 1_000_000_000)) {
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
