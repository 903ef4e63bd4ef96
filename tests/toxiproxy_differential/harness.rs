//! The two targets, and the peers on both ends of a proxy.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use idemproof::chaos::{Embedded, Settings};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::ledger;

/// Longest wait for anything that must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A server under test.
pub(crate) struct Target {
    pub(crate) url: String,
    embedded: Option<Embedded>,
    http: reqwest::Client,
    /// Nobody else's proxies are on the server.
    pub(crate) alone: bool,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) request_id: Option<String>,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {}", self.text))
    }

    pub(crate) fn error(&self) -> (u16, String) {
        (self.status, self.json()["error"].as_str().unwrap().to_owned())
    }
}

impl Target {
    pub(crate) async fn embedded() -> Self {
        let embedded = Embedded::start("127.0.0.1:0".parse().unwrap()).await.unwrap();
        Self { url: embedded.url(), embedded: Some(embedded), http: http(), alone: true }
    }

    pub(crate) async fn seeded(seed: u64) -> Self {
        let embedded = Embedded::start_with(Settings { seed: Some(seed), ..Settings::default() }).await.unwrap();
        Self { url: embedded.url(), embedded: Some(embedded), http: http(), alone: true }
    }

    /// One that shows its counters.
    pub(crate) async fn counting() -> Self {
        let embedded = Embedded::start_with(Settings { metrics: true, ..Settings::default() }).await.unwrap();
        Self { url: embedded.url(), embedded: Some(embedded), http: http(), alone: true }
    }

    pub(crate) async fn real(url: String) -> Self {
        let mut target = Self { url, embedded: None, http: http(), alone: false };
        target.alone = target.get("/proxies").await.text == "{}";
        target
    }

    pub(crate) async fn stop(self) {
        self.embedded.unwrap().stop().await;
    }

    pub(crate) fn is_real(&self) -> bool {
        self.embedded.is_none()
    }

    pub(crate) async fn send(&self, verb: &str, path: &str, agent: &str, body: impl Into<reqwest::Body>) -> Answer {
        let verb = verb.parse().unwrap();
        let url = format!("{}{path}", self.url);
        let sent = self.http.request(verb, url).header("User-Agent", agent).body(body).send().await.unwrap();
        let header = |name: &str| sent.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let (status, request_id) = (sent.status().as_u16(), header("X-Toxiproxy-Request-Id"));
        let content_type = header("Content-Type").unwrap_or_default();
        let answer = Answer { status, content_type, request_id, text: sent.text().await.unwrap() };
        let what = || format!("{} {} {}", answer.status, answer.content_type, ledger::plain(&answer.text));
        // A list shows what others have made too, and the extensions are on one side only.
        if path != "/proxies" && path != "/version" && !path.starts_with("/idemproof") {
            ledger::note(what);
        }
        answer
    }

    pub(crate) async fn call(&self, verb: &str, path: &str, body: Value) -> Answer {
        self.send(verb, path, "rows", body.to_string()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "rows", "").await
    }

    pub(crate) async fn delete(&self, path: &str) -> u16 {
        self.send("DELETE", path, "rows", "").await.status
    }

    /// Makes a proxy; gives its path and where it listens.
    pub(crate) async fn proxy(&self, upstream: SocketAddr) -> (String, SocketAddr) {
        let name = name();
        let body = json!({"name": name, "listen": "127.0.0.1:0", "upstream": upstream.to_string()});
        let answer = self.call("POST", "/proxies", body).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        (format!("/proxies/{name}"), answer.json()["listen"].as_str().unwrap().parse().unwrap())
    }

    /// Adds a toxic; gives its path.
    pub(crate) async fn toxic(&self, proxy: &str, stream: &str, kind: &str, attributes: Value) -> String {
        self.toxic_with(proxy, json!({"type": kind, "stream": stream, "attributes": attributes})).await
    }

    pub(crate) async fn toxic_with(&self, proxy: &str, body: Value) -> String {
        let answer = self.call("POST", &format!("{proxy}/toxics"), body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        format!("{proxy}/toxics/{}", answer.json()["name"].as_str().unwrap())
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Value {
        let answer = self.call("POST", path, body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    }

    /// Deletes what rows have left on a server that goes on.
    pub(crate) async fn sweep(&self) {
        for name in self.get("/proxies").await.json().as_object().unwrap().keys() {
            if name.starts_with("row-") {
                self.delete(&format!("/proxies/{name}")).await;
            }
        }
    }
}

fn http() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).timeout(PATIENCE).build().unwrap()
}

/// A name nobody else uses.
pub(crate) fn name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(1000);
    format!("row-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Fin,
    Rst,
}

/// Waits for something that must happen.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("nothing happened for 30 seconds")
}

/// Reads to the end, whatever the end is.
pub(crate) async fn drain(stream: &mut TcpStream) -> (Vec<u8>, Ending) {
    let start = std::time::Instant::now();
    let (all, ending) = drain_quietly(stream).await;
    ledger::note(|| format!("{}, then {ending:?} {}", ledger::bytes(&all), ledger::bucket(start.elapsed())));
    (all, ending)
}

async fn drain_quietly(stream: &mut TcpStream) -> (Vec<u8>, Ending) {
    soon(async {
        let (mut all, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
        loop {
            match stream.read(&mut buffer).await {
                Ok(0) => return (all, Ending::Fin),
                Ok(more) => all.extend_from_slice(&buffer[..more]),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return (all, Ending::Rst),
                Err(error) => panic!("reading: {error}"),
            }
        }
    })
    .await
}

pub(crate) async fn read_n(stream: &mut TcpStream, bytes: usize) -> Vec<u8> {
    let mut buffer = vec![0; bytes];
    soon(stream.read_exact(&mut buffer)).await.unwrap();
    ledger::note(|| ledger::bytes(&buffer));
    buffer
}

pub(crate) async fn exchange(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
    assert_eq!(read_n(stream, text.len()).await, text.as_bytes());
}

/// True when nothing comes for a moment. Used only where nothing ever will, so that a slow machine cannot fail it.
pub(crate) async fn silent(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    tokio::time::timeout(Duration::from_millis(150), stream.read(&mut byte)).await.is_err()
}

pub(crate) async fn dial(addr: SocketAddr) -> TcpStream {
    let stream = soon(TcpStream::connect(addr)).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Whether a port takes connections.
pub(crate) async fn is_open(addr: SocketAddr) -> bool {
    TcpStream::connect(addr).await.is_ok()
}

/// A server that echoes, and stops when dropped.
pub(crate) struct Echo {
    pub(crate) addr: SocketAddr,
    _tasks: JoinSet<()>,
}

pub(crate) async fn echo() -> Echo {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            connections.spawn(async move {
                let (mut reader, mut writer) = stream.split();
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
            });
        }
    });
    Echo { addr, _tasks: tasks }
}

/// A server whose connections the row handles itself.
pub(crate) struct Upstream {
    pub(crate) addr: SocketAddr,
    accepted: mpsc::UnboundedReceiver<TcpStream>,
    _tasks: JoinSet<()>,
}

impl Upstream {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (sender, accepted) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                if sender.send(stream).is_err() {
                    return;
                }
            }
        });
        Self { addr, accepted, _tasks: tasks }
    }

    /// A connection through a proxy: the client's end and the server's.
    pub(crate) async fn pair(&mut self, proxy: SocketAddr) -> (TcpStream, TcpStream) {
        let mut client = dial(proxy).await;
        let mut server = soon(self.accepted.recv()).await.unwrap();
        // Both ways work before the row goes on.
        client.write_all(b"?").await.unwrap();
        assert_eq!(read_n(&mut server, 1).await, b"?");
        server.write_all(b"!").await.unwrap();
        assert_eq!(read_n(&mut client, 1).await, b"!");
        (client, server)
    }

    /// The next connection that came to the server.
    pub(crate) async fn accepted(&mut self) -> TcpStream {
        soon(self.accepted.recv()).await.unwrap()
    }

    /// The same without priming.
    pub(crate) async fn raw_pair(&mut self, proxy: SocketAddr) -> (TcpStream, TcpStream) {
        let client = dial(proxy).await;
        (client, soon(self.accepted.recv()).await.unwrap())
    }
}

/// An address where nobody listens.
pub(crate) async fn closed_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}
