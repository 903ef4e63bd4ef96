//! Raw servers that record every byte, and targets and schedules by hand.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{HeaderName, Method};
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    task::{JoinHandle, JoinSet},
};
use url::Url;

use crate::{
    drive::{Driver, Interrupt, Options},
    history::History,
    schedule::{AttemptPlan, CaseId, Encoding, Extra, PlannedKey, Schedule, Step, TimeMove},
    suite::Place,
    target::{EffectProbe, HeaderTemplate, Hooks, Limits, Operation, Policy, StatusSet, Target, Tenant},
    text::{JsonTemplate, Redactor, Span, Template},
};

pub(in crate::drive) type Work = Pin<Box<dyn Future<Output = ()> + Send>>;
/// What a server does with a connection. It must note every byte that it reads.
pub(in crate::drive) type Handler = Arc<dyn Fn(Client) -> Work + Send + Sync>;

/// The server's side of one connection.
pub(in crate::drive) struct Client {
    pub(in crate::drive) stream: TcpStream,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Client {
    /// Reads until one whole request is there (or the end), and returns it.
    pub(in crate::drive) async fn request(&mut self) -> io::Result<Vec<u8>> {
        let bytes = Arc::clone(&self.bytes);
        let request = read_request(&mut self.stream).await?;
        bytes.lock().unwrap().extend_from_slice(&request);
        Ok(request)
    }

    /// Reads exactly so many bytes.
    pub(in crate::drive) async fn exactly(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; count];
        self.stream.read_exact(&mut buffer).await?;
        self.bytes.lock().unwrap().extend_from_slice(&buffer);
        Ok(buffer)
    }

    /// Reads on until the client ends the connection.
    pub(in crate::drive) async fn drain(&mut self) {
        let mut rest = Vec::new();
        // A reset ends the connection as well.
        let _ = self.stream.read_to_end(&mut rest).await;
        self.bytes.lock().unwrap().extend_from_slice(&rest);
    }

    /// Resets the connection.
    pub(in crate::drive) fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }
}

/// Reads one request with a `content-length` or without a body.
pub(in crate::drive) async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let head = loop {
        if bytes.ends_with(b"\r\n\r\n") {
            break String::from_utf8(bytes.clone()).unwrap();
        }
        bytes.push(stream.read_u8().await?);
    };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    bytes.extend(body);
    Ok(bytes)
}

/// A server on a raw listener.
pub(in crate::drive) struct Peer {
    pub(in crate::drive) addr: SocketAddr,
    task: JoinHandle<Vec<Vec<u8>>>,
    last: TcpSocket,
}

impl Peer {
    pub(in crate::drive) async fn start<F, W>(handler: F) -> Self
    where
        F: Fn(Client) -> W + Send + Sync + 'static,
        W: Future<Output = ()> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |client| Box::pin(handler(client)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let last = TcpSocket::new_v4().unwrap();
        last.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let last_addr = last.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let mut all: Vec<Arc<Mutex<Vec<u8>>>> = Vec::new();
            let mut work = JoinSet::new();
            loop {
                let (stream, from) = listener.accept().await.unwrap();
                // Connections are accepted in order: the one that `finish` opens is the last one.
                if from == last_addr {
                    break;
                }
                let bytes = Arc::new(Mutex::new(Vec::new()));
                all.push(Arc::clone(&bytes));
                work.spawn(handler(Client { stream, bytes }));
            }
            while let Some(done) = work.join_next().await {
                done.unwrap();
            }
            all.into_iter().map(|bytes| bytes.lock().unwrap().clone()).collect()
        });
        Self { addr, task, last }
    }

    /// A server that gives every request this answer.
    pub(in crate::drive) async fn answering(answer: &'static str) -> Self {
        Self::start(move |mut client| async move {
            if client.request().await.is_ok() {
                client.stream.write_all(answer.as_bytes()).await.unwrap();
            }
            client.drain().await;
        })
        .await
    }

    /// Waits until every connection is over; returns the bytes that arrived on each, in the order of arrival.
    ///
    /// Only for when nothing connects any more.
    pub(in crate::drive) async fn finish(self) -> Vec<Vec<u8>> {
        let _last = self.last.connect(self.addr).await.unwrap();
        self.task.await.unwrap()
    }
}

/// Two names for one thing: an answer with a body and its length.
pub(in crate::drive) const CREATED: &str = "HTTP/1.1 201 Created\r\ncontent-type: application/json\r\n\
    location: /payments/p1\r\ncontent-length: 27\r\n\r\n{\"id\": \"p1\", \"amount\": 100}";

/// What a peer knows when it behaves like an API: the references of its effects.
#[derive(Clone, Default)]
pub(in crate::drive) struct Effects(Arc<Mutex<Vec<String>>>);

impl Effects {
    pub(in crate::drive) fn add(&self, reference: &str) -> usize {
        let mut all = self.0.lock().unwrap();
        all.push(reference.to_owned());
        all.len()
    }

    /// Answers a request the way an API without idempotency does: every POST has an effect.
    pub(in crate::drive) fn answer(&self, request: &[u8]) -> String {
        let text = String::from_utf8_lossy(request);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        if head.starts_with("GET ") {
            let reference = head.split_once("reference=").unwrap().1.split(' ').next().unwrap();
            let all = self.0.lock().unwrap();
            let items: Vec<_> =
                all.iter().enumerate().filter(|(_, r)| *r == reference).map(|(n, _)| json!({"id": n})).collect();
            return answer("200 OK", &json!({"items": items}).to_string());
        }
        let payload: serde_json::Value = serde_json::from_str(body).unwrap();
        let id = self.add(payload["reference"].as_str().unwrap());
        answer("201 Created", &json!({"id": id, "note": "a body that is long enough to be cut"}).to_string())
    }
}

pub(in crate::drive) fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// Serves requests on one connection, one after the other, until it ends.
pub(in crate::drive) async fn serve(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), effects: &Effects) {
    while let Ok(request) = read_request(stream).await {
        if stream.write_all(effects.answer(&request).as_bytes()).await.is_err() || stream.flush().await.is_err() {
            break;
        }
    }
}

pub(in crate::drive) fn target(nodes: &[String]) -> Target {
    let template = |text: &str| Template::parse(text).unwrap();
    let operation = Operation {
        name: "create".into(),
        method: Method::POST,
        path: template("/payments"),
        json: None,
        headers: vec![],
        variants: BTreeMap::new(),
        success: StatusSet::class(2),
        identity: "$.id".parse().unwrap(),
        effects: None,
        policy: Policy::default(),
    };
    Target {
        name: "test".into(),
        profile: "draft".into(),
        nodes: nodes.iter().map(|node| Url::parse(node).unwrap()).collect(),
        tenants: vec![Tenant {
            name: "default".into(),
            headers: vec![HeaderTemplate {
                name: HeaderName::from_static("authorization"),
                value: template("Bearer secret-token"),
            }],
        }],
        operations: vec![operation],
        hooks: Hooks::default(),
        limits: Limits::default(),
        redactor: Redactor::new(),
    }
}

/// A target with one node and no probe.
pub(in crate::drive) fn plain(addr: SocketAddr) -> Target {
    target(&[format!("http://{addr}")])
}

/// A target whose effects can be counted.
pub(in crate::drive) fn counted(base: &str) -> Target {
    let mut target = target(&[base.to_owned()]);
    target.operations[0].effects = Some(EffectProbe {
        get: Template::parse("/payments?reference=${reference}").unwrap(),
        count: "$.items[*]".parse().unwrap(),
        id: Some("$.items[*].id".parse().unwrap()),
        quiet: Span::from_millis(20),
    });
    target
}

pub(in crate::drive) fn plan(name: &str) -> AttemptPlan {
    AttemptPlan {
        name: name.into(),
        key: PlannedKey::Symbol("k".into()),
        intent: "k".into(),
        role: "base".into(),
        payload: Some(JsonTemplate::parse(json!({"reference": "${reference}", "amount": 100})).unwrap()),
        encoding: Encoding::Compact,
        tenant: "default".into(),
        node: 0,
        hook_headers: vec![],
        fault: None,
        slow: None,
        server: None,
        timeout: Span::from_secs(20),
        extra: Extra::default(),
    }
}

pub(in crate::drive) fn send(plan: AttemptPlan) -> Step {
    Step::Send { attempt: Box::new(plan), until_settled: false }
}

pub(in crate::drive) fn time(ms: u64) -> Step {
    Step::Time(TimeMove { span: Span::from_millis(ms), by_hook: false, past: None })
}

pub(in crate::drive) fn burst(copies: usize, change: impl Fn(&mut AttemptPlan)) -> Step {
    let attempts = (1..=copies)
        .map(|number| {
            let mut plan = plan(&format!("dup#{number}"));
            change(&mut plan);
            plan
        })
        .collect();
    Step::Burst { name: "dup".into(), attempts }
}

pub(in crate::drive) fn schedule(target: &Target, steps: Vec<Step>) -> Schedule {
    Schedule {
        id: CaseId { suite: "test".into(), case: "case".into(), operation: "create".into(), vary: None },
        title: "A test".into(),
        file: "suites/test.yaml".into(),
        place: Place { line: 1, column: 1 },
        tags: vec![],
        rules: vec![],
        operation: Arc::new(target.operations[0].clone()),
        steps,
        given: vec![],
        overlap: vec![],
        expect: vec![],
        effects: vec![],
        exclusive: false,
        waits: Span::from_secs(0),
    }
}

pub(in crate::drive) fn options() -> Options {
    Options { run: "r1".into(), chaos: None, interrupt: Interrupt::never() }
}

/// Performs the steps once. A performance that hangs fails the test.
pub(in crate::drive) async fn perform_with(target: Target, options: Options, steps: Vec<Step>) -> History {
    let schedule = schedule(&target, steps);
    let driver = Driver::new(Arc::new(target), options).await.unwrap();
    perform_on(&driver, &schedule).await
}

pub(in crate::drive) async fn perform_on(driver: &Driver, schedule: &Schedule) -> History {
    tokio::time::timeout(Duration::from_secs(60), driver.perform(schedule, 0)).await.expect("the performance hangs")
}

pub(in crate::drive) async fn perform(target: Target, steps: Vec<Step>) -> History {
    perform_with(target, options(), steps).await
}
