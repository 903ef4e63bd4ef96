//! One call: bounded in time and size, no redirects, no environment proxies, no retries, checked answers.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use url::Url;

use super::ChaosError;

/// Longest wait for a complete answer.
pub(super) const LIMIT: Duration = Duration::from_secs(5);
/// Largest answer.
const MAX_ANSWER: usize = 1024 * 1024;
/// Longest piece of a server's text in an error.
const MAX_TEXT: usize = 300;

/// The API of one Toxiproxy.
#[derive(Clone, Debug)]
pub(super) struct Api {
    http: reqwest::Client,
    base: Url,
    limit: Duration,
}

impl Api {
    pub(super) fn new(given: &str) -> Result<Self, ChaosError> {
        let bad = |why: &str| ChaosError::BadUrl { given: given.to_owned(), why: why.to_owned() };
        let trimmed = given.trim();
        let text = if trimmed.contains("://") { trimmed.to_owned() } else { format!("http://{trimmed}") };
        let mut base = Url::parse(&text).map_err(|error| bad(&error.to_string()))?;
        match base.scheme() {
            "http" => {}
            "https" => return Err(bad("Toxiproxy serves its API over plain http")),
            _ => return Err(bad("the scheme must be http")),
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(bad("Toxiproxy knows no users and passwords"));
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(bad("it must end after the port"));
        }
        let path = base.path().trim_end_matches('/').to_owned();
        base.set_path(&path);
        Ok(Self { http: http_client()?, base, limit: LIMIT })
    }

    /// Shortens the wait, for tests of servers that never answer.
    #[cfg(test)]
    pub(super) fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// The host of the API.
    pub(super) fn host(&self) -> String {
        self.base.host_str().unwrap_or_default().to_owned()
    }

    /// Sends a call and reads an answer of JSON.
    pub(super) async fn json(&self, verb: Method, path: &str, body: Option<&Value>) -> Result<Value, ChaosError> {
        let call = format!("{verb} {path}");
        let answer = self.call(verb, path, body).await?;
        let nonsense =
            |error| ChaosError::Nonsense { call, why: format!("it is not JSON ({error}): {}", short(&answer)) };
        serde_json::from_str(&answer).map_err(nonsense)
    }

    /// Sends a call without a body and reads an answer of any text.
    pub(super) async fn text(&self, verb: Method, path: &str) -> Result<String, ChaosError> {
        self.call(verb, path, None).await
    }

    /// Sends a call and reads an answer of any text.
    pub(super) async fn call(&self, verb: Method, path: &str, body: Option<&Value>) -> Result<String, ChaosError> {
        let call = format!("{verb} {path}");
        let url = format!("{}{path}", self.base.as_str().trim_end_matches('/'));
        let mut request = self.http.request(verb, url).timeout(self.limit);
        if let Some(body) = body {
            request = request.json(body);
        }
        let failed = |error: reqwest::Error| {
            if error.is_timeout() {
                return ChaosError::TimedOut { call: call.clone(), limit: self.limit };
            }
            let url = self.base.as_str().trim_end_matches('/').to_owned();
            ChaosError::Unreachable { url, call: call.clone(), why: innermost(&error) }
        };
        let mut response = request.send().await.map_err(failed)?;
        let status = response.status();
        let mut bytes = Vec::new();
        while let Some(part) = response.chunk().await.map_err(failed)? {
            if bytes.len() + part.len() > MAX_ANSWER {
                return Err(ChaosError::Nonsense { call, why: format!("it is longer than {MAX_ANSWER} bytes") });
            }
            bytes.extend_from_slice(&part);
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if matches!(status, StatusCode::OK | StatusCode::CREATED | StatusCode::NO_CONTENT) {
            return Ok(text);
        }
        let reason = serde_json::from_str::<Value>(&text).ok();
        let reason = reason.as_ref().and_then(|answer| answer.get("error")?.as_str()).unwrap_or(&text);
        Err(ChaosError::Refused { call, status: status.as_u16(), text: short(reason) })
    }
}

fn http_client() -> Result<reqwest::Client, ChaosError> {
    let setup = |why: String| ChaosError::Setup { why };
    // The API is plain HTTP: an empty trust store spares loading that of the system, which may be missing.
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| setup(error.to_string()))?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(concat!("idemproof/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .http1_only()
        // A connection per call: no idle one that the server may just be closing.
        .pool_max_idle_per_host(0)
        .build()
        .map_err(|error| setup(innermost(&error)))
}

/// The cause at the bottom, which names the thing; the layers above only say "error sending request".
fn innermost(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

fn short(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() {
        return "(no text)".to_owned();
    }
    let shown: String = text.chars().take(MAX_TEXT).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if shown.len() < text.len() { format!("{shown}...") } else { shown }
}

/// Checks that a member of the answer is what was asked for. Numbers are compared as numbers.
pub(super) fn same(call: &str, field: &str, asked: &Value, answer: &Value) -> Result<(), ChaosError> {
    let got = answer.get(field).unwrap_or(&Value::Null);
    let equal = match (asked, got) {
        (Value::Number(asked), Value::Number(got)) => asked.as_f64() == got.as_f64(),
        _ => asked == got,
    };
    if equal {
        return Ok(());
    }
    Err(ChaosError::Differs {
        call: call.to_owned(),
        field: field.to_owned(),
        asked: asked.to_string(),
        got: short(&got.to_string()),
    })
}

/// The body of a toxic as it is sent.
pub(super) fn toxic_body(name: &str, stream: crate::chaos::Stream, toxic: &crate::chaos::Toxic, toxicity: u8) -> Value {
    json!({
        "name": name,
        "type": toxic.type_name(),
        "stream": stream.as_str(),
        "toxicity": toxicity,
        "attributes": toxic.attributes(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn addresses_are_accepted_with_and_without_scheme() {
        for given in
            ["127.0.0.1:8474", "http://127.0.0.1:8474", "http://localhost:8474/", " [::1]:8474 ", "toxiproxy:8474"]
        {
            assert!(Api::new(given).is_ok(), "{given}");
        }
        for given in ["", "https://x:1", "ftp://x", "http://", "http://u:p@x", "x:99999", "http://x/?a", "a b"] {
            assert!(matches!(Api::new(given), Err(ChaosError::BadUrl { .. })), "{given}");
        }
    }

    #[test]
    fn texts_of_servers_are_shortened_and_made_harmless() {
        assert_eq!(short("a\nb"), "a b");
        assert_eq!(short(" "), "(no text)");
        assert_eq!(short(&"ü".repeat(1000)).chars().count(), MAX_TEXT + 3);
    }

    #[test]
    fn a_float_equals_the_same_whole_number() {
        assert!(same("c", "toxicity", &json!(1), &json!({"toxicity": 1.0})).is_ok());
        assert!(same("c", "toxicity", &json!(1), &json!({})).is_err());
    }
}
