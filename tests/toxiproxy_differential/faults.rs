//! Every word for a fault, performed: over HTTP/1.1 and inside TLS, with the embedded proxy and with a real one. A fault
//! that hits is witnessed, what the server has done fits, and a fault that misses is not witnessed.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request, Response, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use idemproof::chaos::fault::{
    Ability, ClientEnd, CutAt, Executes, Fault, Protocol, Rig, Seen, Sizes, Unavailable, compile, witness,
};
use idemproof::chaos::{Client, Ending};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::harness::{Target, soon};

const CERTIFICATE: &[u8] = include_bytes!("../../src/drive/tests/localhost.pem");
const KEY: &[u8] = include_bytes!("../../src/drive/tests/localhost.key");
const BODY: &str = "0123456789abcdefghij";

fn head(slow_ms: u64) -> String {
    let length = BODY.len();
    format!(
        "POST /pay HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\nX-Slow: {slow_ms}\r\nContent-Length: {length}\r\n\r\n"
    )
}

/// An API on hyper, which drops a handler whose client has left.
struct Api {
    addr: std::net::SocketAddr,
    committed: Arc<AtomicU64>,
    _tasks: JoinSet<()>,
}

async fn api(tls: bool) -> Api {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let committed = Arc::new(AtomicU64::new(0));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(CERTIFICATE).unwrap()],
            PrivateKeyDer::from_pem_slice(KEY).unwrap(),
        )
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let counter = Arc::clone(&committed);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let (acceptor, counter) = (acceptor.clone(), Arc::clone(&counter));
            connections.spawn(async move {
                let service = service_fn(move |request| handle(request, Arc::clone(&counter)));
                let http = hyper::server::conn::http1::Builder::new();
                // A connection that is cut is what these tests are about.
                if tls {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let _ = http.serve_connection(TokioIo::new(stream), service).await;
                    }
                } else {
                    let _ = http.serve_connection(TokioIo::new(stream), service).await;
                }
            });
        }
    });
    Api { addr, committed, _tasks: tasks }
}

async fn handle(request: Request<Incoming>, committed: Arc<AtomicU64>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let slow = request.headers().get("x-slow").and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(0);
    if request.method() == Method::GET {
        return Ok(Response::new(Full::from("primed")));
    }
    request.into_body().collect().await?;
    tokio::time::sleep(Duration::from_millis(slow)).await;
    committed.fetch_add(1, Ordering::SeqCst);
    // More than one record inside TLS.
    Ok(Response::builder().status(201).body(Full::from(vec![b'p'; 40_000])).unwrap())
}

/// Counts what passes the socket, below any encryption.
struct Counted {
    socket: TcpStream,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    received: AtomicU64,
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(cx, buf))?;
        self.counts.received.fetch_add((buf.filled().len() - before) as u64, Ordering::SeqCst);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.socket).poll_write(cx, bytes))?;
        self.counts.sent.fetch_add(written as u64, Ordering::SeqCst);
        Poll::Ready(Ok(written))
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

async fn connect(addr: std::net::SocketAddr, tls: bool) -> std::io::Result<(Box<dyn Stream>, Arc<Counts>)> {
    let socket = TcpStream::connect(addr).await?;
    socket.set_nodelay(true)?;
    let counts = Arc::new(Counts::default());
    let counted = Counted { socket, counts: Arc::clone(&counts) };
    if !tls {
        return Ok((Box::new(counted), counts));
    }
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(CERTIFICATE).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    // The name of the target is checked, although the proxy is what is dialled.
    let name = ServerName::try_from("localhost").unwrap();
    let stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, counted).await?;
    Ok((Box::new(stream), counts))
}

/// Reads one whole answer; the bytes so far when it does not come.
async fn read_answer(stream: &mut Box<dyn Stream>) -> Result<Vec<u8>, (Vec<u8>, std::io::Error)> {
    let mut answer = Vec::new();
    let mut buffer = vec![0; 8192];
    loop {
        if let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
            let length: usize =
                head.split("content-length: ").nth(1).unwrap().split('\r').next().unwrap().parse().unwrap();
            if answer.len() >= end + 4 + length {
                return Ok(answer);
            }
        }
        match stream.read(&mut buffer).await {
            Ok(0) => return Err((answer, std::io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
            Err(error) => return Err((answer, error)),
        }
    }
}

fn how(error: &std::io::Error) -> Ending {
    let reset = [std::io::ErrorKind::ConnectionReset, std::io::ErrorKind::BrokenPipe];
    if reset.contains(&error.kind()) { Ending::Reset } else { Ending::Close }
}

struct Outcome {
    witnessed: Result<String, String>,
    executes: Executes,
    committed: u64,
}

/// Sends one attempt with the fault.
async fn attempt(t: &Target, fault: Fault, protocol: Protocol, slow: u64) -> Result<Outcome, Unavailable> {
    let tls = protocol.is_encrypted();
    let api = api(tls).await;
    let client = Client::new(&t.url, &format!("faults{}", std::process::id())).unwrap();
    let ability = Ability { extensions: client.has_extensions().await.unwrap(), exact: true, primer: true };
    let (head, patience) = (
        head(slow),
        match fault {
            Fault::MuteResponse | Fault::GiveUpUnnoticed(_) => Duration::from_millis(400),
            _ => Duration::from_secs(20),
        },
    );
    let request = format!("{head}{BODY}");
    // The size of a whole answer, from an exchange that nothing disturbs.
    let (mut direct, counts) = connect(api.addr, tls).await.unwrap();
    direct.write_all(request.as_bytes()).await.unwrap();
    read_answer(&mut direct).await.unwrap();
    let answer = Some(counts.received.load(Ordering::SeqCst));
    api.committed.store(0, Ordering::SeqCst);
    let sizes = Sizes { request_head: head.len() as u64, request: request.len() as u64, answer, patience };
    let recipe = compile(fault, protocol, ability, sizes)?;
    let proxy = client.create_proxy(fault.word(), &api.addr.to_string()).await.unwrap();
    let mut rig = Rig::new(proxy, recipe, ability.extensions);
    rig.before().await.unwrap();
    let mut seen = Seen { sent: 0, whole: 0, received: 0, end: ClientEnd::NotConnected, took: Duration::ZERO };
    if let Ok((mut stream, counts)) = soon(connect(rig.proxy().addr(), tls)).await {
        if rig.recipe().prime {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
            stream.flush().await.unwrap();
            soon(read_answer(&mut stream)).await.unwrap();
        }
        let base = (counts.sent.load(Ordering::SeqCst), counts.received.load(Ordering::SeqCst));
        rig.arm().await.unwrap();
        seen = send(&mut rig, &mut stream, &request, patience, fault).await;
        let sent = counts.sent.load(Ordering::SeqCst) - base.0;
        // Known to be whole only when all of it was written.
        (seen.sent, seen.whole) = (sent, if seen.whole == 0 { sent + 1 } else { sent });
        seen.received = counts.received.load(Ordering::SeqCst) - base.1;
    }
    // A connection that a fault keeps open is looked at as it is.
    let ledger = rig.ledger(Duration::from_millis(400)).await.unwrap();
    let witnessed = witness(rig.recipe(), &seen, ledger.as_ref(), rig.base());
    let executes = rig.recipe().executes;
    // What a handler commits, it has committed soon after its delay.
    if executes != Executes::No {
        tokio::time::sleep(Duration::from_millis(slow + 50)).await;
    }
    rig.delete().await.unwrap();
    assert_eq!(client.cleanup().await.unwrap(), 0);
    Ok(Outcome { witnessed, executes, committed: api.committed.load(Ordering::SeqCst) })
}

/// Writes the request in the parts that the recipe wants and reads the answer. `whole` is 1 when all was written.
async fn send(rig: &mut Rig, stream: &mut Box<dyn Stream>, request: &str, patience: Duration, fault: Fault) -> Seen {
    let mut seen = Seen { sent: 0, whole: 0, received: 0, end: ClientEnd::GaveUp, took: Duration::ZERO };
    let (first, rest) = request.split_at(rig.recipe().split.map_or(request.len(), |at| at as usize));
    let start = Instant::now();
    let mut written = stream.write_all(first.as_bytes()).await;
    if rig.recipe().split.is_some() {
        stream.flush().await.unwrap();
        // The part must be through before the cut is armed.
        tokio::time::sleep(Duration::from_millis(100)).await;
        rig.at_split().await.unwrap();
        written = stream.write_all(rest.as_bytes()).await;
    }
    let flushed = stream.flush().await;
    seen.whole = u64::from(written.is_ok() && flushed.is_ok() && rig.recipe().split.is_none());
    let after = async {
        rig.after().await.unwrap();
        if fault == Fault::Hold {
            tokio::time::sleep(Duration::from_millis(100)).await;
            rig.release().await.unwrap();
        }
        std::future::pending::<()>().await
    };
    let read = async {
        match read_answer(stream).await {
            Ok(_) => {
                // Whether the connection stands after the answer.
                let more = tokio::time::timeout(Duration::from_millis(100), stream.read(&mut [0])).await;
                match more {
                    Err(_) => ClientEnd::Answered,
                    Ok(Ok(_)) => ClientEnd::AnsweredThen(Ending::Close),
                    Ok(Err(error)) => ClientEnd::AnsweredThen(how(&error)),
                }
            }
            Err((_, error)) => ClientEnd::Lost(how(&error)),
        }
    };
    let read = tokio::time::timeout(patience, read);
    seen.end = tokio::select! {
        () = after => unreachable!(),
        end = read => end.unwrap_or(ClientEnd::GaveUp),
    };
    seen.took = start.elapsed();
    seen
}

fn all() -> Vec<Fault> {
    let mut all: Vec<Fault> = Fault::WORDS.iter().map(|word| Fault::from_word(word).unwrap()).collect();
    all.extend(Fault::WORDS.iter().map(|word| Fault::from_word(word).unwrap().ending(Ending::Reset)));
    for after in [CutAt::Body(10), CutAt::BeforeEnd(5), CutAt::End] {
        all.push(Fault::CutResponse { after, ending: Ending::Close });
    }
    all.push(Fault::CutBody { after: 7, ending: Ending::Close });
    all.push(Fault::DelayResponse(Duration::from_millis(150)));
    all.push(Fault::SlowRequest(1));
    all.push(Fault::ResendByGateway { second: false });
    all.sort_by_key(|fault| format!("{fault:?}"));
    all.dedup();
    all
}

/// Every fault over every protocol that is spoken here; gives how many could be made.
async fn every_fault_is_witnessed(t: &Target) -> usize {
    let (mut made, mut wrong) = (0, Vec::new());
    for protocol in [Protocol::Http1, Protocol::Tls] {
        for fault in all() {
            let slow = if matches!(fault, Fault::CutWhileHandling { .. }) { 300 } else { 0 };
            let Ok(outcome) = attempt(t, fault, protocol, slow).await else { continue };
            made += 1;
            let what = format!("{fault:?} over {protocol:?}");
            let twice = matches!(fault, Fault::ResendByGateway { .. });
            let fits = match outcome.executes {
                Executes::No => outcome.committed == 0,
                Executes::Yes => (1..=1 + u64::from(twice)).contains(&outcome.committed),
                Executes::Maybe => outcome.committed <= 1,
            };
            if outcome.witnessed.is_err() || !fits {
                wrong.push(format!("{what}: {:?}, executed {}", outcome.witnessed, outcome.committed));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    made
}

pub(crate) async fn faults_hit_and_are_witnessed(t: &Target) {
    let made = every_fault_is_witnessed(t).await;
    assert!(made >= if t.is_real() { 25 } else { 45 }, "only {made} faults could be made");
}

pub(crate) async fn faults_that_miss_are_not_witnessed(t: &Target) {
    // The server is done before the cut.
    let late = Fault::CutWhileHandling { after: Duration::from_secs(1), ending: Ending::Close };
    for protocol in [Protocol::Http1, Protocol::Tls] {
        let missed = attempt(t, late, protocol, 0).await.unwrap().witnessed;
        assert!(missed.is_err(), "{protocol:?}: {missed:?}");
    }
}
