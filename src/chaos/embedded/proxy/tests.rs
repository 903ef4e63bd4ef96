#![allow(clippy::unwrap_used, clippy::panic)]
//! The barrier, with a connection that the test plays itself.

use std::pin::pin;
use std::task::Poll;

use super::*;

fn with_connection() -> (Arc<Proxy>, mpsc::UnboundedReceiver<Control>) {
    let proxy = Proxy::new("p".to_owned(), String::new(), "x:1".to_owned(), &Common::new(1));
    let (sender, control) = mpsc::unbounded_channel();
    proxy.state().connections.insert(1, sender);
    (proxy, control)
}

fn body(text: &str) -> Fields {
    Fields::decode(text.as_bytes()).unwrap()
}

/// Polls once.
async fn is_pending<T>(work: &mut std::pin::Pin<&mut impl Future<Output = T>>) -> bool {
    std::future::poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx).is_pending())).await
}

#[tokio::test]
async fn a_change_is_answered_only_when_the_connection_has_followed() {
    let (proxy, mut control) = with_connection();
    let noop = body(r#"{"type":"noop","stream":"upstream"}"#);
    let mut adding = pin!(proxy.add_toxic(&noop));
    assert!(is_pending(&mut adding).await);
    let order = control.try_recv().unwrap();
    assert!(matches!(order.order, Order::Change(Stream::Upstream, Change::Add(_))));
    assert!(is_pending(&mut adding).await, "received is not followed");
    drop(order);
    adding.await.unwrap();

    let change = body("{}");
    let mut updating = pin!(proxy.update_toxic("noop_upstream", &change));
    assert!(is_pending(&mut updating).await);
    drop(control.try_recv().unwrap());
    updating.await.unwrap();

    let mut removing = pin!(proxy.remove_toxic("noop_upstream"));
    assert!(is_pending(&mut removing).await);
    // A connection that ends has followed everything.
    drop(control);
    removing.await.unwrap();
}

#[tokio::test]
async fn a_connection_that_never_follows_is_admitted_with_503() {
    let (proxy, _control) = with_connection();
    let refusal = proxy.add_toxic(&body(r#"{"type":"noop"}"#)).await.unwrap_err();
    assert_eq!(refusal.status, 503);
    assert_eq!(proxy.toxics_json().as_array().unwrap().len(), 1, "the toxic is there all the same");
}

#[tokio::test]
async fn a_connection_that_has_ended_leaves_the_list() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let proxy = Proxy::new("p".to_owned(), "127.0.0.1:0".to_owned(), nobody.to_string(), &Common::new(1));
    proxy.start().await.unwrap();
    let listen = proxy.state().listen.clone();
    let mut client = tokio::net::TcpStream::connect(listen).await.unwrap();
    assert_eq!(tokio::io::AsyncReadExt::read(&mut client, &mut [0]).await.unwrap(), 0);
    let emptied = async {
        while !proxy.state().connections.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), emptied).await.unwrap();
    assert_eq!(proxy.state().accepted, 1);
}
