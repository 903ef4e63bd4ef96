//! A target file, resolved: nothing left to look up, nothing left to default.

use std::collections::BTreeMap;

use http::{HeaderName, Method};
use serde_json_path::JsonPath;
use url::Url;

use super::{Policy, StatusSet};
use crate::text::{JsonTemplate, Redactor, Span, Template};

/// An API under test.
#[derive(Debug, Clone)]
pub struct Target {
    /// The name of the target file's `target` line.
    pub name: String,
    /// The profile that the policy started from.
    pub profile: String,
    /// The base URLs, at least one. `http` or `https`, without query or fragment.
    pub nodes: Vec<Url>,
    /// The callers, at least one; the first is the default one.
    pub tenants: Vec<Tenant>,
    /// The keyed operations, at least one.
    pub operations: Vec<Operation>,
    /// What a tester may make the target do.
    pub hooks: Hooks,
    /// How politely the target is treated.
    pub limits: Limits,
    /// Knows every secret of the target file.
    pub redactor: Redactor,
}

/// A caller with its own credentials.
#[derive(Debug, Clone)]
pub struct Tenant {
    /// Its name in suites.
    pub name: String,
    /// Header fields sent with each of its requests.
    pub headers: Vec<HeaderTemplate>,
}

/// One header field of a request.
#[derive(Debug, Clone)]
pub struct HeaderTemplate {
    /// The field name.
    pub name: HeaderName,
    /// The field value.
    pub value: Template,
}

/// One keyed endpoint.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Its name in suites and reports.
    pub name: String,
    /// The request method.
    pub method: Method,
    /// Path and query, starting with `/`; appended to the base URL.
    pub path: Template,
    /// The base payload.
    pub json: Option<JsonTemplate>,
    /// Header fields of every request of the operation.
    pub headers: Vec<HeaderTemplate>,
    /// Named changes to the base payload (JSON merge patches, RFC 7396).
    pub variants: BTreeMap<String, JsonTemplate>,
    /// The statuses of success.
    pub success: StatusSet,
    /// Where a success names what it made: selects the value that tells two executions apart.
    pub identity: JsonPath,
    /// How its effects are counted.
    pub effects: Option<EffectProbe>,
    /// What it documents about its keys.
    pub policy: Policy,
}

/// A request that shows how often an operation has taken effect.
#[derive(Debug, Clone)]
pub struct EffectProbe {
    /// Path and query of a GET.
    pub get: Template,
    /// Selects one node per effect.
    pub count: JsonPath,
    /// Selects the identity of each effect.
    pub id: Option<JsonPath>,
    /// How long the count must stay still before it is believed.
    pub quiet: Span,
}

/// What a tester may make the target do. `None` means it cannot.
#[derive(Debug, Clone, Default)]
pub struct Hooks {
    /// Makes the handler slow; knows `${ms}`.
    pub slow: Option<Hook>,
    /// Makes the handler fail; knows `${point}` (`before`, `after`, `throw-before`, `throw-after`) and `${times}`.
    pub fail: Option<Hook>,
    /// Makes the worker that serves the request die; knows `${point}` (`before`, `after`) and `${times}`.
    pub die: Option<Hook>,
    /// Moves the target's clock forward; knows `${seconds}`.
    pub advance_clock: Option<Hook>,
}

/// A way to make the target do something.
#[derive(Debug, Clone)]
pub enum Hook {
    /// Header fields added to the request it concerns.
    Headers(Vec<HeaderTemplate>),
    /// A request of its own.
    Request {
        /// The method.
        method: Method,
        /// Path and query.
        path: Template,
        /// The payload.
        json: Option<JsonTemplate>,
    },
}

/// How politely the target is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// No more requests per second than this, bursts excepted. `None` means no limit.
    pub rate: Option<u32>,
    /// No more requests in a run than this.
    pub requests: u32,
    /// How long one attempt may take.
    pub timeout: Span,
    /// How many attempts may be in flight together.
    pub concurrency: u16,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rate: None, requests: 100_000, timeout: Span::from_secs(10), concurrency: 64 }
    }
}

impl Target {
    /// The caller that sends when a suite names none.
    pub fn default_tenant(&self) -> &Tenant {
        &self.tenants[0]
    }

    /// The tenant of this name.
    pub fn tenant(&self, name: &str) -> Option<&Tenant> {
        self.tenants.iter().find(|tenant| tenant.name == name)
    }

    /// The operation of this name.
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.name == name)
    }

    /// Whether every node is on this machine's loopback interface.
    pub fn is_loopback(&self) -> bool {
        self.nodes.iter().all(|node| match node.host() {
            Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
            Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
            Some(url::Host::Domain(name)) => name == "localhost",
            None => false,
        })
    }
}
