#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
//! The client against servers that are not what it hopes for.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::*;
use crate::chaos::{Stream, Toxic};

/// A server that gives one prepared answer to each request, by its first line, and remembers the requests.
struct Fake {
    url: String,
    heard: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

type Answers = fn(&str) -> Vec<u8>;

/// What a fake does after its answer.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    Close,
    Hang,
    Repeat,
}

async fn fake(then: Then, answers: Answers) -> Fake {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&heard);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let log = Arc::clone(&log);
            connections.spawn(async move {
                let request = read_request(&mut stream).await;
                let line = request.lines().next().unwrap_or_default().replace(" http/1.1", "");
                log.lock().unwrap().push(request);
                let answer = answers(&line);
                while stream.write_all(&answer).await.is_ok() && then == Then::Repeat {}
                if then == Then::Hang {
                    std::future::pending::<()>().await;
                }
            });
        }
    });
    Fake { url, heard, _tasks: tasks }
}

async fn read_request(stream: &mut tokio::net::TcpStream) -> String {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).await.unwrap_or(0) == 1 {
        request.push(byte[0]);
    }
    let head = String::from_utf8(request).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    head.replacen("post ", "POST ", 1).replacen("patch ", "PATCH ", 1).replacen("get ", "GET ", 1)
        + &String::from_utf8(body).unwrap()
}

fn answer(status: u16, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn client(url: &str) -> Client {
    let mut client = Client::new(url, "run").unwrap();
    // Tests wait for silence; half a second of it is enough.
    Arc::get_mut(&mut client.shared).unwrap().api.set_limit(Duration::from_millis(500));
    client
}

#[tokio::test]
async fn nobody_there_is_unreachable_and_names_the_address() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = client(&port.to_string()).version().await.unwrap_err();
    assert!(matches!(error, ChaosError::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains(&port.to_string()) && error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn t12_silence_and_bodies_without_end_time_out() {
    let silent = fake(Then::Hang, |_| vec![]).await;
    let error = client(&silent.url).version().await.unwrap_err();
    assert!(matches!(error, ChaosError::TimedOut { .. }) && error.is_wedged(), "{error:?}");
    let half = fake(Then::Hang, |_| b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{".to_vec()).await;
    assert!(client(&half.url).version().await.unwrap_err().is_wedged());
    let informational = fake(Then::Repeat, |_| b"HTTP/1.1 102 Processing\r\n\r\n".to_vec()).await;
    assert!(client(&informational.url).version().await.is_err());
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off() {
    let endless = fake(Then::Repeat, |_| {
        let mut answer = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        answer.resize(100_000, b'x');
        answer
    })
    .await;
    let mut client = Client::new(&endless.url, "run").unwrap();
    Arc::get_mut(&mut client.shared).unwrap().api.set_limit(Duration::from_secs(60));
    let error = client.version().await.unwrap_err();
    assert!(matches!(error, ChaosError::Nonsense { .. }), "{error:?}");
}

#[tokio::test]
async fn other_servers_are_recognised() {
    let web = fake(Then::Close, |_| answer(200, "<html>It works!</html>")).await;
    assert!(matches!(client(&web.url).version().await, Err(ChaosError::Nonsense { .. })));
    assert!(matches!(client(&web.url).create_proxy("a", "b:1").await, Err(ChaosError::Nonsense { .. })));
    let garbage = fake(Then::Close, |_| b"SSH-2.0-OpenSSH\r\n".to_vec()).await;
    assert!(matches!(client(&garbage.url).version().await, Err(ChaosError::Unreachable { .. })));
    let moved = fake(Then::Close, |_| b"HTTP/1.1 302 X\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n".to_vec()).await;
    assert!(matches!(client(&moved.url).version().await, Err(ChaosError::Refused { status: 302, .. })));
    assert_eq!(moved.heard.lock().unwrap().len(), 1, "redirects are not followed");
}

#[tokio::test]
async fn versions_without_reset_peer_are_too_old() {
    let old = fake(Then::Close, |_| answer(200, "{\"version\": 2.1.4}")).await;
    let error = client(&old.url).version().await.unwrap_err();
    assert_eq!(error.to_string(), "Toxiproxy 2.1.4 is too old: 2.2.0 or later is needed");
}

#[tokio::test]
async fn refusals_carry_the_words_of_the_server() {
    let server = fake(Then::Close, |_| answer(409, "{\"error\":\"proxy already exists\",\"status\":409}\n")).await;
    let client1 = client(&server.url);
    let error = client1.create_proxy("a", "b:1").await.unwrap_err();
    assert!(error.to_string().ends_with("with status 409: proxy already exists"), "{error}");
    assert_eq!(client1.cleanup().await.unwrap(), 0, "a proxy of somebody else is left alone");
    assert_eq!(server.heard.lock().unwrap().len(), 1);

    let wedged = fake(Then::Close, |_| answer(503, "<html><head><title>Timeout</title></head>")).await;
    assert!(client(&wedged.url).create_proxy("a", "b:1").await.unwrap_err().is_wedged());
}

#[tokio::test]
async fn a_proxy_whose_creation_was_not_answered_is_cleaned_up() {
    let server = fake(Then::Close, |line| match line.split(' ').next() {
        Some("delete") => answer(204, ""),
        _ => b"HTTP/1.1 201 X\r\nContent-Length: 50\r\n\r\n".to_vec(),
    })
    .await;
    let client = client(&server.url);
    assert!(matches!(client.create_proxy("lost", "b:1").await, Err(ChaosError::Unreachable { .. })));
    assert_eq!(client.cleanup().await.unwrap(), 1);
    assert!(server.heard.lock().unwrap()[1].starts_with("delete /proxies/idemproof-run-lost-0 "));
    assert_eq!(client.cleanup().await.unwrap(), 0);
}

#[tokio::test]
async fn an_answer_that_differs_from_the_question_is_an_error() {
    // As with a client that sends the stream under a wrong name: the server makes a downstream toxic.
    let server = fake(Then::Close, |line| {
        if line == "POST /proxies" {
            let proxy = r#"{"name":"idemproof-run-a-0","listen":"127.0.0.1:7","upstream":"b:1","enabled":true,"toxics":[]}"#;
            return answer(201, proxy);
        }
        let toxic = r#"{"attributes":{"bytes":0},"name":"limit_data_upstream_1","type":"limit_data","stream":"downstream","toxicity":1}"#;
        answer(200, toxic)
    })
    .await;
    let proxy = client(&server.url).create_proxy("a", "b:1").await.unwrap();
    let error = proxy.add(Stream::Upstream, Toxic::LimitData { bytes: 0 }).await.unwrap_err();
    assert!(error.to_string().contains("stream = \"downstream\""), "{error}");
}

#[tokio::test]
async fn patch_falls_back_to_post_on_old_servers() {
    let server = fake(Then::Close, |line| match line {
        "POST /proxies" => answer(
            201,
            r#"{"name":"idemproof-run-a-0","listen":"[::]:7","upstream":"b:1","enabled":true,"toxics":[]}"#,
        ),
        line if line.starts_with("PATCH") => answer(405, ""),
        line if line.ends_with("toxics") => answer(
            200,
            r#"{"attributes":{"bytes":0},"name":"limit_data_upstream_1","type":"limit_data","stream":"upstream","toxicity":1.0}"#,
        ),
        _ => answer(
            200,
            r#"{"attributes":{"bytes":9},"name":"limit_data_upstream_1","type":"limit_data","stream":"upstream","toxicity":1.0}"#,
        ),
    })
    .await;
    let proxy = client(&server.url).create_proxy("a", "b:1").await.unwrap();
    assert_eq!(proxy.addr().to_string(), "127.0.0.1:7", "every address means the host of the API");
    let toxic = proxy.add(Stream::Upstream, Toxic::LimitData { bytes: 0 }).await.unwrap();
    toxic.update(Toxic::LimitData { bytes: 9 }).await.unwrap();
    assert!(matches!(toxic.update(Toxic::Noop).await, Err(ChaosError::TypeChange { .. })));
    let heard = server.heard.lock().unwrap();
    assert!(heard[2].starts_with("PATCH") && heard[3].starts_with("POST"));
    assert!(heard[0].contains("user-agent: idemproof/") && heard[0].contains("content-type: application/json"));
}

#[tokio::test]
async fn row_52_calls_carry_the_agent_and_the_type_of_the_body() {
    let server = fake(Then::Close, |_| answer(409, "{}")).await;
    assert!(client(&server.url).create_proxy("a", "b:1").await.is_err());
    let heard = server.heard.lock().unwrap();
    assert!(heard[0].contains("\nuser-agent: idemproof/") && heard[0].contains("\ncontent-type: application/json"));
}

#[tokio::test]
async fn t03_only_a_toxicity_of_nought_or_one_is_sent() {
    let server = fake(Then::Close, |line| match line {
        "POST /proxies" => answer(
            201,
            r#"{"name":"idemproof-run-a-0","listen":"127.0.0.1:7","upstream":"b:1","enabled":true,"toxics":[]}"#,
        ),
        _ => answer(500, ""),
    })
    .await;
    let proxy = client(&server.url).create_proxy("a", "b:1").await.unwrap();
    let _ = proxy.add(Stream::Upstream, Toxic::Noop).await;
    let _ = proxy.add_asleep(Stream::Upstream, Toxic::Noop).await;
    let heard = server.heard.lock().unwrap();
    assert!(heard[1].contains("\"toxicity\":1,") && heard[2].contains("\"toxicity\":0,"), "{heard:?}");
}

#[tokio::test]
async fn run_ids_that_cannot_be_names_are_refused() {
    for given in ["", "a/b", "ü", &"x".repeat(65)] {
        assert!(matches!(Client::new("x:1", given), Err(ChaosError::BadRunId { .. })), "{given}");
    }
}
