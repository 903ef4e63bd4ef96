//! Rendering one HTTP request.

use std::collections::HashSet;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use url::Url;

use super::{
    exchange::image,
    payload::{Gate, Payload},
    raw::Script,
    words::said,
};
use crate::{
    target::HeaderTemplate,
    text::{Template, Vars},
};

/// The header field that names the run.
const RUN: HeaderName = HeaderName::from_static("x-idemproof-run");
/// Fields that the HTTP library writes by itself.
const FRAMING: [HeaderName; 3] = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION];

/// Where the start of the gated part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GateAt {
    /// Before the last byte of the body.
    LastByte,
    /// Before this byte of the body.
    Byte(usize),
}

/// A request, rendered and ready to be sent as often as wanted.
#[derive(Debug, Clone)]
pub(super) struct Call {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    /// The body.
    pub(super) payload: Bytes,
    /// The length of the head on the wire, in bytes.
    pub(super) head: u64,
    /// The exact bytes, for an attempt that no HTTP library writes.
    pub(super) script: Option<Script>,
}

/// Gathers what a request is made of.
pub(super) struct Draft<'a> {
    /// The base URL.
    pub(super) node: &'a Url,
    /// The method.
    pub(super) method: &'a Method,
    /// Path and query.
    pub(super) path: &'a Template,
    /// The templates' values.
    pub(super) vars: &'a Vars,
    /// The values of the fields that every request of the run carries.
    pub(super) marks: &'a Marks,
    /// The target's header fields, from the most general to the most special; a later list replaces fields of an
    /// earlier one.
    pub(super) fields: Vec<&'a [HeaderTemplate]>,
    /// Header fields that replace all others: of the hooks, and the key.
    pub(super) exact: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub(super) payload: Option<Vec<u8>>,
}

/// The header fields by which a target's owner recognises a run.
#[derive(Debug, Clone)]
pub(super) struct Marks {
    agent: HeaderValue,
    run: HeaderValue,
}

impl Marks {
    /// The marks of a run; `None` if its id cannot stand in a header field.
    pub(super) fn of(run: &str) -> Option<Self> {
        let agent = format!("idemproof/{} (run {run})", env!("CARGO_PKG_VERSION"));
        Some(Self { agent: HeaderValue::from_str(&agent).ok()?, run: HeaderValue::from_str(run).ok()? })
    }
}

impl Draft<'_> {
    /// Renders the request.
    ///
    /// # Errors
    /// When a template has no value, or a rendered text cannot stand where it belongs; the text says which.
    pub(super) async fn render(self) -> Result<Call, String> {
        let path = self.path.render_with(self.vars, &encoded).map_err(|error| error.to_string())?;
        let whole = format!("{}{path}", self.node.path().trim_end_matches('/'));
        let uri: Uri = whole.parse().map_err(|error| format!("`{whole}` is not a path: {error}"))?;
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host(self.node)?);
        if self.payload.is_some() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for layer in self.fields {
            let mut seen = HashSet::new();
            for HeaderTemplate { name, value } in layer {
                let text = value.render(self.vars).map_err(|error| format!("header field `{name}`: {error}"))?;
                let value = HeaderValue::from_bytes(text.as_bytes())
                    .map_err(|_| format!("the value of header field `{name}` has bytes that HTTP forbids"))?;
                if seen.insert(name) {
                    headers.insert(name, value);
                } else {
                    headers.append(name, value);
                }
            }
        }
        for (name, value) in self.exact {
            headers.insert(name, value);
        }
        if let Some(name) = FRAMING.iter().find(|name| headers.contains_key(*name)) {
            return Err(format!("the header field `{name}` is written by the HTTP library: remove it from the target"));
        }
        headers.insert(header::USER_AGENT, self.marks.agent.clone());
        headers.insert(RUN, self.marks.run.clone());
        let payload = Bytes::from(self.payload.unwrap_or_default());
        if payload.is_empty() && [Method::POST, Method::PUT, Method::PATCH].contains(self.method) {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let mut call = Call { method: self.method.clone(), uri, headers, payload, head: 0, script: None };
        let (bytes, head) = image(call.request(None), call.payload.len()).await?;
        debug_assert_eq!(bytes.len(), head + call.payload.len(), "the body is sent as it is");
        call.head = head as u64;
        Ok(call)
    }
}

impl Call {
    /// How many bytes it has on the wire.
    pub(super) fn total(&self) -> u64 {
        self.head + self.payload.len() as u64
    }

    /// How many bytes leave before the gate.
    pub(super) fn before(&self, at: GateAt) -> u64 {
        self.head + self.split(at) as u64
    }

    fn split(&self, at: GateAt) -> usize {
        match at {
            GateAt::LastByte => self.payload.len().saturating_sub(1),
            GateAt::Byte(byte) => byte.min(self.payload.len()),
        }
    }

    /// The request for the HTTP library.
    pub(super) fn request(&self, gate: Option<(GateAt, Gate)>) -> Request<Payload> {
        let body = match gate {
            Some((at, gate)) => Payload::gated(&self.payload, self.split(at), gate),
            None => Payload::plain(self.payload.clone()),
        };
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }

    /// `POST /path`.
    pub(super) fn line(&self) -> String {
        format!("{} {}", self.method, self.uri)
    }
}

fn host(node: &Url) -> Result<HeaderValue, String> {
    let name = node.host_str().ok_or("the base URL has no host")?;
    let text = node.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
    HeaderValue::from_str(&text).map_err(|error| said(&error))
}

/// A value as it may stand anywhere in a path or query (RFC 3986 section 2.1).
fn encoded(value: String) -> String {
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if value.bytes().all(unreserved) {
        return value;
    }
    value
        .bytes()
        .map(|byte| if unreserved(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::text::Var;

    async fn render(path: &str, exact: Vec<(HeaderName, HeaderValue)>, payload: Option<&[u8]>) -> Result<Call, String> {
        let vars = Vars::from([("reference".to_owned(), Var::Text("a b&c".to_owned()))]);
        Draft {
            node: &Url::parse("http://127.0.0.1:8080/api/").unwrap(),
            method: &Method::POST,
            path: &Template::parse(path).unwrap(),
            vars: &vars,
            marks: &Marks::of("r1").unwrap(),
            fields: vec![],
            exact,
            payload: payload.map(<[u8]>::to_vec),
        }
        .render()
        .await
    }

    #[tokio::test]
    async fn the_head_is_measured_and_values_are_encoded() {
        let call = render("/p?x=${reference}", vec![], Some(b"{}")).await.unwrap();
        let (bytes, head) = image(call.request(None), 2).await.unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("POST /api/p?x=a%20b%26c HTTP/1.1\r\nhost: 127.0.0.1:8080\r\n"), "{text}");
        assert!(text.contains("\r\nx-idemproof-run: r1\r\n") && text.contains("content-length: 2\r\n"), "{text}");
        assert!(text.ends_with("\r\n\r\n{}"), "{text}");
        assert_eq!((call.head, call.total()), (head as u64, text.len() as u64));
    }

    #[tokio::test]
    async fn a_large_head_is_measured_too() {
        let big = HeaderValue::from_str(&"x".repeat(100_000)).unwrap();
        let call = render("/p", vec![(HeaderName::from_static("x-big"), big)], None).await.unwrap();
        assert!(call.head > 100_000);
    }

    #[tokio::test]
    async fn refuses_what_cannot_be_sent() {
        assert!(render("/a b", vec![], None).await.unwrap_err().contains("/a b"));
        let framing = vec![(header::CONTENT_LENGTH, HeaderValue::from_static("7"))];
        assert!(render("/p", framing, None).await.unwrap_err().contains("content-length"));
        assert!(Marks::of("a\nb").is_none());
    }
}
