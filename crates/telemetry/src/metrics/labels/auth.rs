//! Who is let in.

use super::Label;

label! {
    /// What a request was let in by.
    AuthMeans {
        ApiKey = "api_key",
        /// A token whose signature was verified now.
        Token = "token",
        /// A token whose signature was verified a short while ago.
        KnownToken = "known_token",
        Certificate = "certificate",
        Anonymous = "anonymous",
    }
}

label! {
    /// Why authentication turned a request away.
    AuthRefusal {
        Missing = "missing",
        Ambiguous = "ambiguous",
        Malformed = "malformed",
        Algorithm = "algorithm",
        Issuer = "issuer",
        Expired = "expired",
        NotYetValid = "not_yet_valid",
        Signature = "signature",
        UnknownKeyId = "unknown_key_id",
        /// Signing keys could not be fetched in time.
        KeysUnavailable = "keys_unavailable",
        Audience = "audience",
        Claims = "claims",
        UnknownKey = "unknown_key",
        KeyExpired = "key_expired",
        KeyRevoked = "key_revoked",
        /// No caller of the document matches.
        NoCaller = "no_caller",
        NotSetUp = "not_set_up",
    }
}

label! {
    /// How a fetch of signing keys went.
    JwksFetch {
        Ok = "ok",
        Connect = "connect",
        /// The certificate is not trusted, or TLS failed otherwise.
        Tls = "tls",
        Timeout = "timeout",
        /// Any status but 200; redirects are not followed.
        Status = "status",
        TooLarge = "too_large",
        /// No key set, or one without a usable key.
        Unusable = "unusable",
        Broken = "broken",
    }
}
