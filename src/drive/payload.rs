//! The body of a request, with an optional gate before its end.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::watch;

/// Opens once, for everybody who waits at it.
#[derive(Debug, Clone)]
pub(super) struct Gate(watch::Receiver<bool>);

/// Opens a gate. Dropping it opens the gate as well, so that nobody waits for ever.
#[derive(Debug)]
pub(super) struct GateKeeper(watch::Sender<bool>);

impl Gate {
    pub(super) fn closed() -> (GateKeeper, Self) {
        let (sender, receiver) = watch::channel(false);
        (GateKeeper(sender), Self(receiver))
    }

    /// Returns when the gate is open.
    pub(super) async fn pass(mut self) {
        // An error means that the keeper is gone, which opens the gate.
        let _ = self.0.wait_for(|open| *open).await;
    }
}

impl GateKeeper {
    pub(super) fn open(&self) {
        self.0.send_replace(true);
    }
}

type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A body of known length: a first part, then perhaps a gate, then the rest.
pub(super) struct Payload {
    first: Bytes,
    gate: Option<Waiting>,
    rest: Bytes,
}

impl Payload {
    /// A body that is sent at once.
    pub(super) fn plain(bytes: Bytes) -> Self {
        Self { first: bytes, gate: None, rest: Bytes::new() }
    }

    /// A body whose bytes from `at` on wait at the gate.
    pub(super) fn gated(bytes: &Bytes, at: usize, gate: Gate) -> Self {
        let at = at.min(bytes.len());
        Self { first: bytes.slice(..at), gate: Some(Box::pin(gate.pass())), rest: bytes.slice(at..) }
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !self.first.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.first)))));
        }
        if let Some(gate) = &mut self.gate {
            ready!(gate.as_mut().poll(cx));
            self.gate = None;
        }
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.rest)))))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact((self.first.len() + self.rest.len()) as u64)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn a_gated_body_keeps_its_last_part_until_the_gate_opens() {
        let (keeper, gate) = Gate::closed();
        let mut body = Payload::gated(&Bytes::from_static(b"abc"), 2, gate);
        assert_eq!(body.size_hint().exact(), Some(3));
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(&first[..], b"ab");
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert!(Pin::new(&mut body).poll_frame(&mut context).is_pending());
        keeper.open();
        let last = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(&last[..], b"c");
        assert!(body.is_end_stream());
    }
}
