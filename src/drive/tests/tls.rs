//! The same discipline inside TLS.

use std::sync::{Arc, Mutex};

use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::io::AsyncReadExt;
use tokio_rustls::TlsAcceptor;

use super::support::{Effects, Peer, counted, options, perform_on, plan, schedule, send, serve};
use crate::{
    chaos::{Client as Chaos, Embedded},
    drive::{Driver, Options, wire},
    history::{End, History, Witness},
    schedule::{AttemptPlan, Step},
    suite::NetworkFault,
};

/// A self-signed certificate for `localhost` and `127.0.0.1`, made for these tests and trusted nowhere else.
const CERTIFICATE: &[u8] = include_bytes!("localhost.pem");
const KEY: &[u8] = include_bytes!("localhost.key");

fn acceptor() -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], PrivateKeyDer::from_pem_slice(KEY).unwrap())
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

fn trusting() -> tokio_rustls::TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(CERTIFICATE).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    wire::tls_from(config)
}

async fn api() -> Peer {
    let effects = Effects::default();
    let acceptor = acceptor();
    Peer::start(move |client| {
        let (effects, acceptor) = (effects.clone(), acceptor.clone());
        async move {
            if let Ok(mut stream) = acceptor.accept(client.stream).await {
                serve(&mut stream, &effects).await;
            }
        }
    })
    .await
}

async fn perform(peer: &Peer, steps: Vec<Step>) -> History {
    let proxy = Embedded::start("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let chaos = Chaos::new(proxy.url(), "r1").unwrap();
    let target = counted(&format!("https://localhost:{}", peer.addr.port()));
    let schedule = schedule(&target, steps);
    let options = Options { chaos: Some(chaos), ..options() };
    let driver = Driver::with_tls(Arc::new(target), options, Some(trusting())).unwrap();
    let history = perform_on(&driver, &schedule).await;
    proxy.stop().await;
    history
}

fn faulty(fault: NetworkFault) -> AttemptPlan {
    AttemptPlan { fault: Some(fault), ..plan("faulty") }
}

fn assert_witnessed(history: &History) {
    let attempt = history.attempt("faulty").unwrap();
    assert!(matches!(attempt.end, End::Lost(_)), "{attempt:#?}");
    let fault = attempt.fault.as_ref().unwrap();
    assert!(matches!(fault.witness, Witness::Witnessed(_)), "{attempt:#?}");
}

#[tokio::test]
async fn plain_bytes_are_counted_above_tls() {
    let peer = api().await;
    let history = perform(&peer, vec![send(plan("a"))]).await;
    let attempt = &history.attempts[0];
    assert_eq!(attempt.end, End::Answered, "{attempt:#?}");
    let head_and_body = attempt.bytes_out;
    let plain = Peer::answering(super::support::CREATED).await;
    let mut target = super::support::plain(plain.addr);
    // A host of the same length.
    target.nodes = vec![format!("http://localhost:{}", plain.addr.port()).parse().unwrap()];
    let same = super::support::perform(target, vec![send(plan("a"))]).await;
    let ports = [peer.addr.port(), plain.addr.port()].map(|port| port.to_string().len() as u64);
    assert_eq!(head_and_body - ports[0], same.attempts[0].bytes_out - ports[1]);
    peer.finish().await;
    plain.finish().await;
}

#[tokio::test]
async fn an_untrusted_certificate_is_not_sent_to() {
    let peer = api().await;
    let target = counted(&format!("https://localhost:{}", peer.addr.port()));
    let history = super::support::perform(target, vec![send(plan("a"))]).await;
    assert!(matches!(&history.attempts[0].end, End::NotSent(why) if why.contains("TLS")), "{history:#?}");
    peer.finish().await;
}

#[tokio::test]
async fn a_lost_response_is_witnessed_inside_tls() {
    let peer = api().await;
    let history = perform(&peer, vec![send(faulty(NetworkFault::LoseResponse))]).await;
    assert_witnessed(&history);
    assert_eq!(history.attempts[0].bytes_in, 0);
    peer.finish().await;
}

#[tokio::test]
async fn a_cut_response_is_witnessed_inside_tls() {
    let peer = api().await;
    let history = perform(&peer, vec![send(plan("whole")), send(faulty(NetworkFault::CutResponse))]).await;
    assert_witnessed(&history);
    peer.finish().await;
}

#[tokio::test]
async fn a_request_body_is_cut_in_its_middle_inside_tls() {
    let last = Arc::new(Mutex::new(Vec::new()));
    let peer = {
        let (last, acceptor) = (Arc::clone(&last), acceptor());
        Peer::start(move |client| {
            let (last, acceptor) = (Arc::clone(&last), acceptor.clone());
            async move {
                let mut stream = acceptor.accept(client.stream).await.unwrap();
                let primed = super::support::read_request(&mut stream).await.unwrap();
                let answer = Effects::default().answer(&primed);
                tokio::io::AsyncWriteExt::write_all(&mut stream, answer.as_bytes()).await.unwrap();
                tokio::io::AsyncWriteExt::flush(&mut stream).await.unwrap();
                let mut bytes = Vec::new();
                let _ = stream.read_to_end(&mut bytes).await;
                if !bytes.is_empty() {
                    *last.lock().unwrap() = bytes;
                }
            }
        })
        .await
    };
    let history = perform(&peer, vec![send(faulty(NetworkFault::CutRequestBody))]).await;
    peer.finish().await;
    assert_witnessed(&history);
    let text = String::from_utf8(last.lock().unwrap().clone()).unwrap();
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    let payload = &history.attempts[0].payload;
    assert_eq!(body, &payload[..payload.len() / 2]);
}
