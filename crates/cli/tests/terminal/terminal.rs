//! One terminal with one program in it.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::gateway::PATIENCE;

/// Pause between two looks at the screen, which cannot be waited for.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A tmux server of its own; ended when dropped.
pub(crate) struct Terminal {
    socket: String,
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl Terminal {
    /// Runs `command` in a shell, which says afterwards how it ended and whether the terminal echoes.
    pub(crate) fn start(width: u16, height: u16, command: &str) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let terminal = Self { socket: format!("wicketgate-{}-{number}", std::process::id()) };
        // `cat` keeps the screen after the program; quotes are the shell's.
        let script = format!(
            "{command}; code=$?; if stty -a | grep -qE '(^|[ ;])echo( |;|$)'; then state='in order'; else state='spoilt'; fi; \
             echo \"ended $code $state\"; exec cat"
        );
        let (width, height) = (width.to_string(), height.to_string());
        terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &width,
            "-y",
            &height,
            &script,
        ]);
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output =
            Command::new("tmux").args(["-L", &self.socket]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A key by tmux's name for it, or text.
    pub(crate) fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    pub(crate) fn resize(&self, width: u16, height: u16) {
        self.tmux(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
    }

    /// Sends a signal, by its name without `SIG`, to the program.
    pub(crate) fn signal(&self, name: &str) {
        let shell = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
        let command = format!("kill -{name} $(ps -o pid= --ppid {})", shell.trim());
        assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
    }

    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Whether any cell has a colour of its own.
    pub(crate) fn has_colours(&self) -> bool {
        let screen = self.tmux(&["capture-pane", "-p", "-e"]);
        let codes = screen.split("\x1b[").skip(1).filter_map(|rest| rest.split('m').next());
        codes
            .flat_map(|codes| codes.split(';'))
            .any(|code| matches!(code.parse::<u16>(), Ok(30..=38 | 40..=48 | 90..=97 | 100..=107)))
    }

    pub(crate) async fn shows(&self, text: &str) {
        self.until(text, true).await;
    }

    pub(crate) async fn lacks(&self, text: &str) {
        self.until(text, false).await;
    }

    async fn until(&self, text: &str, wanted: bool) {
        let waiting = async {
            while self.screen().contains(text) != wanted {
                sleep(LOOK_AGAIN).await;
            }
        };
        if timeout(PATIENCE, waiting).await.is_err() {
            panic!("waited in vain until the screen shows `{text}`: {wanted}\n{}", self.screen());
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = Command::new("tmux").args(["-L", &self.socket, "kill-server"]).output();
    }
}
