//! Listen addresses: what a text resolves to, and binding it. Error texts are those of Go's `net` package, because
//! clients of Toxiproxy look at them.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpListener;

/// Longest wait for the name service.
const LOOKUP: Duration = Duration::from_secs(2);

/// A listen address after name resolution.
#[derive(Debug)]
pub(super) struct Resolved {
    ip: Option<IpAddr>,
    port: u16,
}

impl Resolved {
    /// Resolves `host:port`. An empty host means every address; an empty text also port 0.
    pub(super) async fn from_text(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self { ip: None, port: 0 });
        }
        let missing = || format!("address {text}: missing port in address");
        let (host, port) = text.rsplit_once(':').ok_or_else(missing)?;
        let host = match host.strip_prefix('[') {
            Some(inner) => inner.strip_suffix(']').ok_or_else(missing)?,
            None if host.contains(':') => return Err(format!("address {text}: too many colons in address")),
            None => host,
        };
        let port =
            if port.is_empty() { 0 } else { port.parse().map_err(|_| format!("address {port}: invalid port"))? };
        if host.is_empty() {
            return Ok(Self { ip: None, port });
        }
        if let Ok(ip) = host.parse() {
            return Ok(Self { ip: Some(ip), port });
        }
        let unknown = || format!("lookup {host}: no such host");
        let found = tokio::time::timeout(LOOKUP, tokio::net::lookup_host((host, port))).await;
        let found: Vec<SocketAddr> = found.ok().and_then(Result::ok).ok_or_else(unknown)?.collect();
        // Go prefers IPv4 for names.
        let chosen = found.iter().find(|found| found.is_ipv4()).or(found.first()).ok_or_else(unknown)?;
        Ok(Self { ip: Some(chosen.ip()), port })
    }

    /// The resolved address as Go writes it.
    pub(super) fn text(&self) -> String {
        self.ip.map_or_else(|| format!(":{}", self.port), |ip| SocketAddr::new(ip, self.port).to_string())
    }

    /// Binds a listener.
    pub(super) async fn bind(&self) -> Result<TcpListener, String> {
        let ip = self.ip.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
        let bound = match TcpListener::bind((ip, self.port)).await {
            // Every address, on a machine without IPv6.
            Err(error) if self.ip.is_none() && error.kind() != io::ErrorKind::AddrInUse => {
                TcpListener::bind(("0.0.0.0", self.port)).await
            }
            bound => bound,
        };
        bound.map_err(|error| format!("listen tcp {}: bind: {}", self.text(), reason(&error)))
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "address already in use".to_owned(),
        io::ErrorKind::AddrNotAvailable => "cannot assign requested address".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn texts_resolve_as_in_go() {
        for (given, text) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("", ":0"),
            (":80", ":80"),
            ("[::1]:80", "[::1]:80"),
            ("localhost:7", "127.0.0.1:7"),
        ] {
            assert_eq!(Resolved::from_text(given).await.unwrap().text(), text);
        }
        let error = |given: &'static str| async move { Resolved::from_text(given).await.unwrap_err() };
        assert_eq!(error("nonsense").await, "address nonsense: missing port in address");
        assert_eq!(error("127.0.0.1:99999").await, "address 99999: invalid port");
        assert_eq!(error("::1:80").await, "address ::1:80: too many colons in address");
    }
}
