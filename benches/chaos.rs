//! The fault proxy side by side with a real Toxiproxy and with a plain tokio copy, in one run: `cargo bench --bench chaos`.
//!
//! All three are processes, measured in turns, so that what else the machine does hurts all alike. Judge by CPU per
//! request and by ratios; wall time on a shared machine says little. `IDEMPROOF_TOXIPROXY_BIN` names the real server;
//! without it its column is empty. `IDEMPROOF_BENCH_ROUNDS` changes the number of rounds.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const SMALL: usize = 64;
const MEDIUM: usize = 300;
const BULK: usize = 64 * 1024 * 1024;
const LATENCY: Duration = Duration::from_millis(50);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, word, upstream] = arguments.as_slice()
        && word == "copy"
    {
        return copy(upstream);
    }
    let rounds = std::env::var("IDEMPROOF_BENCH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(7);
    let (echo, sink) = (echo(), sink());
    let mut paths = vec![Path::direct(echo, sink), Path::copy(echo, sink), Path::ours(echo, sink)];
    match std::env::var("IDEMPROOF_TOXIPROXY_BIN") {
        Ok(program) => paths.push(Path::real(&program, echo, sink)),
        Err(_) => println!("no real Toxiproxy: set IDEMPROOF_TOXIPROXY_BIN to its server program\n"),
    }
    for round in 0..rounds {
        // Another order each time.
        for place in 0..paths.len() {
            let place = (place + round) % paths.len();
            paths[place].measure();
        }
        eprintln!("round {} of {rounds}", round + 1);
    }
    println!("{}", table(&paths, rounds));
}

/// What is measured, each a list of values, one for each round.
#[derive(Default)]
struct Values {
    round_trip: Vec<f64>,
    round_trip_cpu: Vec<f64>,
    exchanges: Vec<f64>,
    exchange_cpu: Vec<f64>,
    bulk: Vec<f64>,
    bulk_cpu: Vec<f64>,
    connect: Vec<f64>,
    arm: Vec<f64>,
    late: Vec<f64>,
}

/// A way from client to server.
struct Path {
    name: &'static str,
    echo: SocketAddr,
    sink: SocketAddr,
    api: Option<SocketAddr>,
    child: Option<Child>,
    values: Values,
}

impl Drop for Path {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    line
}

fn address(line: &str) -> SocketAddr {
    let start = line.find("127.0.0.1:").unwrap();
    let rest = &line[start..];
    let end =
        rest.char_indices().find(|(_, c)| !c.is_ascii_digit() && !matches!(c, '.' | ':')).map_or(rest.len(), |f| f.0);
    rest[..end].parse().unwrap()
}

impl Path {
    fn direct(echo: SocketAddr, sink: SocketAddr) -> Self {
        Self { name: "direct", echo, sink, api: None, child: None, values: Values::default() }
    }

    fn copy(echo: SocketAddr, sink: SocketAddr) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["copy", &format!("{echo},{sink}")])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let line = first_line(&mut child);
        let mut words = line.split_whitespace();
        let (echo, sink) = (words.next().unwrap().parse().unwrap(), words.next().unwrap().parse().unwrap());
        Self { name: "tokio copy", echo, sink, api: None, child: Some(child), values: Values::default() }
    }

    fn ours(echo: SocketAddr, sink: SocketAddr) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_idemproof"))
            .args(["proxy", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let api = address(&first_line(&mut child));
        Self::proxied("embedded", api, child, echo, sink)
    }

    fn real(program: &str, echo: SocketAddr, sink: SocketAddr) -> Self {
        let api = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let child = Command::new(program)
            .args(["-host", "127.0.0.1", "-port", &api.port().to_string()])
            .env("LOG_LEVEL", "warn")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while TcpStream::connect(api).is_err() {
            thread::sleep(Duration::from_millis(20));
        }
        Self::proxied("Toxiproxy", api, child, echo, sink)
    }

    fn proxied(name: &'static str, api: SocketAddr, child: Child, echo: SocketAddr, sink: SocketAddr) -> Self {
        let mut caller = connect(api);
        let mut proxy = |name: &str, upstream: SocketAddr| {
            let body = format!("{{\"name\":\"{name}\",\"listen\":\"127.0.0.1:0\",\"upstream\":\"{upstream}\"}}");
            let answer = call(&mut caller, "POST", "/proxies", &body);
            address(&answer[answer.find("\"listen\"").unwrap()..])
        };
        let (echo, sink) = (proxy("echo", echo), proxy("sink", sink));
        Self { name, echo, sink, api: Some(api), child: Some(child), values: Values::default() }
    }

    /// CPU time that the process has used, in seconds.
    fn cpu(&self) -> f64 {
        let Some(child) = &self.child else { return 0.0 };
        let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
        let used = |task: std::io::Result<std::fs::DirEntry>| {
            let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<f64>().ok()
        };
        tasks.filter_map(used).sum::<f64>() / 1e9
    }

    fn measure(&mut self) {
        let cpu = self.cpu();
        let count = 3000;
        let mut stream = connect(self.echo);
        let times: Vec<f64> = (0..count).map(|_| exchange(&mut stream, SMALL)).collect();
        self.values.round_trip.push(median(times) * 1e6);
        self.values.round_trip_cpu.push((self.cpu() - cpu) / f64::from(count) * 1e6);
        drop(stream);

        let (cpu, start, each) = (self.cpu(), Instant::now(), 600);
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let mut stream = connect(self.echo);
                    for _ in 0..each {
                        exchange(&mut stream, MEDIUM);
                    }
                });
            }
        });
        let all = f64::from(16 * each);
        self.values.exchanges.push(all / start.elapsed().as_secs_f64());
        self.values.exchange_cpu.push((self.cpu() - cpu) / all * 1e6);

        let (cpu, start) = (self.cpu(), Instant::now());
        let mut stream = connect(self.sink);
        let block = vec![7; 256 * 1024];
        for _ in 0..BULK / block.len() {
            stream.write_all(&block).unwrap();
        }
        // The sink says when it has all.
        stream.read_exact(&mut [0]).unwrap();
        let megabytes = BULK as f64 / 1e6;
        self.values.bulk.push(megabytes / start.elapsed().as_secs_f64());
        self.values.bulk_cpu.push((self.cpu() - cpu) / megabytes * 1e3);
        drop(stream);

        let connects = (0..200).map(|_| {
            let start = Instant::now();
            let mut stream = connect(self.echo);
            exchange(&mut stream, SMALL);
            drop(stream);
            start.elapsed().as_secs_f64()
        });
        self.values.connect.push(median(connects.collect()) * 1e6);
        self.measure_toxics();
    }

    fn measure_toxics(&mut self) {
        let Some(api) = self.api else { return };
        let mut caller = connect(api);
        let mut live = connect(self.echo);
        exchange(&mut live, SMALL);
        let latency =
            format!("{{\"name\":\"t\",\"type\":\"latency\",\"attributes\":{{\"latency\":{}}}}}", LATENCY.as_millis());
        let mut arming = Vec::new();
        for _ in 0..200 {
            let start = Instant::now();
            call(&mut caller, "POST", "/proxies/echo/toxics", "{\"name\":\"t\",\"type\":\"noop\"}");
            arming.push(start.elapsed().as_secs_f64());
            call(&mut caller, "DELETE", "/proxies/echo/toxics/t", "");
        }
        self.values.arm.push(median(arming) * 1e3);
        let plain = median((0..20).map(|_| exchange(&mut live, SMALL)).collect());
        call(&mut caller, "POST", "/proxies/echo/toxics", &latency);
        let late = median((0..8).map(|_| exchange(&mut live, SMALL)).collect());
        call(&mut caller, "DELETE", "/proxies/echo/toxics/t", "");
        self.values.late.push((late - plain - LATENCY.as_secs_f64()) * 1e3);
    }
}

fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// One message there and back; how long it took, in seconds.
fn exchange(stream: &mut TcpStream, bytes: usize) -> f64 {
    let mut message = [9; MEDIUM];
    let start = Instant::now();
    stream.write_all(&message[..bytes]).unwrap();
    stream.read_exact(&mut message[..bytes]).unwrap();
    start.elapsed().as_secs_f64()
}

/// One call of the API on a connection that is kept.
fn call(stream: &mut TcpStream, verb: &str, path: &str, body: &str) -> String {
    let head = format!("{verb} {path} HTTP/1.1\r\nHost: bench\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "the API closed the connection");
        answer.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&answer).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        assert!(head.starts_with("HTTP/1.1 2"), "{verb} {path}: {text}");
        let length = head
            .to_lowercase()
            .split("content-length: ")
            .nth(1)
            .map_or(0, |rest| rest.split('\r').next().unwrap_or_default().parse().unwrap());
        if body.len() >= length {
            return body.to_owned();
        }
    }
}

fn serve(handle: fn(TcpStream)) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            stream.set_nodelay(true).unwrap();
            thread::spawn(move || handle(stream));
        }
    });
    addr
}

fn echo() -> SocketAddr {
    serve(|mut stream| {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            if stream.write_all(&buffer[..count]).is_err() {
                return;
            }
        }
    })
}

fn sink() -> SocketAddr {
    serve(|mut stream| {
        let (mut buffer, mut all) = (vec![0; 256 * 1024], 0);
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            all += count;
            if all >= BULK {
                let _ = stream.write_all(&[1]);
                all = 0;
            }
        }
    })
}

/// The least that a proxy on tokio does.
fn copy(upstreams: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut addresses = Vec::new();
        for upstream in upstreams.split(',') {
            let upstream: SocketAddr = upstream.parse().unwrap();
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            addresses.push(listener.local_addr().unwrap());
            tokio::spawn(async move {
                loop {
                    let (mut client, _) = listener.accept().await.unwrap();
                    tokio::spawn(async move {
                        let mut server = tokio::net::TcpStream::connect(upstream).await.unwrap();
                        client.set_nodelay(true).unwrap();
                        server.set_nodelay(true).unwrap();
                        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                    });
                }
            });
        }
        println!("{} {}", addresses[0], addresses[1]);
        std::future::pending::<()>().await;
    });
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// One line of the table.
struct Line {
    name: &'static str,
    values: fn(&Values) -> &Vec<f64>,
    /// Whether more is better.
    more: bool,
}

const LINES: [Line; 9] = [
    Line { name: "round trip of 64 B, us", values: |values| &values.round_trip, more: false },
    Line { name: "CPU per such exchange, us", values: |values| &values.round_trip_cpu, more: false },
    Line { name: "exchanges of 300 B on 16 connections, 1/s", values: |values| &values.exchanges, more: true },
    Line { name: "CPU per such exchange, us (16 connections)", values: |values| &values.exchange_cpu, more: false },
    Line { name: "bulk one way, MB/s", values: |values| &values.bulk, more: true },
    Line { name: "CPU per MB, ms", values: |values| &values.bulk_cpu, more: false },
    Line { name: "connect, exchange, close, us", values: |values| &values.connect, more: false },
    Line { name: "arming a toxic, ms", values: |values| &values.arm, more: false },
    Line { name: "latency of 50 ms: too late by, ms", values: |values| &values.late, more: false },
];

fn table(paths: &[Path], rounds: usize) -> String {
    let mut text = format!("Median of {rounds} rounds (best round in brackets).\n\n| |");
    for path in paths {
        let _ = write!(text, " {} |", path.name);
    }
    let _ = write!(text, "\n|---|{}\n", "---:|".repeat(paths.len()));
    for line in &LINES {
        let _ = write!(text, "| {} |", line.name);
        for path in paths {
            let values = (line.values)(&path.values);
            if values.is_empty() || (path.child.is_none() && line.name.contains("CPU")) {
                text.push_str(" |");
                continue;
            }
            let pick = if line.more { f64::max } else { f64::min };
            let best = values.iter().copied().reduce(pick).unwrap_or(f64::NAN);
            let _ = write!(text, " {:.2} ({best:.2}) |", median(values.clone()));
        }
        text.push('\n');
    }
    text + &targets(paths)
}

/// What was aimed at, by the ratios of each round.
fn targets(paths: &[Path]) -> String {
    let find = |name: &str| paths.iter().find(|path| path.name == name).map(|path| &path.values);
    let (Some(ours), Some(copy)) = (find("embedded"), find("tokio copy")) else { return String::new() };
    let ratio = |a: &[f64], b: &[f64]| median(a.iter().zip(b).map(|(a, b)| a / b).collect());
    let mut lines = vec![(
        "round trip at most 1.5 of tokio copy",
        ratio(&ours.round_trip, &copy.round_trip),
        ratio(&ours.round_trip, &copy.round_trip) <= 1.5,
    )];
    if let Some(real) = find("Toxiproxy") {
        let (trip, cpu, bulk) = (
            ratio(&ours.round_trip, &real.round_trip),
            ratio(&ours.exchange_cpu, &real.exchange_cpu),
            ratio(&ours.bulk, &real.bulk),
        );
        lines.push(("round trip at most Toxiproxy's", trip, trip <= 1.0));
        lines.push(("CPU per request at most 0.7 of Toxiproxy's", cpu, cpu <= 0.7));
        lines.push(("bulk at least Toxiproxy's", bulk, bulk >= 1.0));
    }
    let (arm, late) = (median(ours.arm.clone()), median(ours.late.clone()));
    lines.push(("arming at most 1 ms", arm, arm <= 1.0));
    lines.push(("latency within 1.5 ms", late, late <= 1.5));
    let mut text = String::from("\n| aimed at | reached | |\n|---|---:|---|\n");
    for (aim, reached, holds) in lines {
        let _ = writeln!(text, "| {aim} | {reached:.2} | {} |", if holds { "yes" } else { "NO" });
    }
    text
}
