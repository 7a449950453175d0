//! Which pool a request goes to by its head alone, where routes of a cluster say so.

use types::PoolName;

/// Listeners, those with the most particular host first. A request belongs to the first whose host fits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    pub listeners: Vec<RouteListener>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteListener {
    pub host: HostMatch,
    /// In order of precedence: the first that fits counts.
    pub rules: Vec<RouteRule>,
}

/// One way into a pool; all parts must fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteRule {
    pub host: HostMatch,
    pub path: PathMatch,
    /// Upper case.
    pub method: Option<String>,
    /// Names in lower case, with the exact value.
    pub headers: Vec<(String, String)>,
    /// Parameters of the query, with the exact value.
    pub query: Vec<(String, String)>,
    /// Empty, or all of weight 0: 500.
    pub backends: Vec<RouteBackend>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteBackend {
    pub weight: u32,
    /// `None`: it cannot be resolved, and its share of requests gets 500.
    pub pool: Option<PoolName>,
}

/// Host names in lower case, without a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostMatch {
    Any,
    /// `.example.com`: any name that ends so and has something before it.
    Suffix(String),
    Exact(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathMatch {
    Exact(String),
    /// Whole segments: `/a` fits `/a` and `/a/b`, not `/ab`. Without a slash at its end, save `/` alone.
    Prefix(String),
}

impl HostMatch {
    /// `*.example.com`, `example.com`; empty: any.
    pub fn parse(text: &str) -> Self {
        let text = text.to_ascii_lowercase();
        match text.strip_prefix('*') {
            Some(suffix) => Self::Suffix(suffix.to_owned()),
            None if text.is_empty() => Self::Any,
            None => Self::Exact(text),
        }
    }

    /// * `host`: in lower case, without a port.
    pub fn fits(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Suffix(suffix) => host.len() > suffix.len() && host.ends_with(suffix.as_str()),
            Self::Exact(exact) => exact == host,
        }
    }

    /// The hosts that fit both; `None`: no host does.
    pub fn and(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Any, one) | (one, Self::Any) => Some(one.clone()),
            (Self::Exact(exact), one) | (one, Self::Exact(exact)) => {
                one.fits(exact).then(|| Self::Exact(exact.clone()))
            }
            (Self::Suffix(one), Self::Suffix(other)) => {
                let (long, short) =
                    if one.len() >= other.len() { (one, other) } else { (other, one) };
                long.ends_with(short.as_str()).then(|| Self::Suffix(long.clone()))
            }
        }
    }

    /// Greater: more particular.
    pub fn rank(&self) -> (u8, usize) {
        match self {
            Self::Any => (0, 0),
            Self::Suffix(suffix) => (1, suffix.len()),
            Self::Exact(exact) => (2, exact.len()),
        }
    }
}

impl PathMatch {
    pub fn fits(&self, path: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == path,
            Self::Prefix(prefix) => {
                let rest = path.strip_prefix(prefix.as_str());
                prefix == "/" || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
        }
    }

    /// Greater: goes first.
    pub fn rank(&self) -> (bool, usize) {
        match self {
            Self::Exact(exact) => (true, exact.len()),
            Self::Prefix(prefix) => (false, prefix.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(one: &str, other: &str) -> Option<HostMatch> {
        HostMatch::parse(one).and(&HostMatch::parse(other))
    }

    #[test]
    fn a_wildcard_stands_for_at_least_one_label() {
        let wildcard = HostMatch::parse("*.Example.com");
        assert!(wildcard.fits("a.example.com") && wildcard.fits("a.b.example.com"));
        assert!(!wildcard.fits("example.com") && !wildcard.fits("xexample.com"));
    }

    #[test]
    fn hosts_that_fit_both_are_the_more_particular() {
        assert_eq!(both("", "a.com"), Some(HostMatch::parse("a.com")));
        assert_eq!(both("*.com", "a.com"), Some(HostMatch::parse("a.com")));
        assert_eq!(both("*.com", "*.a.com"), Some(HostMatch::parse("*.a.com")));
        assert_eq!(both("*.a.com", "a.com"), None);
        assert_eq!(both("a.com", "b.com"), None);
        assert_eq!(both("*.a.com", "*.b.com"), None);
    }

    #[test]
    fn a_prefix_is_made_of_whole_segments() {
        let prefix = PathMatch::Prefix("/a".to_owned());
        assert!(prefix.fits("/a") && prefix.fits("/a/") && prefix.fits("/a/b"));
        assert!(!prefix.fits("/ab") && !prefix.fits("/"));
        assert!(PathMatch::Prefix("/".to_owned()).fits("/x"));
    }
}
