//! What must not happen to a server whatever is done to it: leave something behind, hang, or die. Most of it is asked of
//! a process of its own, whose file descriptors and memory can be counted.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::{PATIENCE, Target, Upstream, dial, drain, echo, exchange, soon};

/// `idemproof proxy` as a process, ended when dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) url: String,
}

impl Process {
    /// Starts it, with so many file descriptors if a number is given.
    pub(crate) fn start(descriptors: Option<u32>) -> Self {
        let limit = descriptors.map_or(String::new(), |limit| format!("ulimit -n {limit}; "));
        let mut child = Command::new("/bin/sh")
            .args(["-c", &format!("{limit}exec \"$0\" proxy --listen 127.0.0.1:0"), env!("CARGO_BIN_EXE_idemproof")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap().to_owned();
        Self { child, url }
    }

    pub(crate) async fn target(&self) -> Target {
        Target::real(self.url.clone()).await
    }

    fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// The largest amount of memory it has had, in bytes.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Numbers that are the same every time for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }
}

pub(crate) async fn a_thousand_random_cuts_leave_nothing(_: &Target) {
    let process = Process::start(None);
    let t = process.target().await;
    let server = echo().await;
    let (path, addr) = t.proxy(server.addr).await;
    exchange(&mut dial(addr).await, "warm").await;
    let settled = process.descriptors();
    let mut numbers = Numbers(0x5eed);
    let request = b"POST / HTTP/1.1\r\nContent-Length: 20\r\n\r\nabcdefghijklmnopqrst";
    for round in 0..20 {
        let bytes = numbers.below(60);
        let ways = ["close", "reset"];
        match round % 4 {
            0 => drop(t.toxic(&path, "upstream", "limit_data", json!({"bytes": bytes})).await),
            1 => drop(t.toxic(&path, "downstream", "limit_data", json!({"bytes": bytes})).await),
            2 => drop(t.toxic(&path, "downstream", "reset_peer", json!({"timeout": bytes / 10})).await),
            _ => {
                let body = json!({
                    "name": "cut", "at": "request-body", "bytes": bytes % 20, "times": 0,
                    "client": numbers.of(&ways), "server": numbers.of(&ways),
                });
                let made = t.call("POST", &format!("/idemproof{path}/triggers"), body).await;
                assert_eq!(made.status, 200, "{}", made.text);
            }
        }
        let mut clients = Vec::new();
        for _ in 0..50 {
            let mut client = dial(addr).await;
            let _ = client.write_all(request).await;
            clients.push(client);
        }
        for mut client in clients {
            // Those that are not cut leave by themselves, in one way or the other.
            if round % 4 == 1 && bytes > request.len() as u64 {
                client.set_zero_linger().unwrap();
            } else {
                let _ = tokio::time::timeout(Duration::from_millis(200), drain(&mut client)).await;
            }
        }
        t.call("POST", "/reset", json!({})).await;
    }
    let start = Instant::now();
    while process.descriptors() > settled {
        assert!(start.elapsed() < PATIENCE, "{} descriptors, {settled} at first", process.descriptors());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let connections = t.get(&format!("/idemproof{path}/connections")).await.json();
    let open = connections.as_array().unwrap().iter().filter(|one| one["ended_us"].is_null()).count();
    assert_eq!(open, 0, "every connection is over");
}

pub(crate) async fn a_hundred_megabytes_in_a_hundred_connections_need_little_memory(_: &Target) {
    const MEGABYTE: usize = 1024 * 1024;
    let process = Process::start(None);
    let t = process.target().await;
    let mut upstream = Upstream::start().await;
    let (_, addr) = t.proxy(upstream.addr).await;
    let before = process.memory();
    let mut work = tokio::task::JoinSet::new();
    for number in 0..100 {
        let (mut client, mut server) = upstream.raw_pair(addr).await;
        work.spawn(async move {
            let sending = async {
                // Half of the servers never read: their clients get stuck and give up.
                let message = vec![number; MEGABYTE];
                let sent = client.write_all(&message);
                let _ = tokio::time::timeout(Duration::from_secs(1), sent).await;
            };
            let receiving = async {
                if number % 2 == 0 {
                    let mut all = vec![0; MEGABYTE];
                    server.read_exact(&mut all).await.unwrap();
                    assert!(all.iter().all(|byte| *byte == number));
                } else {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            };
            tokio::join!(sending, receiving);
        });
    }
    while let Some(done) = soon(work.join_next()).await {
        done.unwrap();
    }
    let grown = process.memory() - before;
    assert!(grown < 48 * MEGABYTE as u64, "{} MB for 100 connections", grown / MEGABYTE as u64);
}

pub(crate) async fn a_full_table_of_file_descriptors_leaves_the_api_working(_: &Target) {
    let mut process = Process::start(Some(64));
    let t = process.target().await;
    let server = echo().await;
    let (path, addr) = t.proxy(server.addr).await;
    let mut clients = Vec::new();
    for _ in 0..120 {
        clients.push(dial(addr).await);
    }
    for client in clients.iter_mut().take(4) {
        exchange(client, "served").await;
    }
    // The best of some, so that a busy machine does not decide.
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        let toxic = t.toxic(&path, "upstream", "latency", json!({"latency": 1})).await;
        assert_eq!(t.delete(&toxic).await, 204);
        best = best.min(start.elapsed());
    }
    assert!(best < Duration::from_secs(2), "{best:?}");
    drop(clients);
    exchange(&mut dial(addr).await, "served again").await;
    assert!(process.is_alive());
}

pub(crate) async fn idle_and_slow_callers_keep_nobody_out(_: &Target) {
    let process = Process::start(None);
    let addr: SocketAddr = process.url.trim_start_matches("http://").parse().unwrap();
    let mut slow = Vec::new();
    for _ in 0..20 {
        let mut caller = dial(addr).await;
        caller.write_all(b"GET /version HTTP/1.1\r\nHo").await.unwrap();
        slow.push(caller);
    }
    let t = process.target().await;
    assert_eq!(t.get("/version").await.status, 200);
}

/// A call that nobody would make, or nearly a right one.
fn call(numbers: &mut Numbers) -> (String, String, Vec<u8>) {
    let verbs = ["GET", "POST", "POST", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS", "BREW"];
    let names = ["a", "b", "c", "", "%00", "a%2fb", "\u{fc}", "..", "trigger-0", "1", "0", "18446744073709551615"];
    let parts = ["proxies", "toxics", "idemproof", "triggers", "connections", "wait", "dial", "release", "version"];
    let mut path = match numbers.below(8) {
        0 => "/proxies".to_owned(),
        1 => "/populate".to_owned(),
        2 => format!("/proxies/{}", numbers.of(&names)),
        3 => format!("/proxies/{}/toxics", numbers.of(&names)),
        4 => format!("/proxies/{}/toxics/{}", numbers.of(&names), numbers.of(&names)),
        5 => format!("/idemproof/proxies/{}/{}", numbers.of(&names), numbers.of(&parts)),
        6 => format!("/idemproof/proxies/{}/{}/{}", numbers.of(&names), numbers.of(&parts), numbers.of(&names)),
        _ => format!("/{}", numbers.of(&["", "reset", "version", "metrics", "idemproof", "idemproof/"])),
    };
    for _ in 0..numbers.below(2) {
        path = format!("{path}/{}", numbers.of(&parts));
    }
    let path = path.replace('\u{fc}', "%c3%bc");
    let values = [
        json!(null),
        json!(true),
        json!(-1),
        json!(0),
        json!(1),
        json!(2.5),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(1e308),
        json!("a"),
        json!(""),
        json!("127.0.0.1:0"),
        json!("upstream"),
        json!("[::1"),
        json!("latency"),
        json!("slicer"),
        json!("bandwidth"),
        json!("reset_peer"),
        json!("limit_data"),
        json!("cut"),
        json!("request-end"),
        json!("hold"),
        json!("accepted"),
        json!([]),
        json!([1]),
        json!({}),
        json!("\u{0}\u{fffd}"),
    ];
    let fields = [
        "name",
        "NAME",
        "listen",
        "upstream",
        "enabled",
        "type",
        "stream",
        "toxicity",
        "attributes",
        "at",
        "do",
        "times",
        "bytes",
        "delay",
        "until",
        "within",
        "mode",
        "average_size",
        "rate",
        "latency",
        "jitter",
        "client",
        "server",
    ];
    let mut object = serde_json::Map::new();
    for _ in 0..numbers.below(7) {
        let value = if numbers.below(5) == 0 {
            Value::Object(
                [(fields[numbers.below(23) as usize].to_owned(), numbers.of(&values).clone())].into_iter().collect(),
            )
        } else {
            numbers.of(&values).clone()
        };
        object.insert((*numbers.of(&fields)).to_owned(), value);
    }
    // A long wait is right, and would only make this slow.
    object.insert("within".to_owned(), json!(numbers.below(20)));
    let body = match numbers.below(4) {
        0 => Value::Array(vec![Value::Object(object)]),
        _ => Value::Object(object),
    };
    let mut body = body.to_string().into_bytes();
    for _ in 0..numbers.below(3) {
        let at = numbers.below(body.len() as u64) as usize;
        match numbers.below(3) {
            0 => body[at] = numbers.below(256) as u8,
            1 => body.truncate(at.max(1)),
            _ => body.insert(at, b'{'),
        }
    }
    ((*numbers.of(&verbs)).to_owned(), path, body)
}

pub(crate) async fn random_calls_are_always_answered(t: &Target) {
    let server = echo().await;
    for seed in 1..=4u64 {
        let mut numbers = Numbers(seed * 0x9e37_79b9);
        for place in 0..400 {
            let (verb, path, body) = call(&mut numbers);
            let what = format!("seed {seed}, call {place}: {verb} {path} {}", String::from_utf8_lossy(&body));
            let start = Instant::now();
            let answer = soon(t.send(&verb, &path, "rows", body)).await;
            assert!(start.elapsed() < Duration::from_secs(20), "{what}: {:?}", start.elapsed());
            assert!(!answer.text.contains("internal error"), "{what}: {}", answer.text);
        }
    }
    // It goes on as if nothing had been.
    let (_, addr) = t.proxy(server.addr).await;
    exchange(&mut dial(addr).await, "still there").await;
}

/// What is no HTTP at all.
pub(crate) async fn garbage_on_the_port_of_the_api_hurts_nobody(t: &Target) {
    let addr: SocketAddr = t.url.trim_start_matches("http://").parse().unwrap();
    let mut numbers = Numbers(77);
    for _ in 0..100 {
        let garbage: Vec<u8> = (0..numbers.below(2000)).map(|_| numbers.below(256) as u8).collect();
        let mut caller = dial(addr).await;
        let _ = caller.write_all(&garbage).await;
        let _ = caller.shutdown().await;
        let mut answer = Vec::new();
        let _ = soon(caller.read_to_end(&mut answer)).await;
    }
    assert_eq!(t.get("/version").await.status, 200);
}

pub(crate) async fn row_51_counters(_: &Target) {
    let t = Target::counting().await;
    let server = echo().await;
    let body = json!({"name": "counted", "listen": "127.0.0.1:0", "upstream": server.addr.to_string()});
    let made = t.call("POST", "/proxies", body).await.json();
    let listen = made["listen"].as_str().unwrap().to_owned();
    let mut client = dial(listen.parse().unwrap()).await;
    exchange(&mut client, "hello").await;
    drop(client);
    let labels = |direction: &str| {
        let upstream = server.addr;
        format!("{{direction=\"{direction}\",listener=\"{listen}\",proxy=\"counted\",upstream=\"{upstream}\"}} 5")
    };
    let start = Instant::now();
    loop {
        let text = t.get("/metrics").await.text;
        let all = ["received", "sent"].iter().all(|what| {
            ["upstream", "downstream"]
                .iter()
                .all(|way| text.contains(&format!("toxiproxy_proxy_{what}_bytes_total{}", labels(way))))
        });
        if all {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "{text}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    t.stop().await;
}
