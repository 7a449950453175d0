//! Who may send requests (AWS's `auth` block).

/// One JWT provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth {
    pub jwt: Jwt,
}

/// An OpenID Connect provider and what its tokens must say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jwt {
    pub name: String,
    /// Compared with the `iss` claim; `https://…`.
    pub issuer: String,
    /// Where the signing keys are; `https://…`.
    pub jwks_uri: String,
    /// Accepted `aud` values, at most 8. Never empty together with `required_claims`.
    pub audiences: Vec<String>,
    /// At most 16; when there are any, a token that fails one is refused.
    pub required_claims: Vec<RequiredClaim>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredClaim {
    pub name: String,
    pub value_type: ClaimType,
    /// 1 to 128 accepted values of 1 to 1024 characters.
    pub values: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClaimType {
    #[default]
    String,
    StringArray,
}
