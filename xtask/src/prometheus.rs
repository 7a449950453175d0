//! A Prometheus that watches a gateway, and the load that gives it something to see.

mod load;
mod picture;
pub(crate) mod pictures;
mod terminal;
mod watched;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::children;
use crate::workspace::Workspace;
pub(crate) use load::Load;
use test_ports::free_address;
pub(crate) use watched::Watched;

const READY_LIMIT: Duration = Duration::from_secs(30);
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// A running Prometheus; stopped when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    _process: children::Server,
}

impl Server {
    /// With our rules and alerts, all once a second instead of every half minute.
    ///
    /// * `name`: of its folder and its log.
    pub(crate) fn start(workspace: &Workspace, name: &str, targets: &[SocketAddr]) -> Result<Self> {
        let folder = workspace.logs()?.join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).context("cannot make a folder for Prometheus")?;
        for file in ["rules.yaml", "alerts.yaml"] {
            let text = fs::read_to_string(workspace.root.join("deploy/prometheus").join(file))
                .with_context(|| format!("deploy/prometheus/{file}: run `cargo xtask docs`"))?;
            fs::write(folder.join(file), text.replace("interval: 30s", "interval: 1s"))?;
        }
        let config = folder.join("prometheus.yaml");
        let targets: Vec<String> = targets.iter().map(|target| format!("'{target}'")).collect();
        let targets = targets.join(", ");
        fs::write(
            &config,
            format!(
                "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\n\
                 rule_files: [rules.yaml, alerts.yaml]\n\
                 scrape_configs:\n- job_name: wicketgate\n  static_configs: [{{ targets: [{targets}] }}]\n"
            ),
        )?;
        let address = free_address()?;
        let process = Self::spawn(workspace, name, &config, &folder.join("data"), address)?;
        Ok(Self { address, _process: process })
    }

    fn spawn(
        workspace: &Workspace,
        name: &str,
        config: &Path,
        data: &Path,
        address: SocketAddr,
    ) -> Result<children::Server> {
        let option = |name: &str, value: &dyn std::fmt::Display| format!("--{name}={value}");
        let mut command = Command::new("prometheus");
        command
            .arg(option("config.file", &config.display()))
            .arg(option("storage.tsdb.path", &data.display()))
            .arg(option("web.listen-address", &address));
        let log = workspace.logs()?.join(format!("{name}.log"));
        let mut process = children::Server::start("prometheus", log, &mut command)?;
        process.wait_ready(READY_LIMIT, || get(address, "/-/ready").is_some())?;
        Ok(process)
    }

    /// Whether a query finds a number now.
    pub(crate) fn finds(&self, expr: &str) -> Result<bool> {
        let data = self.ask(&format!("/api/v1/query?query={}", encoded(expr)))?;
        let results = data["result"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(results.iter().any(|one| one["value"][1].as_str().is_some_and(|text| text != "NaN")))
    }

    /// Series of the last `seconds`, a value each `step` seconds.
    pub(crate) fn range(&self, expr: &str, seconds: u64, step: u64) -> Result<Vec<Series>> {
        let now = self.ask("/api/v1/query?query=time()")?["result"][1]
            .as_str()
            .and_then(|text| text.parse::<f64>().ok())
            .context("Prometheus does not tell its time")?;
        let begin = now - seconds as f64;
        let query = encoded(expr);
        let path = format!("/api/v1/query_range?query={query}&start={begin}&end={now}&step={step}");
        let data = self.ask(&path)?;
        let results = data["result"].as_array().cloned().unwrap_or_default();
        Ok(results.iter().map(|one| Series::read(one, begin)).collect())
    }

    fn ask(&self, path: &str) -> Result<Value> {
        let text = get_any(self.address, path).context("Prometheus does not answer")?;
        let answer: Value = serde_json::from_str(&text).context("Prometheus's answer")?;
        if answer["status"] != "success" {
            bail!("{}", answer["error"].as_str().unwrap_or("no success, and no error either"));
        }
        Ok(answer["data"].clone())
    }
}

/// One line of a picture.
#[derive(Debug)]
pub(crate) struct Series {
    pub labels: Vec<(String, String)>,
    /// Seconds from the picture's left edge, and value.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    fn read(one: &Value, begin: f64) -> Self {
        let labels = one["metric"].as_object().into_iter().flatten();
        let points = one["values"].as_array().into_iter().flatten();
        Self {
            labels: labels
                .map(|(key, value)| (key.clone(), value.as_str().unwrap_or("").to_owned()))
                .collect(),
            points: points
                .filter_map(|point| {
                    let value: f64 = point[1].as_str()?.parse().ok()?;
                    value.is_finite().then_some((point[0].as_f64()? - begin, value))
                })
                .collect(),
        }
    }
}

/// The body of an answer with status 200.
pub(crate) fn get(address: SocketAddr, path: &str) -> Option<String> {
    exchange(address, path).filter(|(status, _)| *status == 200).map(|(_, body)| body)
}

/// The body of whatever is answered.
fn get_any(address: SocketAddr, path: &str) -> Option<String> {
    exchange(address, path).map(|(_, body)| body)
}

fn exchange(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_LIMIT).ok()?;
    stream.set_read_timeout(Some(ANSWER_LIMIT)).ok()?;
    // 1.0: a body ends with the connection and comes in no chunks.
    write!(stream, "GET {path} HTTP/1.0\r\nhost: {address}\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}

fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_survives_its_way_through_an_address() {
        assert_eq!(encoded("a{b=~\".*\"}[1m]"), "a%7Bb%3D~%22.%2A%22%7D%5B1m%5D");
    }

    #[test]
    fn what_is_no_number_is_no_point() {
        let one = serde_json::json!({ "metric": { "pool": "a" }, "values": [[10.0, "NaN"], [11.0, "2"]] });
        let series = Series::read(&one, 10.0);
        assert_eq!(series.points, [(1.0, 2.0)]);
        assert_eq!(series.labels, [("pool".to_owned(), "a".to_owned())]);
    }
}
