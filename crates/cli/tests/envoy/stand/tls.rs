//! Certificates for Envoy and the picker, of one authority.

use std::path::Path;

use rcgen::{CertificateParams, DnType, Issuer, KeyPair};

/// What the two have to be told.
pub(super) struct Tls {
    pub(super) arguments: Vec<String>,
    /// For Envoy's cluster.
    pub(super) transport_socket: String,
}

pub(super) fn make(folder: &Path) -> Tls {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, "authority");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let file = |name: &str| folder.join(name).display().to_string();
    std::fs::write(file("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(params, key);
    for name in ["picker", "envoy"] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![format!("{name}.test")]).unwrap();
        // Of its own: BoringSSL takes a certificate whose subject is its issuer's for self-signed.
        params.distinguished_name.push(DnType::CommonName, name);
        let cert = params.signed_by(&key, &issuer).unwrap().pem();
        std::fs::write(file(&format!("{name}.pem")), cert).unwrap();
        std::fs::write(file(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }
    let arguments = [("cert", "picker.pem"), ("key", "picker.key"), ("client-ca", "ca.pem")]
        .map(|(flag, name)| format!("--tls-{flag}={}", file(name)));
    let transport_socket = format!(
        r#"    transport_socket:
      name: envoy.transport_sockets.tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        sni: picker.test
        common_tls_context:
          alpn_protocols: [h2]
          tls_certificates:
          - certificate_chain: {{ filename: {} }}
            private_key: {{ filename: {} }}
          validation_context:
            trusted_ca: {{ filename: {} }}
            match_typed_subject_alt_names:
            - {{ san_type: DNS, matcher: {{ exact: picker.test }} }}
"#,
        file("envoy.pem"),
        file("envoy.key"),
        file("ca.pem"),
    );
    Tls { arguments: arguments.into(), transport_socket }
}
