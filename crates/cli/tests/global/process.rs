//! A process under test, and what it says.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Longest that a test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);
/// Pause between two looks at something that cannot be waited for.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The path of the built binary.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_wicketgate");

/// A running process; ended when dropped.
pub(crate) struct Process {
    child: Child,
    stderr: watch::Receiver<String>,
}

impl Process {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stderr = follow(child.stderr.take().unwrap());
        Self { child, stderr }
    }

    /// Sends a signal by its name without `SIG`.
    pub(crate) fn signal(&self, name: &str) {
        let command = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
    }

    /// Ends it at once.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for it to end by itself.
    pub(crate) async fn ended(&mut self) {
        let child = &mut self.child;
        until("the process has ended", async || child.try_wait().unwrap().is_some()).await;
    }

    /// Waits until it has said something on standard error, which is then all that it said.
    pub(crate) async fn said(&self, what: &str) -> String {
        let mut stderr = self.stderr.clone();
        match timeout(PATIENCE, stderr.wait_for(|text| text.contains(what))).await {
            Ok(Ok(text)) => text.clone(),
            _ => panic!("it never said `{what}`:\n{}", self.stderr()),
        }
    }

    pub(crate) fn stderr(&self) -> String {
        self.stderr.borrow().clone()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that is stopped ends by this too.
        self.kill();
    }
}

/// The `address=` of the line with these words.
pub(crate) fn address_in(text: &str, words: &str) -> Option<SocketAddr> {
    let line = text.lines().find(|line| line.contains(words))?;
    line.split("address=").nth(1)?.split_whitespace().next()?.parse().ok()
}

/// Waits for a condition that only looking can tell.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            sleep(LOOK_AGAIN).await;
        }
    };
    assert!(timeout(PATIENCE, waiting).await.is_ok(), "waited in vain until {what}");
}

/// Collects what a process writes, whole lines at a time.
fn follow(from: impl Read + Send + 'static) -> watch::Receiver<String> {
    let (sender, receiver) = watch::channel(String::new());
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            sender.send_modify(|text| {
                text.push_str(&line);
                text.push('\n');
            });
        }
    });
    receiver
}
