//! The loop that accepts connections, and what becomes of each.

use crate::reference::app::App;
use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// Work in flight gets this long to finish when the server stops.
const GRACE: Duration = Duration::from_secs(5);
/// Interrupted work and answers on their way get this long after that.
pub(super) const LAST_CALL: Duration = Duration::from_secs(1);
/// The most connections held at once. More wait in the queue of the system.
const MOST_CONNECTIONS: usize = 1024;
/// How often expired records are removed.
const SWEEP: Duration = Duration::from_secs(30);
/// The pause after a failed accept, such as one for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Marks a response in whose place the connection is closed.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the worker died")]
pub(in crate::reference) struct Died;

/// Serves until told to stop (or until nobody is left to tell), then winds down.
pub(super) async fn serve(listener: TcpListener, app: Arc<App>, router: Router, mut stop: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        tokio::select! {
            () = told_to(&mut stop) => break,
            Some(_) = connections.join_next() => {}
            (stream, place) = accept(&listener, &places) => {
                let connection = connection(stream, router.clone(), stop.clone(), app.contract.finishes && !app.faults.aborts());
                connections.spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
        }
    }
    drop(listener);
    // What does not finish in time is interrupted and gives its key back.
    if timeout(GRACE, app.load.idle()).await.is_err() {
        app.load.give_up();
        let _ = timeout(LAST_CALL, app.load.idle()).await;
    }
    // A request that never arrived whole keeps nobody waiting for longer than this.
    let _ = timeout(LAST_CALL, async { while connections.join_next().await.is_some() {} }).await;
}

/// Waits until the server is told to stop, or until nobody is left to tell it.
pub(super) async fn told_to(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> (TcpStream, impl Drop + use<>) {
    loop {
        // The semaphore is never closed, so a place comes sooner or later.
        let Ok(place) = Arc::clone(places).acquire_owned().await else { return std::future::pending().await };
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(_) => sleep(PAUSE).await,
        }
    }
}

async fn connection(stream: TcpStream, router: Router, mut stop: watch::Receiver<bool>, finishes: bool) {
    // Answers are small and written at once, so waiting for more to send would only cost time.
    let _ = stream.set_nodelay(true);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request| {
        let answered = router.call(request);
        async move {
            let Ok(response) = answered.await;
            match response.extensions().get::<Died>() {
                Some(died) => Err(*died),
                None => Ok(response),
            }
        }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            // A client that has said all it wants to say may still listen for the answer, unless that is its hanging up.
            .half_close(finishes)
            .serve_connection(TokioIo::new(stream), service)
    );
    tokio::select! {
        // Whatever ends a connection early, its client is gone or spoke no HTTP.
        _ = connection.as_mut() => return,
        () = told_to(&mut stop) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Removes expired records for ever.
pub(super) async fn sweep(app: Arc<App>) {
    let mut ticks = interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // A store that cannot sweep now is swept later; expiry is decided by time stamps.
        if app.contract.forgets() {
            let _ = app.store.sweep(app.clock.now()).await;
        }
    }
}
