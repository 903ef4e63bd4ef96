//! Opening one connection to a node, perhaps through a proxy.

use std::{net::SocketAddr, sync::Arc};

use rustls::{ClientConfig, client::Resumption, pki_types::ServerName};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, lookup_host},
};
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use super::{
    clock::Clock,
    meter::{Meter, Metered},
    words::said,
};

/// A byte stream both ways.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// One open connection, used for one attempt.
pub(super) struct Line {
    /// Where the plain bytes of HTTP go.
    pub(super) io: Metered<Box<dyn Duplex>>,
    /// Counts the plain bytes.
    pub(super) meter: Meter,
    /// Counts the encrypted bytes, when there is TLS.
    pub(super) below: Option<Meter>,
    /// The address that was reached.
    pub(super) peer: SocketAddr,
}

/// What TLS connections are made with: the platform's trust, HTTP/1.1 only, and no memory of earlier connections.
///
/// # Errors
/// When the platform's trust cannot be loaded.
pub(super) fn tls() -> Result<TlsConnector, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth();
    Ok(tls_from(config))
}

/// As [`tls`], with the trust of `config`.
pub(super) fn tls_from(mut config: ClientConfig) -> TlsConnector {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = Resumption::disabled();
    TlsConnector::from(Arc::new(config))
}

/// The addresses of a node, in the order in which they are tried.
///
/// # Errors
/// When the name does not resolve; the text says so.
pub(super) async fn addresses(node: &Url) -> Result<Vec<SocketAddr>, String> {
    let port = node.port_or_known_default().ok_or("the base URL has no port")?;
    match node.host() {
        Some(Host::Ipv4(ip)) => Ok(vec![(ip, port).into()]),
        Some(Host::Ipv6(ip)) => Ok(vec![(ip, port).into()]),
        Some(Host::Domain(name)) => {
            let found: Vec<_> = lookup_host((name, port))
                .await
                .map_err(|error| format!("`{name}` does not resolve: {error}"))?
                .collect();
            if found.is_empty() { Err(format!("`{name}` has no address")) } else { Ok(found) }
        }
        None => Err("the base URL has no host".to_owned()),
    }
}

/// Opens a connection to the node: to its own addresses in turn, or to `via`, a proxy in front of it.
///
/// # Errors
/// When no connection can be had. No byte of a request has left then; the text says why.
pub(super) async fn open(
    node: &Url,
    via: Option<SocketAddr>,
    tls: Option<&TlsConnector>,
    clock: Clock,
) -> Result<Line, String> {
    let candidates = match via {
        Some(proxy) => vec![proxy],
        None => addresses(node).await?,
    };
    let mut failures = Vec::new();
    let mut reached = None;
    for address in candidates {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                reached = Some((stream, address));
                break;
            }
            Err(error) => failures.push(format!("{address}: {error}")),
        }
    }
    let Some((stream, peer)) = reached else {
        return Err(format!("no connection to {}", failures.join(", ")));
    };
    // Without this the system may hold back the last byte of a burst. A failure only costs time.
    let _ = stream.set_nodelay(true);
    let meter = Meter::new(clock);
    if node.scheme() != "https" {
        let io: Box<dyn Duplex> = Box::new(stream);
        return Ok(Line { io: Metered::new(io, meter.clone()), meter, below: None, peer });
    }
    let connector = tls.ok_or("TLS was not set up")?;
    let below = Meter::new(clock);
    let stream = connector
        .connect(server_name(node)?, Metered::new(stream, below.clone()))
        .await
        .map_err(|error| format!("TLS with {peer} failed: {}", said(&error)))?;
    let io: Box<dyn Duplex> = Box::new(stream);
    Ok(Line { io: Metered::new(io, meter.clone()), meter, below: Some(below), peer })
}

fn server_name(node: &Url) -> Result<ServerName<'static>, String> {
    match node.host() {
        Some(Host::Ipv4(ip)) => Ok(ServerName::from(std::net::IpAddr::from(ip))),
        Some(Host::Ipv6(ip)) => Ok(ServerName::from(std::net::IpAddr::from(ip))),
        Some(Host::Domain(name)) => {
            ServerName::try_from(name.to_owned()).map_err(|_| format!("`{name}` is not a name that TLS can check"))
        }
        None => Err("the base URL has no host".to_owned()),
    }
}
