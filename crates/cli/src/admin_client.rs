//! Questions to a running gateway's administration listener.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, bail};

const TIMEOUT: Duration = Duration::from_secs(5);

/// Sends one request and returns the body of a 200.
pub(crate) fn request(
    admin: SocketAddr,
    method: &str,
    path: &str,
    body: &[u8],
) -> anyhow::Result<Vec<u8>> {
    let token = std::env::var("WICKETGATE_ADMIN_TOKEN").unwrap_or_default();
    if token.contains(['\r', '\n']) {
        bail!("WICKETGATE_ADMIN_TOKEN has a line break");
    }
    let authorization =
        if token.is_empty() { String::new() } else { format!("authorization: Bearer {token}\r\n") };
    let mut stream = TcpStream::connect_timeout(&admin, TIMEOUT)
        .with_context(|| format!("no gateway answers at {admin}; --admin names another address"))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {admin}\r\nconnection: close\r\ncontent-type: application/json\r\n{authorization}content-length: {}\r\n\r\n",
        body.len()
    )?;
    stream.write_all(body)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let split = answer
        .windows(4)
        .position(|bytes| bytes == b"\r\n\r\n")
        .context("the answer is no HTTP")?;
    let body = answer.split_off(split + 4);
    let head = String::from_utf8_lossy(&answer);
    if head.split_whitespace().nth(1) != Some("200") {
        bail!("{}", message_of(&body));
    }
    Ok(body)
}

/// The message of an error object, else the body as it is.
fn message_of(body: &[u8]) -> String {
    let message = serde_json::from_slice::<serde_json::Value>(body)
        .ok()
        .and_then(|error| error["error"]["message"].as_str().map(str::to_owned));
    message.unwrap_or_else(|| String::from_utf8_lossy(body).trim().to_owned())
}
