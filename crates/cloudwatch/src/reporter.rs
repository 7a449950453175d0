//! The thread that reports at its interval.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use config::{CloudWatch, CloudWatchMode, EmfTarget};
use telemetry::metrics::CloudWatchMetrics;
use telemetry::metrics::labels::Label;

use crate::api::{Api, SendError};
use crate::emf;
use crate::report::Report;

/// Towards an agent.
const AGENT_LIMIT: Duration = Duration::from_secs(2);

/// Where the thread gets its reports from, and where it counts what became of them.
pub trait Source: Send + 'static {
    fn report(&self) -> Report;
    fn counters(&self) -> &CloudWatchMetrics;
}

/// The running thread; told to stop when dropped, after at most one more attempt that is under way.
#[derive(Debug)]
pub struct Reporter {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Reporter {
    /// The first report goes out after one interval, when there is something to say.
    ///
    /// # Errors
    ///
    /// No region is known, or no thread can be had.
    pub fn start(settings: CloudWatch, source: impl Source) -> std::io::Result<Self> {
        let mut way = Way::open(&settings.mode)?;
        let (stop, stopped) = mpsc::channel();
        let thread =
            std::thread::Builder::new().name("cloudwatch".to_owned()).spawn(move || {
                let mut complained = None;
                while stopped.recv_timeout(settings.interval) == Err(RecvTimeoutError::Timeout) {
                    let outcome = way.send(&source.report(), &settings);
                    count(source.counters(), outcome, &mut complained);
                }
            })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        drop(self.stop.take());
        // Not waited for: it may hang on a network that is gone, and the process is to end.
        drop(self.thread.take());
    }
}

/// Says a failure once until it changes or ends.
fn count(
    counters: &CloudWatchMetrics,
    outcome: Result<(), SendError>,
    complained: &mut Option<&'static str>,
) {
    match outcome {
        Ok(()) => {
            counters.reports.inc();
            if complained.take().is_some() {
                tracing::info!("CloudWatch gets reports again");
            }
        }
        Err(error) => {
            let reason = error.reason();
            counters.failures.of(reason).inc();
            if complained.replace(reason.as_str()) != Some(reason.as_str()) {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "a report did not reach CloudWatch");
            }
        }
    }
}

#[derive(Debug)]
enum Way {
    Lines(EmfTarget),
    Api(Box<Api>),
}

impl Way {
    fn open(mode: &CloudWatchMode) -> std::io::Result<Self> {
        Ok(match mode {
            CloudWatchMode::Emf(target) => Self::Lines(target.clone()),
            CloudWatchMode::Api { region, endpoint } => {
                let environment = ["AWS_REGION", "AWS_DEFAULT_REGION"];
                let found = environment.iter().find_map(|name| std::env::var(name).ok());
                let Some(region) = region.clone().or(found) else {
                    return Err(std::io::Error::other(
                        "no region: set `observability.cloudWatch.region` or AWS_REGION",
                    ));
                };
                Self::Api(Box::new(Api::new(&region, endpoint.as_deref())?))
            }
        })
    }

    fn send(&mut self, report: &Report, settings: &CloudWatch) -> Result<(), SendError> {
        let CloudWatch { namespace, dimensions, interval, .. } = settings;
        match self {
            Self::Api(api) => api.send(report, namespace, dimensions, *interval),
            Self::Lines(target) => {
                let lines = emf::lines(report, namespace, dimensions, *interval);
                write(target, lines.as_bytes()).map_err(SendError::Write)
            }
        }
    }
}

/// A line in one piece, so that it does not mix with those of others.
fn write(target: &EmfTarget, lines: &[u8]) -> std::io::Result<()> {
    match target {
        EmfTarget::Stdout => std::io::stdout().lock().write_all(lines),
        EmfTarget::Stderr => std::io::stderr().lock().write_all(lines),
        EmfTarget::File(path) => {
            OpenOptions::new().create(true).append(true).open(path)?.write_all(lines)
        }
        // A connection each: agents close idle ones, and there is one report a minute.
        EmfTarget::Tcp(address) => {
            let resolved = address.to_socket_addrs()?.next();
            let address =
                resolved.ok_or_else(|| std::io::Error::other("the name has no address"))?;
            let mut stream = TcpStream::connect_timeout(&address, AGENT_LIMIT)?;
            stream.set_write_timeout(Some(AGENT_LIMIT))?;
            stream.write_all(lines)
        }
    }
}

impl<S: Source + Sync> Source for Arc<S> {
    fn report(&self) -> Report {
        S::report(self)
    }

    fn counters(&self) -> &CloudWatchMetrics {
        S::counters(self)
    }
}

#[cfg(test)]
mod tests;
