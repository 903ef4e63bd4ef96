//! The loop that accepts callers of the API. A caller that is slow with its request is cut off, and callers are counted,
//! so that no number of them keeps others from being answered for long.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// Longest wait for the head of a request, as in Toxiproxy.
pub(super) const HEAD_WAIT: Duration = Duration::from_secs(15);
/// How long calls that are being answered may take to finish when the server stops.
const FAREWELL: Duration = Duration::from_secs(2);
/// Pause after a failed accept, which means that file descriptors are short.
const PAUSE: Duration = Duration::from_millis(20);

/// Serves until told to stop, or until nobody is left to tell. Callers beyond a number wait in the queue of the system.
pub(super) async fn serve(listener: TcpListener, router: Router, mut stop: watch::Receiver<bool>, head_wait: Duration) {
    let mut callers = JoinSet::new();
    let places = Arc::new(Semaphore::new(super::common::callers()));
    loop {
        tokio::select! {
            () = told_to(&mut stop) => break,
            Some(_) = callers.join_next() => {}
            (stream, place) = accept(&listener, &places) => {
                let caller = caller(stream, router.clone(), stop.clone(), head_wait);
                callers.spawn(async move {
                    caller.await;
                    drop(place);
                });
            }
        }
    }
    drop(listener);
    let _ = tokio::time::timeout(FAREWELL, async { while callers.join_next().await.is_some() {} }).await;
}

/// Waits until the server is told to stop, or until nobody is left to tell it.
async fn told_to(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> (TcpStream, impl Drop + use<>) {
    loop {
        // The semaphore is never closed, so a place comes sooner or later.
        let Ok(place) = Arc::clone(places).acquire_owned().await else { return std::future::pending().await };
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn caller(stream: TcpStream, router: Router, mut stop: watch::Receiver<bool>, head_wait: Duration) {
    // Answers are small and written at once, so waiting for more to send would only cost time.
    let _ = stream.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_wait)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = pin!(connection);
    tokio::select! {
        // A caller that breaks off or sends nonsense has been answered as far as it can be.
        _ = connection.as_mut() => return,
        () = told_to(&mut stop) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn callers_that_are_slow_with_the_head_are_cut_off() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let serving = tokio::spawn(serve(listener, Router::new(), stopped, Duration::from_millis(100)));
        let mut slow = TcpStream::connect(addr).await.unwrap();
        slow.write_all(b"GET /version HTTP/1.1\r\nHo").await.unwrap();
        let mut answer = Vec::new();
        tokio::time::timeout(Duration::from_secs(30), slow.read_to_end(&mut answer)).await.unwrap().unwrap();
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"));
        drop(stop);
        tokio::time::timeout(Duration::from_secs(30), serving).await.unwrap().unwrap();
    }
}
