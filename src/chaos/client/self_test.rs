//! Which guarantees of a Toxiproxy hold, found out by using it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{ChaosError, Client, Proxy, Version};
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
        [&self.echo, &self.limit_zero, &self.limit_exact, &self.primer_resets].into_iter().all(Check::holds)
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
