//! The names in a client's certificate.

use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate};

/// The names that a verified certificate gives its holder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// Subject alternative names: URIs, then DNS names and email addresses.
    alternative: Vec<Box<str>>,
    common: Option<Box<str>>,
}

/// Why a certificate names nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the certificate cannot be read")]
pub struct CertificateError;

/// Longest name that is kept, bytes.
const NAME_BYTES_MAX: usize = 1024;

impl Certificate {
    /// Reads the names of a certificate in DER that somebody else has verified.
    pub fn from_der(der: &[u8]) -> Result<Self, CertificateError> {
        let (_, certificate) = X509Certificate::from_der(der).map_err(|_| CertificateError)?;
        let (mut uris, mut others) = (Vec::new(), Vec::new());
        for extension in certificate.extensions() {
            let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension()
            else {
                continue;
            };
            for name in &names.general_names {
                match name {
                    GeneralName::URI(uri) => uris.extend(plain(uri)),
                    GeneralName::DNSName(name) | GeneralName::RFC822Name(name) => {
                        others.extend(plain(name));
                    }
                    _ => {}
                }
            }
        }
        uris.extend(others);
        let common = certificate.subject().iter_common_name().next();
        let common = common.and_then(|name| name.as_str().ok()).and_then(plain);
        Ok(Self { alternative: uris, common })
    }

    /// When a certificate in DER ends, in seconds since 1970.
    pub fn end_of(der: &[u8]) -> Result<i64, CertificateError> {
        let (_, certificate) = X509Certificate::from_der(der).map_err(|_| CertificateError)?;
        Ok(certificate.validity().not_after.timestamp())
    }

    /// What a proxy says of the certificate that it verified.
    ///
    /// * `subject`: the whole of it (RFC 2253).
    pub fn from_subject<'a>(
        alternative: impl IntoIterator<Item = &'a str>,
        subject: Option<&str>,
    ) -> Self {
        Self {
            alternative: alternative.into_iter().filter_map(plain).collect(),
            common: subject.and_then(common_name),
        }
    }

    /// Reads Envoy's `x-forwarded-client-cert`: the element of the proxy nearest to us.
    ///
    /// Source: Envoy, "HTTP header manipulation", `x-forwarded-client-cert`.
    pub fn from_xfcc(value: &str) -> Option<Self> {
        let element = split_outside_quotes(value, ',').pop()?;
        let (mut uris, mut others, mut common) = (Vec::new(), Vec::new(), None);
        for pair in split_outside_quotes(element, ';') {
            let (key, value) = pair.trim().split_once('=')?;
            let value = unquoted(value);
            match key.to_ascii_lowercase().as_str() {
                "uri" => uris.extend(plain(&value)),
                "dns" => others.extend(plain(&value)),
                "subject" => common = common_name(&value),
                _ => {}
            }
        }
        uris.extend(others);
        let found = Self { alternative: uris, common };
        (!found.is_nameless()).then_some(found)
    }

    /// What it goes by: the first alternative name, else the common name.
    pub fn name(&self) -> Option<&str> {
        self.alternative.first().or(self.common.as_ref()).map(|name| &**name)
    }

    /// Whether it was given to this name. The common name counts where there is no other, as
    /// everywhere since RFC 6125.
    pub fn is(&self, name: &str) -> bool {
        if self.alternative.is_empty() {
            return self.common.as_deref() == Some(name);
        }
        self.alternative.iter().any(|own| **own == *name)
    }

    pub fn is_nameless(&self) -> bool {
        self.alternative.is_empty() && self.common.is_none()
    }
}

/// A subject's common name: `CN=…` in a list with commas (RFC 2253), or between slashes.
fn common_name(subject: &str) -> Option<Box<str>> {
    let separator = if subject.starts_with('/') { '/' } else { ',' };
    split_outside_quotes(subject, separator)
        .into_iter()
        .find_map(|part| part.trim().strip_prefix("CN="))
        .and_then(plain)
}

fn plain(name: &str) -> Option<Box<str>> {
    let fits =
        !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control);
    fits.then(|| name.into())
}

fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return value.to_owned();
    };
    inner.replace("\\\"", "\"")
}

/// Splits at a separator that stands neither in quotes nor after a backslash.
fn split_outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut from) = (Vec::new(), 0);
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            c if c == separator && !quoted => {
                parts.push(&text[from..at]);
                from = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_goes_by_its_uri_first() {
        let mut params = rcgen::CertificateParams::new(vec!["web.test".to_owned()]).unwrap();
        let uri = "spiffe://test/ns/a/sa/web".try_into().unwrap();
        params.subject_alt_names.push(rcgen::SanType::URI(uri));
        params.distinguished_name.push(rcgen::DnType::CommonName, "web");
        let key = rcgen::KeyPair::generate().unwrap();
        let read = Certificate::from_der(params.self_signed(&key).unwrap().der()).unwrap();
        assert_eq!(read.name(), Some("spiffe://test/ns/a/sa/web"));
        assert!(read.is("web.test") && read.is("spiffe://test/ns/a/sa/web"));
        assert!(!read.is("web"), "the common name counts alone only");
        assert_eq!(Certificate::from_der(b"no certificate"), Err(CertificateError));
    }

    #[test]
    fn a_certificate_tells_when_it_ends() {
        let mut params = rcgen::CertificateParams::new(vec!["web.test".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2030, 1, 2);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        assert_eq!(Certificate::end_of(certificate.der()), Ok(1_893_542_400));
        assert_eq!(Certificate::end_of(b"no certificate"), Err(CertificateError));
    }

    #[test]
    fn the_nearest_proxy_counts_in_x_forwarded_client_cert() {
        let forged = r#"By=x;URI=spiffe://test/admin"#;
        let nearest = r#"By=spiffe://test/gw;Hash=ab;Subject="CN=web, O=\"a;b\",C=DE";URI=spiffe://test/web;DNS=web.test"#;
        let read = Certificate::from_xfcc(&format!("{forged},{nearest}")).unwrap();
        assert!(read.is("spiffe://test/web") && !read.is("spiffe://test/admin"));
        let only = Certificate::from_xfcc(r#"Hash=ab;Subject="CN=web,O=x""#).unwrap();
        assert_eq!(only.name(), Some("web"));
        assert_eq!(Certificate::from_xfcc("Hash=ab"), None);
        assert_eq!(Certificate::from_xfcc("rubbish"), None);
    }

    #[test]
    fn a_name_inside_quotes_is_no_other_element() {
        let value = r#"Hash=ab;Subject="CN=x,URI=spiffe://test/admin;DNS=y";URI=spiffe://test/web"#;
        let read = Certificate::from_xfcc(value).unwrap();
        assert!(read.is("spiffe://test/web") && !read.is("spiffe://test/admin") && !read.is("y"));
    }
}
