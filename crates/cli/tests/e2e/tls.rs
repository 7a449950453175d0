//! TLS towards clients: both versions by ALPN, and certificates that change.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rcgen::CertifiedKey;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::gateway::{Gateway, document};
use crate::http::{CHAT, Client, request};
use crate::http2::Http2;
use crate::sims::{fast, fleet, prompt, streamed};

/// Makes a certificate with its files in `folder`.
pub(crate) fn certificate(folder: &Path) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["gateway.test".to_owned()]).unwrap();
    std::fs::write(folder.join("cert.pem"), cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), signing_key.serialize_pem()).unwrap();
    cert.der().clone()
}

pub(crate) async fn connect(
    to: SocketAddr,
    trusted: &[CertificateDer<'static>],
    protocols: &[&str],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    for certificate in trusted {
        roots.add(certificate.clone()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    let io = TcpStream::connect(to).await?;
    TlsConnector::from(Arc::new(config))
        .connect(ServerName::try_from("gateway.test").unwrap(), io)
        .await
}

pub(crate) async fn start(folder: &Path, extra: Value) -> (sim::Fleet, Gateway) {
    let fleet = fleet(1, fast()).await;
    let tls = json!({
        "address": "127.0.0.1:0", "certFile": folder.join("cert.pem"), "keyFile": folder.join("key.pem"),
    });
    let mut document = document(&fleet.urls(), extra);
    document["spec"]["listener"]["tls"] = tls;
    let gateway = Gateway::with_document(&document, &[]).await;
    (fleet, gateway)
}

/// The point 3.
#[tokio::test]
async fn tls_serves_http2_and_http_1_1_as_the_client_asks() {
    let folder = tempfile::tempdir().unwrap();
    let trusted = [certificate(folder.path())];
    let (_fleet, gateway) = start(folder.path(), json!({})).await;
    let to = gateway.tls.unwrap();
    for (offered, agreed) in [
        (&["h2", "http/1.1"][..], Some(&b"h2"[..])),
        (&["http/1.1"], Some(b"http/1.1")),
        (&[], None),
    ] {
        let io = connect(to, &trusted, offered).await.unwrap();
        assert_eq!(io.get_ref().1.alpn_protocol(), agreed);
        let answer = if agreed == Some(b"h2") {
            Http2::over(io).await.post(CHAT, &[], &[streamed("Hi", 5).to_string().as_bytes()]).await
        } else {
            let mut client = Client::new(io);
            client
                .send(&request("POST", CHAT, &[], streamed("Hi", 5).to_string().as_bytes()))
                .await;
            client.answer().await
        };
        assert!(
            answer.status == 200 && answer.complete && answer.text().ends_with("data: [DONE]\n\n"),
            "{answer:?}"
        );
    }
    // Beside it, the listener without TLS.
    assert_eq!(crate::http::chat(gateway.traffic, &prompt("Hi", 2)).await.status, 200);
}

/// Nothing but TLS is spoken there, and a stranger costs nobody anything.
#[tokio::test]
async fn bytes_that_are_no_tls_end_their_connection_only() {
    let folder = tempfile::tempdir().unwrap();
    let trusted = [certificate(folder.path())];
    let (_fleet, gateway) = start(folder.path(), json!({})).await;
    let to = gateway.tls.unwrap();
    let mut stranger = Client::connect(to).await;
    stranger.send(b"GET /v1/models HTTP/1.1\r\nHost: gateway\r\n\r\n").await;
    let mut rest = Vec::new();
    let _ = tokio::io::AsyncReadExt::read_to_end(&mut stranger.io, &mut rest).await;
    assert!(!rest.starts_with(b"HTTP"), "an answer in the clear");
    let unknown = connect(to, &[], &["http/1.1"]).await;
    assert!(unknown.is_err(), "a client that does not trust us leaves");
    assert!(connect(to, &trusted, &["http/1.1"]).await.is_ok());
}

/// The point 3: certificate reload; not one failed handshake on the way.
#[tokio::test]
async fn a_new_certificate_takes_force_without_a_failed_handshake() {
    let folder = tempfile::tempdir().unwrap();
    let old = certificate(folder.path());
    let (_fleet, gateway) = start(folder.path(), json!({})).await;
    let to = gateway.tls.unwrap();
    let mut kept =
        Client::new(connect(to, std::slice::from_ref(&old), &["http/1.1"]).await.unwrap());

    // Broken first: the old one stays, and the log says so.
    std::fs::write(folder.path().join("cert.pem"), "-----BEGIN CERTIFICATE-----\nno\n").unwrap();
    gateway.said("new certificates are not usable; the old ones stay").await;
    assert!(connect(to, std::slice::from_ref(&old), &[]).await.is_ok());

    let new = certificate(folder.path());
    let both = [old.clone(), new.clone()];
    gateway
        .until("the new one is presented", async || {
            let io = connect(to, &both, &["http/1.1"]).await.expect("a handshake failed");
            io.get_ref().1.peer_certificates().unwrap()[0] == new
        })
        .await;
    assert!(connect(to, &[old], &[]).await.is_err());
    kept.send(&request("POST", CHAT, &[], prompt("Hi", 2).to_string().as_bytes())).await;
    assert_eq!(kept.answer().await.status, 200, "an old connection lives on");
}

/// Alerts and `wicketgate doctor` go by it.
#[tokio::test]
async fn the_end_of_the_certificate_in_use_is_on_the_page_of_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let ending = |year| {
        let mut params = rcgen::CertificateParams::new(vec!["gateway.test".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        std::fs::write(folder.path().join("key.pem"), key.serialize_pem()).unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        std::fs::write(folder.path().join("cert.pem"), pem).unwrap();
    };
    ending(2031);
    let (_fleet, gateway) = start(folder.path(), json!({})).await;
    let shows = async |seconds: f64| {
        let metric = "wicketgate_certificate_expiry_timestamp_seconds";
        gateway
            .until("the end is shown", async || gateway.metric(metric, &[]).await == seconds)
            .await;
    };
    shows(1_924_992_000.0).await;
    ending(2032);
    shows(1_956_528_000.0).await;
}
