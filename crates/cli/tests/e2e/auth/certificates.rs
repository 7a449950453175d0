//! Clients that show a certificate.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::gateway::{Gateway, document};
use crate::http::{Answer, CHAT, Client, request};
use crate::sims::{fast, fleet, prompt};
use crate::tls::certificate;

/// Signs clients' certificates.
struct Authority(Issuer<'static, KeyPair>);

impl Authority {
    fn new(folder: &Path, file: &str) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        std::fs::write(folder.join(file), params.self_signed(&key).unwrap().pem()).unwrap();
        Self(Issuer::new(params, key))
    }

    fn certify(&self, name: &str) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.subject_alt_names.push(SanType::URI(name.try_into().unwrap()));
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &self.0).unwrap();
        (signed.der().clone(), PrivateKeyDer::try_from(key.serialize_der()).unwrap())
    }
}

async fn chat(
    to: SocketAddr,
    server: &CertificateDer<'static>,
    own: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
) -> std::io::Result<Answer> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(server.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match own {
        Some((certificate, key)) => config.with_client_auth_cert(vec![certificate], key).unwrap(),
        None => config.with_no_client_auth(),
    };
    let io = TcpStream::connect(to).await?;
    let name = ServerName::try_from("gateway.test").unwrap();
    let mut io = TlsConnector::from(Arc::new(config)).connect(name, io).await?;
    // A refusal of the certificate comes with the first bytes that are read.
    let body = prompt("Hi", 2).to_string();
    let bytes = request("POST", CHAT, &[], body.as_bytes());
    io.write_all(&bytes).await?;
    let mut first = [0];
    io.read_exact(&mut first).await?;
    Ok(Client::resumed(io, &first).answer().await)
}

#[tokio::test]
async fn a_certificate_is_its_caller() {
    let folder = tempfile::tempdir().unwrap();
    let server = certificate(folder.path());
    let ours = Authority::new(folder.path(), "clients.pem");
    let strangers = Authority::new(folder.path(), "strangers.pem");
    let fleet = fleet(1, fast()).await;
    for (mode, without) in [("optional", Some(401)), ("required", None)] {
        let extra = json!({
            "auth": { "callers": [{ "name": "web", "match": { "certificate": "spiffe://test/web" } }] },
            "listener": { "tls": {
                "address": "127.0.0.1:0",
                "certFile": folder.path().join("cert.pem"), "keyFile": folder.path().join("key.pem"),
                "clientCaFile": folder.path().join("clients.pem"), "clientCertificates": mode,
            } },
        });
        let gateway = Gateway::with_document(&document(&fleet.urls(), extra), &[]).await;
        gateway.scraped(1).await;
        let to = gateway.tls.unwrap();
        let known = chat(to, &server, Some(ours.certify("spiffe://test/web"))).await.unwrap();
        assert_eq!(known.status, 200, "{mode}");
        let other = chat(to, &server, Some(ours.certify("spiffe://test/other"))).await.unwrap();
        assert_eq!((other.status, other.code()), (403, "caller_not_allowed".to_owned()));
        let none = chat(to, &server, None).await.ok().map(|answer| answer.status);
        assert_eq!(none, without, "{mode}");
        let stranger = chat(to, &server, Some(strangers.certify("spiffe://test/web"))).await;
        assert!(stranger.is_err(), "a certificate of somebody else's");
        // Without TLS nobody can show one.
        let plain = crate::http::chat(gateway.traffic, &prompt("Hi", 2)).await;
        assert_eq!(plain.status, 401);
        assert!(gateway.metric("wicketgate_auth_accepted_total", &["certificate"]).await >= 1.0);
    }
}
