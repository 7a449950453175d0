//! Encrypted, verified, and changed while we run.

use std::path::Path;

use rcgen::{CertificateParams, Issuer, KeyPair};
use tls::{ClientCertificates, Identity, ServerFiles};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use wicketgate_extproc::PROTOCOLS;

use crate::client::check;
use crate::server::Server;

/// An authority and what it signs.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Certificate and key for `name`.
    fn sign(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

fn write(folder: &Path, (cert, key): &(String, String)) -> Identity {
    let identity = Identity::Files { cert: folder.join("cert.pem"), key: folder.join("key.pem") };
    std::fs::write(folder.join("cert.pem"), cert).unwrap();
    std::fs::write(folder.join("key.pem"), key).unwrap();
    identity
}

fn files(identity: Identity, clients: ClientCertificates) -> ServerFiles {
    ServerFiles { identity, clients, protocols: PROTOCOLS }
}

async fn connect(
    server: &Server,
    config: ClientTlsConfig,
) -> Result<Channel, tonic::transport::Error> {
    Endpoint::new(format!("https://{}", server.ext_proc))?.tls_config(config)?.connect().await
}

fn trusting(authority: &Authority) -> ClientTlsConfig {
    ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(&authority.pem))
        .domain_name("epp.test")
}

#[tokio::test]
async fn a_client_that_verifies_is_served_and_one_without_tls_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let identity = write(folder.path(), &authority.sign("epp.test"));
    let server = Server::start("", Some(files(identity, ClientCertificates::NotAsked))).await;
    let channel = connect(&server, trusting(&authority)).await.unwrap();
    assert!(check(channel, "").await.is_ok());
    assert!(connect(&server, trusting(&Authority::new())).await.is_err(), "another authority");
    let plain = Endpoint::new(format!("http://{}", server.ext_proc)).unwrap().connect().await;
    if let Ok(plain) = plain {
        assert!(check(plain, "").await.is_err());
    }
}

#[tokio::test]
async fn a_changed_certificate_is_shown_to_the_next_connection() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (Authority::new(), Authority::new());
    let identity = write(folder.path(), &old.sign("epp.test"));
    let server = Server::start("", Some(files(identity, ClientCertificates::NotAsked))).await;
    let kept = connect(&server, trusting(&old)).await.unwrap();
    write(folder.path(), &new.sign("epp.test"));
    let waiting = async {
        while connect(&server, trusting(&new)).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(crate::server::PATIENCE, waiting).await.expect("the new one is shown");
    assert!(check(kept, "").await.is_ok(), "old connections live on");
}

#[tokio::test]
async fn with_client_authorities_only_their_clients_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (Authority::new(), Authority::new());
    let identity = write(folder.path(), &ours.sign("epp.test"));
    let client_ca = folder.path().join("clients.pem");
    std::fs::write(&client_ca, &theirs.pem).unwrap();
    let files = files(identity, ClientCertificates::Required(client_ca));
    let server = Server::start("", Some(files)).await;
    let with = |authority: &Authority| {
        let (cert, key) = authority.sign("envoy.test");
        trusting(&ours).identity(tonic::transport::Identity::from_pem(cert, key))
    };
    let channel = connect(&server, with(&theirs)).await.unwrap();
    assert!(check(channel, "").await.is_ok());
    for config in [trusting(&ours), with(&ours)] {
        // In TLS 1.3 the refusal comes after the client's handshake.
        if let Ok(channel) = connect(&server, config).await {
            assert!(check(channel, "").await.is_err());
        }
    }
}
