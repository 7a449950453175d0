//! Mutual TLS between members and routers.

use config::MutualTls;
use tls::{ClientCertificates, ClientFiles, Identity, ServerFiles};

/// For who listens: the other side must show a certificate of these authorities.
pub(crate) fn server(files: &MutualTls) -> ServerFiles {
    let identity = Identity::Files { cert: files.cert_file.clone(), key: files.key_file.clone() };
    let clients = ClientCertificates::Required(files.ca_file.clone());
    ServerFiles { identity, clients, protocols: &[] }
}

/// For who connects.
pub(crate) fn client(files: &MutualTls) -> ClientFiles {
    ClientFiles {
        ca: Some(files.ca_file.clone()),
        own: Some((files.cert_file.clone(), files.key_file.clone())),
        protocols: &[],
    }
}
