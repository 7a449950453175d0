//! The administration listener of a gateway, from the side that asks.

use std::str::FromStr;
use std::time::Duration;

use serde::de::DeserializeOwned;
use types::EndpointAddress;

use crate::http::{self, Answer, Ask, HttpError};

/// An answer at most: `/metrics` and `/debug/endpoints` of some thousand endpoints take a few MiB.
const BYTES_MAX: usize = 256 << 20;

/// Which gateway to look at.
#[derive(Clone, Debug, clap::Args)]
pub struct AdminFlags {
    /// The gateway's administration listener: http://HOST:PORT, or HOST:PORT
    #[arg(
        long,
        value_name = "URL",
        env = "WICKETGATE_ADMIN",
        default_value = "http://127.0.0.1:9090",
        value_parser = address
    )]
    admin: EndpointAddress,

    /// The token that the administration listener asks for, if it does
    #[arg(long, value_name = "TOKEN", env = "WICKETGATE_ADMIN_TOKEN", hide_env_values = true)]
    admin_token: Option<String>,
}

impl AdminFlags {
    /// The same for another gateway.
    pub(crate) fn at(mut self, admin: EndpointAddress) -> Self {
        self.admin = admin;
        self
    }
}

fn address(text: &str) -> Result<EndpointAddress, String> {
    let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    EndpointAddress::from_str(&url).map_err(|error| error.to_string())
}

/// A gateway that can be asked.
#[derive(Clone, Debug)]
pub(crate) struct Admin {
    address: EndpointAddress,
    token: Option<String>,
    timeout: Duration,
}

/// Why the gateway's answer is of no use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdminError {
    #[error("no gateway answers at {address}; --admin names another address")]
    Unreachable {
        address: String,
        #[source]
        source: HttpError,
    },
    #[error("{0} asks for a token: --admin-token or WICKETGATE_ADMIN_TOKEN")]
    Token(String),
    #[error("{address}{path} answered {status}: is this a gateway's administration listener?")]
    Status { address: String, path: String, status: u16 },
    #[error("{address}{path} answered something else than expected")]
    Unreadable {
        address: String,
        path: String,
        #[source]
        source: serde_json::Error,
    },
}

impl Admin {
    pub(crate) fn new(flags: &AdminFlags, timeout: Duration) -> Self {
        Self { address: flags.admin.clone(), token: flags.admin_token.clone(), timeout }
    }

    pub(crate) fn authority(&self) -> String {
        self.address.authority()
    }

    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// The same gateway, asked as somebody without a token would.
    pub(crate) fn anonymous(&self) -> Self {
        Self { token: None, ..self.clone() }
    }

    /// Any answer, whatever its status.
    pub(crate) fn ask(&self, path: &str) -> Result<Answer, AdminError> {
        let ask =
            Ask { path, token: self.token.as_deref(), bytes_max: BYTES_MAX, timeout: self.timeout };
        http::get(&self.address, ask)
            .map_err(|source| AdminError::Unreachable { address: self.authority(), source })
    }

    /// The body of a 200.
    pub(crate) fn get(&self, path: &str) -> Result<Vec<u8>, AdminError> {
        let answer = self.ask(path)?;
        match answer.status {
            200 => Ok(answer.body),
            401 | 403 => Err(AdminError::Token(self.authority())),
            status => {
                Err(AdminError::Status { address: self.authority(), path: path.to_owned(), status })
            }
        }
    }

    pub(crate) fn json<T: DeserializeOwned>(&self, path: &str) -> Result<T, AdminError> {
        let body = self.get(path)?;
        serde_json::from_slice(&body).map_err(|source| AdminError::Unreadable {
            address: self.authority(),
            path: path.to_owned(),
            source,
        })
    }

    /// The same for what a gateway may not have: `None` if it answers 404.
    pub(crate) fn json_if_there<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Option<T>, AdminError> {
        match self.json(path) {
            Err(AdminError::Status { status: 404, .. }) => Ok(None),
            answer => answer.map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_leave_out_its_scheme() {
        for text in ["gate:9090", "http://gate:9090", "http://gate:9090/"] {
            assert_eq!(address(text).unwrap().authority(), "gate:9090", "{text}");
        }
        assert!(address("https://gate:9090").is_err());
        assert!(address("").is_err());
    }
}
