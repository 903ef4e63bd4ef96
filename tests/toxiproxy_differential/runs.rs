//! Whole runs of idemproof against a Toxiproxy of somebody else's: interrupted, side by side, and with a server that
//! hangs or lies. None of it may touch what is not ours, or become a verdict about the API.

use std::net::SocketAddr;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::harness::{Target, soon};
use crate::robust::Process;

/// A run that is going on.
struct Run {
    child: std::process::Child,
    folder: TempDir,
}

impl Run {
    fn start(toxiproxy: &str, arguments: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_idemproof"))
            .args(["run", "connection-drops", "--no-progress", "--color", "never", "--toxiproxy", toxiproxy])
            .args(["--reports", folder.path().to_str().unwrap()])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self { child, folder }
    }

    fn signal(&self, name: &str) {
        let done = Command::new("/bin/sh").args(["-c", &format!("kill -s {name} {}", self.child.id())]).status();
        assert!(done.unwrap().success());
    }

    /// Waits for its end; gives the exit code and all that it printed.
    async fn end(self) -> (i32, String) {
        let Self { child, folder } = self;
        let ended = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
        let Output { status, stdout, stderr } = soon_enough(ended).await.unwrap();
        drop(folder);
        // Lines are broken where the terminal ends.
        let said = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
        (status.code().unwrap_or(-1), said.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

async fn soon_enough<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(180), work).await.expect("the run does not end")
}

async fn names(t: &Target) -> Vec<String> {
    t.get("/proxies").await.json().as_object().unwrap().keys().cloned().collect()
}

/// A server with a proxy that is not ours.
async fn shared() -> (Process, Target) {
    let process = Process::start(None);
    let t = process.target().await;
    let body = json!({"name": "theirs", "listen": "127.0.0.1:0", "upstream": "127.0.0.1:9"});
    assert_eq!(t.call("POST", "/proxies", body).await.status, 201);
    (process, t)
}

pub(crate) async fn an_interrupted_run_removes_its_proxies_and_no_others(_: &Target) {
    let (process, t) = shared().await;
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let run = Run::start(&process.url, &["--rounds", "1000"]);
        soon(async {
            while names(&t).await.len() < 2 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
        run.signal(signal);
        let (exit, said) = run.end().await;
        assert_eq!(exit, code, "{said}");
        assert_eq!(names(&t).await, ["theirs"], "{said}");
    }
    assert_eq!(t.get("/proxies/theirs").await.json()["enabled"], true);
}

pub(crate) async fn two_runs_share_a_server(_: &Target) {
    let (process, t) = shared().await;
    let runs = [Run::start(&process.url, &[]), Run::start(&process.url, &[])];
    for run in runs {
        let (exit, said) = run.end().await;
        assert_eq!(exit, 0, "{said}");
    }
    assert_eq!(names(&t).await, ["theirs"]);
}

pub(crate) async fn a_server_that_never_answers_ends_the_run_with_that_reason(_: &Target) {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let run = Run::start(&format!("http://{}", silent.local_addr().unwrap()), &[]);
    let (exit, said) = run.end().await;
    assert_eq!(exit, 2, "{said}");
    assert!(said.contains("Toxiproxy did not answer GET /version within 5s"), "{said}");
}

/// What the front does with a call.
#[derive(Clone, Copy)]
enum Way {
    Pass,
    /// It is never answered.
    Hang,
    /// It is answered as if it had been done.
    Pretend,
}

/// Stands before the API of a Toxiproxy and treats each call by its number and first line.
struct Front {
    url: String,
    _tasks: JoinSet<()>,
}

impl Front {
    async fn start(api: &str, way: fn(usize, &str) -> Way) -> Self {
        let api: SocketAddr = api.trim_start_matches("http://").parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut calls = JoinSet::new();
            for number in 0.. {
                let (mut caller, _) = listener.accept().await.unwrap();
                calls.spawn(async move {
                    let (head, body) = read_call(&mut caller).await;
                    match way(number, head.lines().next().unwrap_or_default()) {
                        Way::Hang => std::future::pending().await,
                        Way::Pretend => {
                            let length = body.len();
                            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
                            let _ = caller.write_all(answer.as_bytes()).await;
                        }
                        Way::Pass => {
                            let mut server = TcpStream::connect(api).await.unwrap();
                            server.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
                            let _ = tokio::io::copy_bidirectional(&mut caller, &mut server).await;
                        }
                    }
                });
            }
        });
        Self { url, _tasks: tasks }
    }
}

async fn read_call(caller: &mut TcpStream) -> (String, String) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match caller.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    let _ = caller.read_exact(&mut body).await;
    (head, String::from_utf8(body).unwrap())
}

pub(crate) async fn a_server_that_hangs_midway_makes_cases_inconclusive(_: &Target) {
    let (process, _) = shared().await;
    // The version and the first proxy are answered, nothing later is.
    let front = Front::start(&process.url, |number, _| if number < 2 { Way::Pass } else { Way::Hang }).await;
    let run = Run::start(&front.url, &["--filter", "response-lost", "--fail-on", "inconclusive"]);
    let (exit, said) = run.end().await;
    assert_eq!(exit, 3, "{said}");
    assert!(said.contains("Toxiproxy did not answer"), "{said}");
}

pub(crate) async fn a_server_that_lies_makes_cases_inconclusive(_: &Target) {
    let (process, t) = shared().await;
    // Every toxic is confirmed and none is made.
    let front = Front::start(&process.url, |_, line| {
        if line.starts_with("POST") && line.contains("/toxics") { Way::Pretend } else { Way::Pass }
    })
    .await;
    let run = Run::start(&front.url, &["--filter", "response-lost", "--fail-on", "inconclusive"]);
    let (exit, said) = run.end().await;
    assert_eq!(exit, 3, "{said}");
    assert!(said.contains("lose-response not witnessed ("), "{said}");
    assert_eq!(names(&t).await, ["theirs"]);
}
