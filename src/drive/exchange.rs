//! One HTTP/1.1 exchange on one connection: no pool, no retry, no redirect, no decoder.

use std::pin::Pin;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use sha2::{Digest, Sha256};

use super::{
    interrupt::Deadline,
    meter::{Meter, Metered},
    payload::Payload,
    wire::{Duplex, Line},
    words::{hex, said},
};
use crate::history::{Cut, End};

/// The largest head of an answer, in bytes.
const MAX_HEAD: usize = 16 * 1024;
/// The most header fields of an answer.
const MAX_FIELDS: usize = 100;
/// The largest body of an answer, in bytes.
const MAX_BODY: u64 = 1024 * 1024;

type Io = TokioIo<Metered<Box<dyn Duplex>>>;

/// The settings of every HTTP connection.
fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.max_buf_size(MAX_HEAD).max_headers(MAX_FIELDS);
    builder
}

/// What has come of an answer so far.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// Status and header fields, once the head has come.
    pub(super) head: Option<(StatusCode, HeaderMap)>,
    /// The bytes of the body, at most 1 MiB.
    pub(super) body: Vec<u8>,
    /// How many bytes of the body came.
    pub(super) length: u64,
    /// Whether all of it came.
    pub(super) complete: bool,
    hasher: Sha256,
}

impl Received {
    fn take(&mut self, data: &Bytes) -> Result<(), Failure> {
        self.length += data.len() as u64;
        self.hasher.update(data);
        if self.length > MAX_BODY {
            return Err(Failure::BodyTooLarge);
        }
        self.body.extend_from_slice(data);
        Ok(())
    }

    /// The SHA-256 of the bytes of the body that came, in hexadecimal.
    pub(super) fn sha256(&self) -> String {
        hex(&self.hasher.clone().finalize())
    }
}

enum Failure {
    Http(hyper::Error),
    BodyTooLarge,
}

impl From<hyper::Error> for Failure {
    fn from(error: hyper::Error) -> Self {
        Self::Http(error)
    }
}

/// A connection that speaks HTTP.
pub(super) struct Talk {
    sender: SendRequest<Payload>,
    connection: Pin<Box<Connection<Io, Payload>>>,
    over: bool,
    meter: Meter,
}

impl Talk {
    /// Starts to speak HTTP on a connection. Nothing is written yet.
    ///
    /// # Errors
    /// As the HTTP library says; the text says why.
    pub(super) async fn on(line: Line) -> Result<Self, String> {
        let Line { io, meter, .. } = line;
        let (sender, connection) = builder().handshake(TokioIo::new(io)).await.map_err(|error| said(&error))?;
        Ok(Self { sender, connection: Box::pin(connection), over: false, meter })
    }

    /// Counts the plain bytes of the connection.
    pub(super) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Sends the request once and reads its answer, until the deadline.
    ///
    /// The meter must have been set before.
    pub(super) async fn exchange(&mut self, mut request: Request<Payload>, deadline: &Deadline) -> (End, Received) {
        let meter = self.meter.clone();
        let interim = meter.clone();
        hyper::ext::on_informational(&mut request, move |_| interim.interim());
        let mut received = Received::default();
        let result = deadline.within(self.talk(request, &mut received)).await;
        let end = match result {
            Some(Ok(())) => End::Answered,
            Some(Err(failure)) => classify(&failure, &meter),
            None if meter.read().bytes_out == 0 => End::NotSent("the time was over before the first byte".to_owned()),
            None => End::TimedOut,
        };
        (end, received)
    }

    async fn talk(&mut self, request: Request<Payload>, received: &mut Received) -> Result<(), Failure> {
        let Self { sender, connection, over, .. } = self;
        let exchange = async {
            sender.ready().await?;
            let response = sender.send_request(request).await?;
            let (parts, mut body) = response.into_parts();
            received.head = Some((parts.status, parts.headers));
            while let Some(frame) = body.frame().await {
                if let Ok(data) = frame?.into_data() {
                    received.take(&data)?;
                }
            }
            received.complete = true;
            Ok(())
        };
        tokio::pin!(exchange);
        let mut fault = None;
        loop {
            tokio::select! {
                biased;
                result = &mut exchange => return match (result, fault) {
                    // The connection knows better what was wrong than a request that found it closed.
                    (Err(Failure::Http(error)), Some(fault)) if error.is_canceled() || error.is_closed() => {
                        Err(Failure::Http(fault))
                    }
                    (result, _) => result,
                },
                result = connection.as_mut(), if !*over => {
                    *over = true;
                    fault = result.err();
                }
            }
        }
    }
}

/// What a failed exchange was, by what passed through the connection.
fn classify(failure: &Failure, meter: &Meter) -> End {
    let reading = meter.read();
    if let Some(limit) = reading.broke {
        return End::Unreadable(limit.to_owned());
    }
    let error = match failure {
        Failure::BodyTooLarge => return End::Unreadable("the body is larger than 1 MiB".to_owned()),
        Failure::Http(error) => error,
    };
    if error.is_parse_too_large() {
        return End::Unreadable("the head is larger than 16 KiB or has more than 100 fields".to_owned());
    }
    let text = said(error);
    if error.is_parse() {
        return End::Unreadable(text);
    }
    if reading.bytes_out == 0 {
        return End::NotSent(format!("the connection ended before the first byte was written: {text}"));
    }
    match reading.error {
        // Below TLS this is data that cannot be decrypted.
        Some((std::io::ErrorKind::InvalidData, said)) => End::Unreadable(said),
        Some((kind, said)) => End::Lost(Cut { reset: kind == std::io::ErrorKind::ConnectionReset, said }),
        None if reading.closed => End::Lost(Cut { reset: false, said: text }),
        None => End::Unreadable(text),
    }
}

/// The bytes that a request is sent as, and the length of its head.
///
/// # Errors
/// When the HTTP library refuses the request; the text says why.
pub(super) async fn image(request: Request<Payload>, body: usize) -> Result<(Vec<u8>, usize), String> {
    use tokio::io::AsyncReadExt;
    let (ours, mut theirs) = tokio::io::duplex(16 * 1024);
    let (mut sender, connection) =
        builder().handshake::<_, Payload>(TokioIo::new(ours)).await.map_err(|error| said(&error))?;
    let reading = async {
        let mut bytes = Vec::new();
        loop {
            if let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
                && bytes.len() >= head + body
            {
                return Ok((bytes, head));
            }
            match theirs.read_buf(&mut bytes).await {
                Ok(0) => return Err("the HTTP library wrote no whole request".to_owned()),
                Ok(_) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    };
    let sending = async {
        sender.ready().await?;
        sender.send_request(request).await.map(drop)
    };
    tokio::pin!(reading, sending, connection);
    let mut over = false;
    loop {
        tokio::select! {
            biased;
            result = &mut sending => return Err(result.err().map_or_else(
                || "the HTTP library ended the request too early".to_owned(), |error| said(&error))),
            _ = &mut connection, if !over => over = true,
            result = &mut reading => return result,
        }
    }
}
