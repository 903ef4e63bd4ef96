//! The port in front of several nodes: each connection goes to the next node.
//!
//! Bytes are passed on as they come, so what a client does to its connection happens to the node's connection too.

use super::connections::told_to;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The most connections held at once. More wait in the queue of the system.
const MOST_CONNECTIONS: usize = 1024;
/// The pause after a failed accept, such as one for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Spreads connections over the nodes until told to stop. Those that exist then go on until their node ends them.
pub(super) async fn serve(listener: TcpListener, nodes: Vec<SocketAddr>, mut stop: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut turns = nodes.iter().copied().cycle();
    loop {
        // The semaphore is never closed, and a cycle has no end unless there is no node at all.
        let next = async { Some((Arc::clone(&places).acquire_owned().await.ok()?, listener.accept().await)) };
        tokio::select! {
            () = told_to(&mut stop) => break,
            Some(_) = connections.join_next() => {}
            Some((place, accepted)) = next => match (accepted, turns.next()) {
                (Ok((client, _)), Some(node)) => {
                    connections.spawn(async move {
                        pass(client, node).await;
                        drop(place);
                    });
                }
                _ => sleep(PAUSE).await,
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Passes bytes both ways. Whatever ends one side ends the other: a close, or a reset.
async fn pass(mut client: TcpStream, node: SocketAddr) {
    let Ok(mut node) = TcpStream::connect(node).await else { return };
    let _ = (client.set_nodelay(true), node.set_nodelay(true));
    let _ = copy_bidirectional(&mut client, &mut node).await;
}
