//! `jsonwebtoken`'s signatures by `ring`, the process's one library of cryptography.
//!
//! Only what a gateway does: verifying, with public keys. There is no signing, and a shared secret
//! (HMAC) verifies nothing.

use std::sync::Once;

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use ring::signature::{
    self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use signature_traits::{Error, Verifier};

use ::signature as signature_traits;

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

pub(super) fn install() {
    static ONCE: Once = Once::new();
    // Whoever installed another one before was not us; its signatures are as good.
    ONCE.call_once(|| {
        let _ = PROVIDER.install_default();
    });
}

enum How {
    Rsa(&'static RsaParameters),
    Other(&'static dyn VerificationAlgorithm),
}

struct ByRing {
    algorithm: Algorithm,
    how: How,
    key: DecodingKeyKind,
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let (family, how) = match algorithm {
        Algorithm::RS256 => {
            (AlgorithmFamily::Rsa, How::Rsa(&signature::RSA_PKCS1_2048_8192_SHA256))
        }
        Algorithm::RS384 => {
            (AlgorithmFamily::Rsa, How::Rsa(&signature::RSA_PKCS1_2048_8192_SHA384))
        }
        Algorithm::RS512 => {
            (AlgorithmFamily::Rsa, How::Rsa(&signature::RSA_PKCS1_2048_8192_SHA512))
        }
        Algorithm::PS256 => (AlgorithmFamily::Rsa, How::Rsa(&signature::RSA_PSS_2048_8192_SHA256)),
        Algorithm::PS384 => (AlgorithmFamily::Rsa, How::Rsa(&signature::RSA_PSS_2048_8192_SHA384)),
        Algorithm::PS512 => (AlgorithmFamily::Rsa, How::Rsa(&signature::RSA_PSS_2048_8192_SHA512)),
        Algorithm::ES256 => (AlgorithmFamily::Ec, How::Other(&signature::ECDSA_P256_SHA256_FIXED)),
        Algorithm::ES384 => (AlgorithmFamily::Ec, How::Other(&signature::ECDSA_P384_SHA384_FIXED)),
        Algorithm::EdDSA => (AlgorithmFamily::Ed, How::Other(&signature::ED25519)),
        _ => return Err(ErrorKind::UnsupportedAlgorithm.into()),
    };
    if key.family() != family {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    Ok(Box::new(ByRing { algorithm: *algorithm, how, key: key.kind().clone() }))
}

impl Verifier<Vec<u8>> for ByRing {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let verified = match (&self.how, &self.key) {
            (How::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (How::Other(algorithm), DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(*algorithm, key).verify(message, signature)
            }
            _ => return Err(Error::new()),
        };
        verified.map_err(|_| Error::new())
    }
}

impl JwtVerifier for ByRing {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
