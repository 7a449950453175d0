//! Processes that end with the test, however it ends.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Runs what follows, and kills it when nobody holds the other end of standard input any more.
const SCRIPT: &str = r#""$@" & child=$!; cat > /dev/null; kill -KILL $child; wait $child"#;

/// A process; ended when this is dropped or the test process is gone.
pub(crate) struct Leash(Child);

impl Leash {
    /// Both outputs go to the end of the file `log`.
    pub(crate) fn start(program: &Path, arguments: &[String], log: &Path) -> Self {
        let open = || File::options().create(true).append(true).open(log).unwrap();
        let child = Command::new("sh")
            .args(["-c", SCRIPT, "leash"])
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(open())
            .stderr(open())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
