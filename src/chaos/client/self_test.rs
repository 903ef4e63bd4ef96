//! Which guarantees of a Toxiproxy hold, found out by using it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{ChaosError, Client, Proxy, Version};
use crate::chaos::fault::Ability;
use crate::chaos::{Stream, Toxic};

/// Longest wait for one thing that should happen at once.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether one guarantee holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// It does.
    Holds,
    /// It does not; what happened instead.
    Fails(String),
}

impl Check {
    /// Whether it holds.
    pub fn holds(&self) -> bool {
        matches!(self, Self::Holds)
    }

    fn expect(expected: Ending, seen: io::Result<Ending>) -> Self {
        match seen {
            Ok(seen) if seen == expected => Self::Holds,
            Ok(seen) => Self::Fails(format!("{seen}, instead of {expected}")),
            Err(error) => Self::Fails(error.to_string()),
        }
    }
}

/// What the self-test found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelfTest {
    /// The server.
    pub version: Version,
    /// Bytes go through and come back.
    pub echo: Check,
    /// `limit_data 0`, armed on an open connection, lets no byte through and closes.
    pub limit_zero: Check,
    /// `limit_data n`, armed on an open connection, lets exactly `n` bytes through and closes.
    pub limit_exact: Check,
    /// A sleeping `reset_peer` turns every ending of a connection into a reset.
    pub primer_resets: Check,
}

impl SelfTest {
    /// Whether everything holds.
    pub fn all_hold(&self) -> bool {
        self.checks().iter().all(|(_, check)| check.holds())
    }

    /// Every guarantee in words, and whether it holds.
    pub fn checks(&self) -> [(&'static str, &Check); 4] {
        [
            ("bytes go through and come back", &self.echo),
            ("limit_data 0 lets no byte through", &self.limit_zero),
            ("limit_data cuts at the exact byte", &self.limit_exact),
            ("a sleeping reset_peer makes every ending a reset", &self.primer_resets),
        ]
    }

    /// What faults can be made of, given whether the server has extensions (see [`Client::has_extensions`]).
    pub fn ability(&self, extensions: bool) -> Ability {
        let exact = self.limit_zero.holds() && self.limit_exact.holds();
        Ability { extensions, exact, primer: self.primer_resets.holds() }
    }
}

impl std::fmt::Display for SelfTest {
    /// One line for people: the version and what does not hold.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Toxiproxy {}: ", self.version)?;
        let failing: Vec<String> = self
            .checks()
            .iter()
            .filter_map(|(what, check)| match check {
                Check::Holds => None,
                Check::Fails(why) => Some(format!("it does not hold that {what}: {why}")),
            })
            .collect();
        if failing.is_empty() { f.write_str("all guarantees hold") } else { f.write_str(&failing.join("; ")) }
    }
}

/// How a connection ended for its client.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    Closed(usize),
    Reset,
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed(bytes) => write!(f, "closed after {bytes} bytes"),
            Self::Reset => f.write_str("reset"),
        }
    }
}

impl Client {
    /// Tries the server out: an echo through a proxy, byte-exact cuts, resets. Its proxies are removed afterwards.
    ///
    /// # Errors
    /// When a call to the API fails. A guarantee that does not hold is not an error.
    pub async fn self_test(&self) -> Result<SelfTest, ChaosError> {
        let version = self.version().await?;
        let own_host = self.shared.settings.own_host;
        let echo =
            Echo::start(own_host).await.map_err(|source| ChaosError::Bind { host: own_host.to_string(), source })?;
        let proxy = self.create_proxy("self-test", &echo.addr.to_string()).await?;
        let tested = try_out(&proxy, version).await;
        let deleted = proxy.delete().await;
        let tested = tested?;
        deleted.map(|()| tested)
    }
}

async fn try_out(proxy: &Proxy, version: Version) -> Result<SelfTest, ChaosError> {
    let echo = match primed(proxy).await {
        Ok(_) => Check::Holds,
        Err(error) => Check::Fails(error.to_string()),
    };
    let limit_zero = limit(proxy, 0).await?;
    let limit_exact = limit(proxy, 4).await?;
    let _primer = proxy.add_asleep(Stream::Upstream, Toxic::ResetPeer { timeout_ms: 0 }).await?;
    let connection = primed(proxy).await;
    proxy.set_enabled(false).await?;
    let primer_resets = match connection {
        Ok(mut connection) => Check::expect(Ending::Reset, ending(&mut connection).await),
        Err(error) => Check::Fails(error.to_string()),
    };
    Ok(SelfTest { version, echo, limit_zero, limit_exact, primer_resets })
}

async fn limit(proxy: &Proxy, bytes: u8) -> Result<Check, ChaosError> {
    let connection = primed(proxy).await;
    let toxic = proxy.add(Stream::Downstream, Toxic::LimitData { bytes: bytes.into() }).await?;
    let seen = async {
        let mut connection = connection?;
        connection.write_all(b"12345678").await?;
        ending(&mut connection).await
    };
    let seen = seen.await;
    toxic.remove().await?;
    Ok(Check::expect(Ending::Closed(bytes.into()), seen))
}

/// A connection on which one exchange has worked.
async fn primed(proxy: &Proxy) -> io::Result<TcpStream> {
    let exchange = async {
        let mut connection = TcpStream::connect(proxy.addr()).await?;
        connection.write_all(b"hello").await?;
        let mut answer = [0; 5];
        connection.read_exact(&mut answer).await?;
        if &answer != b"hello" {
            return Err(io::Error::other("other bytes came back than were sent"));
        }
        Ok(connection)
    };
    in_time(exchange).await
}

async fn ending(connection: &mut TcpStream) -> io::Result<Ending> {
    let mut bytes = 0;
    let mut buffer = [0; 64];
    in_time(async {
        loop {
            match connection.read(&mut buffer).await {
                Ok(0) => return Ok(Ending::Closed(bytes)),
                Ok(more) => bytes += more,
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(Ending::Reset),
                Err(error) => return Err(error),
            }
        }
    })
    .await
}

async fn in_time<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let silent =
        || io::Error::new(io::ErrorKind::TimedOut, format!("nothing happened for {} seconds", PATIENCE.as_secs()));
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| Err(silent()))
}

/// A server that sends back what it gets. It ends when dropped.
struct Echo {
    addr: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Echo {
    async fn start(own_host: IpAddr) -> io::Result<Self> {
        // An address that others reach us at need not be one of our own.
        let any = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        let listener = TcpListener::bind((if own_host.is_loopback() { own_host } else { any }, 0)).await?;
        let addr = SocketAddr::new(own_host, listener.local_addr()?.port());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut connection, _)) = listener.accept().await {
                connections.spawn(async move {
                    let (mut reader, mut writer) = connection.split();
                    // The end of a cut connection is what the test is about.
                    let _ = tokio::io::copy(&mut reader, &mut writer).await;
                });
            }
        });
        Ok(Self { addr, _tasks: tasks })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_does_not_hold_is_said_and_not_relied_on() {
        let version = Version::find("{\"version\": \"2.12.0\"}").unwrap();
        let (holds, fails) = (Check::Holds, Check::Fails("closed after 5 bytes, instead of 4".to_owned()));
        let all = SelfTest {
            version,
            echo: holds.clone(),
            limit_zero: holds.clone(),
            limit_exact: holds.clone(),
            primer_resets: holds,
        };
        assert_eq!(all.to_string(), "Toxiproxy 2.12.0: all guarantees hold");
        assert!(all.ability(false).exact && all.ability(false).primer && !all.ability(false).extensions);
        let weak = SelfTest { limit_exact: fails, ..all };
        assert!(!weak.all_hold() && !weak.ability(true).exact && weak.ability(true).primer);
        assert!(weak.to_string().ends_with("cuts at the exact byte: closed after 5 bytes, instead of 4"), "{weak}");
    }
}
