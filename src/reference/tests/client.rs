//! A client that sends exactly what it is told: one connection, one request.

use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[derive(Debug, Clone, Copy)]
pub(super) struct Client {
    pub(super) addr: SocketAddr,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Reply {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The last part of the problem's type.
    pub(super) fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        assert_eq!(self.header("link"), Some("</docs/idempotency>; rel=\"describedby\""));
        let body = self.json();
        assert_eq!(body["status"], self.status);
        body["type"].as_str().unwrap().strip_prefix("/problems/").unwrap().to_owned()
    }

    /// Status and problem, for a comparison in one line.
    pub(super) fn refusal(&self) -> (u16, String) {
        (self.status, self.problem())
    }

    pub(super) fn replayed(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }

    pub(super) fn id(&self) -> String {
        self.json()["id"].as_str().unwrap().to_owned()
    }
}

impl Client {
    /// Sends bytes and reads until the connection closes.
    pub(super) async fn raw(&self, bytes: &[u8]) -> Option<Reply> {
        let mut stream = TcpStream::connect(self.addr).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        let reading = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut answer));
        // A reset after the answer is as good as its end; what counts is what arrived.
        let _ = reading.await.expect("the server keeps the connection open");
        parse(&answer)
    }

    pub(super) async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Option<Reply> {
        self.raw(&request(method, path, headers, body)).await
    }

    /// A payment with a key and further headers.
    pub(super) async fn pay(&self, path: &str, key: &str, body: &str, headers: &[(&str, &str)]) -> Option<Reply> {
        let key = format!("\"{key}\"");
        self.send("POST", path, &[&[("Idempotency-Key", key.as_str())], headers].concat(), body.as_bytes()).await
    }

    /// How many payments of the reference "r1" a tenant has.
    pub(super) async fn effects(&self, headers: &[(&str, &str)]) -> usize {
        let reply = self.send("GET", "/payments?reference=r1", headers, b"").await.unwrap();
        reply.json()["items"].as_array().unwrap().len()
    }
}

pub(super) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head =
        format!("{method} {path} HTTP/1.1\r\nhost: t\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    [head.as_bytes(), b"\r\n", body].concat()
}

fn parse(answer: &[u8]) -> Option<Reply> {
    let split = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..split]).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().unwrap();
    let headers =
        lines.map(|line| line.split_once(": ").unwrap()).map(|(a, b)| (a.to_lowercase(), b.to_owned())).collect();
    Some(Reply { status, headers, body: answer[split + 4..].to_vec() })
}
