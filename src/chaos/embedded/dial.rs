//! How a proxy reaches its upstream: as it is, late, or not at all.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::body::{Fields, Refusal};
use super::trigger::choice;

/// Longest time for a connection to the upstream, as most systems have it.
const PATIENCE: Duration = Duration::from_secs(130);
/// Longest delay, in milliseconds.
const LONGEST_MS: i64 = 600_000;

/// What happens instead of, or before, the connection to the upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dial {
    mode: Mode,
    delay: Duration,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Connect,
    /// The client is closed, as if the upstream had refused.
    Refuse,
    /// Nothing ever happens, as if the upstream's network swallowed everything.
    Blackhole,
}

const MODES: [(&str, Mode); 3] = [("connect", Mode::Connect), ("refuse", Mode::Refuse), ("blackhole", Mode::Blackhole)];

impl Dial {
    pub(super) fn read(body: &Fields) -> Result<Self, Refusal> {
        let mode = choice(body, "mode", &MODES)?.unwrap_or_default();
        let delay = body.integer("delay")?.unwrap_or(0);
        if !(0..=LONGEST_MS).contains(&delay) {
            return Err(Refusal::new(400, format!("invalid dial: delay is {delay}; it can be 0 to {LONGEST_MS} ms")));
        }
        Ok(Self { mode, delay: Duration::from_millis(delay.unsigned_abs()) })
    }

    pub(super) fn to_json(self) -> Value {
        let mode = MODES.iter().find(|(_, mode)| *mode == self.mode).map_or("", |(name, _)| name);
        json!({"mode": mode, "delay": self.delay.as_millis() as u64})
    }

    /// Whether a client that leaves meanwhile has to be noticed, because nothing else would end the wait.
    pub(super) fn may_wait_for_ever(self) -> bool {
        self.mode == Mode::Blackhole
    }

    pub(super) async fn connect(self, upstream: String) -> io::Result<TcpStream> {
        // Even a sleep of nothing would last until the next tick of the timer.
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        match self.mode {
            Mode::Refuse => Err(io::Error::new(io::ErrorKind::ConnectionRefused, "refused by the dial setting")),
            Mode::Blackhole => std::future::pending().await,
            Mode::Connect => {
                let late = || io::Error::new(io::ErrorKind::TimedOut, "no connection within 130 seconds");
                let connected = tokio::time::timeout(PATIENCE, TcpStream::connect(upstream)).await;
                connected.unwrap_or_else(|_| Err(late()))
            }
        }
    }
}
