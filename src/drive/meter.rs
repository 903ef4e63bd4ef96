//! Counts and stamps what passes through a connection.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::watch,
};

use super::clock::Clock;
use crate::history::Micros;

/// No more interim (1xx) answers than this are read.
const MAX_INTERIM: u32 = 100;

/// What has passed since the meter was last set.
#[derive(Debug, Clone, Default)]
pub(super) struct Reading {
    /// Before the first write that took a byte.
    pub(super) first_out: Option<Micros>,
    /// After the flush that made the request whole.
    pub(super) last_out: Option<Micros>,
    /// After the first read that gave a byte.
    pub(super) first_in: Option<Micros>,
    /// Bytes that the connection took.
    pub(super) bytes_out: u64,
    /// Bytes that the connection gave.
    pub(super) bytes_in: u64,
    /// Whether the peer closed its side.
    pub(super) closed: bool,
    /// The first error of a read or write.
    pub(super) error: Option<(io::ErrorKind, String)>,
    /// The limit that the answer broke.
    pub(super) broke: Option<&'static str>,
}

#[derive(Debug)]
struct State {
    reading: Reading,
    tried: Option<Micros>,
    expected: Option<u64>,
    left: Option<watch::Sender<bool>>,
    interim: u32,
}

/// The counter of one connection. Clones count together.
#[derive(Debug, Clone)]
pub(super) struct Meter {
    clock: Clock,
    state: Arc<Mutex<State>>,
    flushed: watch::Sender<u64>,
}

impl Meter {
    pub(super) fn new(clock: Clock) -> Self {
        let state = State { reading: Reading::default(), tried: None, expected: None, left: None, interim: 0 };
        Self { clock, state: Arc::new(Mutex::new(state)), flushed: watch::Sender::new(0) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts counting anew, for a request of `expected` bytes. `left` is told when all of them have left.
    pub(super) fn set(&self, expected: Option<u64>, left: Option<watch::Sender<bool>>) {
        *self.state() = State { reading: Reading::default(), tried: None, expected, left, interim: 0 };
        self.flushed.send_replace(0);
    }

    /// What has passed so far.
    pub(super) fn read(&self) -> Reading {
        self.state().reading.clone()
    }

    /// Returns when `bytes` have been handed to the system since the meter was set.
    pub(super) async fn flushed(&self, bytes: u64) {
        // The sender lives in `self`, so that waiting cannot fail.
        let _ = self.flushed.subscribe().wait_for(|flushed| *flushed >= bytes).await;
    }

    /// Notes one interim answer.
    pub(super) fn interim(&self) {
        let mut state = self.state();
        state.interim += 1;
        if state.interim > MAX_INTERIM {
            state.reading.broke = Some("more than 100 interim (1xx) answers");
        }
    }

    fn fail(&self, error: &io::Error) {
        let mut state = self.state();
        if state.reading.error.is_none() {
            state.reading.error = Some((error.kind(), error.to_string()));
        }
    }
}

/// A stream that is metered.
#[derive(Debug)]
pub(super) struct Metered<S> {
    inner: S,
    meter: Meter,
}

impl<S> Metered<S> {
    pub(super) fn new(inner: S, meter: Meter) -> Self {
        Self { inner, meter }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Some(limit) = self.meter.state().reading.broke {
            return Poll::Ready(Err(io::Error::other(limit)));
        }
        let before = buf.filled().len();
        let room = buf.remaining() > 0;
        let result = ready!(Pin::new(&mut self.inner).poll_read(cx, buf));
        match &result {
            Ok(()) => {
                let got = (buf.filled().len() - before) as u64;
                let now = self.meter.clock.now();
                let mut state = self.meter.state();
                if got > 0 {
                    state.reading.first_in.get_or_insert(now);
                    state.reading.bytes_in += got;
                } else if room {
                    state.reading.closed = true;
                }
            }
            Err(error) => self.meter.fail(error),
        }
        Poll::Ready(result)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let now = self.meter.clock.now();
        self.meter.state().tried.get_or_insert(now);
        let result = ready!(Pin::new(&mut self.inner).poll_write(cx, buf));
        match &result {
            Ok(0) => {}
            Ok(taken) => {
                let mut state = self.meter.state();
                state.reading.first_out = state.tried;
                state.reading.bytes_out += *taken as u64;
            }
            Err(error) => self.meter.fail(error),
        }
        Poll::Ready(result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = ready!(Pin::new(&mut self.inner).poll_flush(cx));
        match &result {
            Ok(()) => {
                let now = self.meter.clock.now();
                let mut state = self.meter.state();
                let out = state.reading.bytes_out;
                if state.expected.is_some_and(|expected| out >= expected) {
                    state.reading.last_out.get_or_insert(now);
                    if let Some(left) = state.left.take() {
                        left.send_replace(true);
                    }
                }
                drop(state);
                self.meter.flushed.send_if_modified(|flushed| std::mem::replace(flushed, out) != out);
            }
            Err(error) => self.meter.fail(error),
        }
        Poll::Ready(result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn counts_both_ways_and_stamps_in_order() {
        let (ours, mut theirs) = tokio::io::duplex(64);
        let meter = Meter::new(Clock::start());
        let (left, mut seen) = watch::channel(false);
        meter.set(Some(5), Some(left));
        let mut stream = Metered::new(ours, meter.clone());
        stream.write_all(b"hel").await.unwrap();
        stream.flush().await.unwrap();
        meter.flushed(3).await;
        assert_eq!(meter.read().last_out, None);
        assert!(!*seen.borrow());
        stream.write_all(b"lo").await.unwrap();
        assert_eq!(meter.read().last_out, None, "not before the flush");
        stream.flush().await.unwrap();
        assert!(*seen.wait_for(|left| *left).await.unwrap());
        theirs.write_all(b"answer").await.unwrap();
        drop(theirs);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let reading = meter.read();
        assert_eq!((reading.bytes_out, reading.bytes_in, reading.closed), (5, 6, true));
        assert!(reading.first_out <= reading.last_out && reading.last_out <= reading.first_in);
    }

    #[tokio::test]
    async fn too_many_interim_answers_break_the_read() {
        let (ours, _theirs) = tokio::io::duplex(64);
        let meter = Meter::new(Clock::start());
        let mut stream = Metered::new(ours, meter.clone());
        (0..=MAX_INTERIM).for_each(|_| meter.interim());
        assert!(stream.read_u8().await.is_err());
        assert!(meter.read().broke.is_some());
    }
}
