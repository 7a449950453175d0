//! An issuer of tokens: signing keys and an HTTPS server that publishes them.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use data_encoding::BASE64URL_NOPAD;
use rcgen::CertifiedKey;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub(super) const ISSUER: &str = "https://idp.test";

/// A key that signs tokens.
pub(super) struct Signer {
    pair: EcdsaKeyPair,
    kid: String,
}

impl Signer {
    pub(super) fn new(kid: &str) -> Self {
        let (algorithm, rng) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &rng).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &rng).unwrap();
        Self { pair, kid: kid.to_owned() }
    }

    pub(super) fn jwk(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let part = |bytes| BASE64URL_NOPAD.encode(bytes);
        json!({ "kty": "EC", "crv": "P-256", "kid": self.kid, "x": part(&point[1..33]), "y": part(&point[33..]) })
    }

    /// A token for `gateway` that expires in so many seconds.
    pub(super) fn token(&self, lives: i64, more: Value) -> String {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() as i64;
        let mut claims =
            json!({ "iss": ISSUER, "sub": "alice", "aud": "gateway", "exp": now + lives });
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let part = |part: Value| BASE64URL_NOPAD.encode(part.to_string().as_bytes());
        let message =
            format!("{}.{}", part(json!({ "alg": "ES256", "kid": self.kid })), part(claims));
        let signed = self.pair.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        format!("{message}.{}", BASE64URL_NOPAD.encode(signed.as_ref()))
    }
}

/// What the server answers to every request; whole, with its head.
type Page = Arc<Mutex<String>>;

/// A server of signing keys at `https://localhost:PORT/keys`.
pub(super) struct Issuer {
    address: SocketAddr,
    page: Page,
    pub(super) asked: Arc<std::sync::atomic::AtomicUsize>,
}

impl Issuer {
    /// Starts it; who has signed its certificate stands in `ca.pem` in the folder.
    pub(super) async fn start(folder: &Path, keys: &[Value]) -> Self {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(folder.join("ca.pem"), cert.pem()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![cert.der().clone()],
                PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap(),
            )
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = Self {
            address: listener.local_addr().unwrap(),
            page: Page::default(),
            asked: Arc::default(),
        };
        issuer.publish(keys);
        let (page, asked) = (issuer.page.clone(), issuer.asked.clone());
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((io, _)) = listener.accept().await {
                let (acceptor, page, asked) = (acceptor.clone(), page.clone(), asked.clone());
                tokio::spawn(async move {
                    let Ok(mut io) = acceptor.accept(io).await else { return };
                    let mut read = [0; 4096];
                    let _ = io.read(&mut read).await;
                    asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let page = page.lock().unwrap().clone();
                    let _ = io.write_all(page.as_bytes()).await;
                    let _ = io.shutdown().await;
                });
            }
        });
        issuer
    }

    pub(super) fn publish(&self, keys: &[Value]) {
        let body = json!({ "keys": keys }).to_string();
        self.answer(&format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()));
    }

    pub(super) fn answer(&self, page: &str) {
        page.clone_into(&mut self.page.lock().unwrap());
    }

    pub(super) fn uri(&self) -> String {
        format!("https://localhost:{}/keys", self.address.port())
    }

    /// The provider as it stands in a document.
    pub(super) fn provider(&self, folder: &Path) -> Value {
        json!({
            "name": "idp", "issuer": ISSUER, "audiences": ["gateway"],
            "remoteJWKS": { "uri": self.uri() },
            "jwks": { "caFile": folder.join("ca.pem"), "cache": "10s" },
        })
    }
}
