//! Sharing with other gateways: from flags and document to a task that runs beside the traffic.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use config::Spec;
use gateway::Gateway;
use peers::{Key, Peers, Settings};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Longest time for the goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

/// Flags of commands that have peers; each goes before the document's section `peers`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PeerFlags {
    /// Share load and prefixes with other gateways before the same endpoints; hear them here (UDP)
    /// [default: the document's, else 0.0.0.0:9004 with --peer, else no sharing]
    #[arg(long, value_name = "ADDR", env = "WICKETGATE_PEER_LISTEN")]
    peer_listen: Option<SocketAddr>,

    /// Another gateway, or a name that stands for all of them; repeatable
    #[arg(
        long = "peer",
        value_name = "HOST:PORT",
        env = "WICKETGATE_PEERS",
        value_delimiter = ',',
        value_parser = host_port
    )]
    peers: Vec<String>,

    /// Where peers reach this gateway; port 0 is that of --peer-listen [default: found out]
    #[arg(long, value_name = "ADDR", env = "WICKETGATE_PEER_ADVERTISE")]
    peer_advertise: Option<SocketAddr>,

    /// Secret that all peers share [default: what is in the document's peers.keyFile, else none]
    #[arg(long, value_name = "KEY", env = "WICKETGATE_PEER_KEY", hide_env_values = true)]
    peer_key: Option<String>,
}

/// A gateway's sharing under way.
pub(crate) struct Sharing {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Sharing {
    /// Tells the peers that this gateway leaves.
    pub(crate) async fn leave(self) {
        // Both fail only if it has ended already.
        let _ = self.stop.send(());
        let _ = tokio::time::timeout(GOODBYE, self.task).await;
    }
}

impl PeerFlags {
    /// Begins to share, where flags or document say so. Before traffic.
    pub(crate) async fn share(
        &self,
        spec: &Spec,
        gateway: &Arc<Gateway>,
    ) -> anyhow::Result<Option<Sharing>> {
        let Some(settings) = self.settings(spec)? else { return Ok(None) };
        let peers = Peers::open(&settings, gateway.clone()).await?;
        tracing::info!(listen = %settings.listen, reached_at = %peers.advertised(), seeds = ?settings.seeds, "peers: load and prefixes are shared");
        if !settings.key.is_secret() {
            tracing::warn!(
                "anyone who reaches {} (UDP) can read and forge what peers say: there is no key",
                settings.listen
            );
        }
        let (stop, stopped) = oneshot::channel();
        let task = tokio::task::spawn_local(peers.run(async {
            // A sender that is gone wants the same.
            let _ = stopped.await;
        }));
        Ok(Some(Sharing { stop, task }))
    }

    fn settings(&self, spec: &Spec) -> anyhow::Result<Option<Settings>> {
        let is_asked_for = self.peer_listen.is_some() || !self.peers.is_empty();
        let section = match &spec.peers {
            Some(section) => section.clone(),
            None if is_asked_for => config::Peers::default(),
            None => return Ok(None),
        };
        let secret = match (&self.peer_key, &section.key_file) {
            (Some(key), _) => key.clone().into_bytes(),
            (None, Some(file)) => std::fs::read(file)
                .with_context(|| format!("cannot read the peers' key {}", file.display()))?,
            (None, None) => Vec::new(),
        };
        let secret = secret.trim_ascii();
        if secret.is_empty() && (self.peer_key.is_some() || section.key_file.is_some()) {
            anyhow::bail!("the peers' key is empty");
        }
        let key = Key::new(&section.cluster_id, Some(secret));
        let mut settings = Settings::new(self.peer_listen.unwrap_or(section.listen), key);
        settings.advertise = self.peer_advertise.or(section.advertise);
        settings.seeds = section.seeds;
        settings.seeds.extend(self.peers.iter().cloned());
        settings.flush_interval = section.flush_interval;
        settings.silence = section.silence;
        Ok(Some(settings))
    }
}

fn host_port(text: &str) -> Result<String, String> {
    let (host, port) = text.rsplit_once(':').ok_or("write HOST:PORT")?;
    if host.is_empty() || !port.parse::<u16>().is_ok_and(|port| port > 0) {
        return Err("write HOST:PORT, such as gateway-peers:9004".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        flags: PeerFlags,
    }

    fn settings(
        flags: &[&str],
        section: Option<config::Peers>,
    ) -> anyhow::Result<Option<Settings>> {
        let command = Command::try_parse_from([&["x"], flags].concat())?;
        command.flags.settings(&Spec { peers: section, ..Spec::default() })
    }

    #[test]
    fn nothing_is_shared_unless_it_is_asked_for() {
        assert!(settings(&[], None).unwrap().is_none());
        assert!(settings(&["--peer-key", "k"], None).unwrap().is_none());
        assert!(settings(&[], Some(config::Peers::default())).unwrap().is_some());
        let listen = settings(&["--peer", "gw:9004"], None).unwrap().unwrap().listen;
        assert_eq!(listen.to_string(), "0.0.0.0:9004");
    }

    #[test]
    fn flags_go_before_the_document_and_seeds_join_its() {
        let section = config::Peers { seeds: vec!["a:1".to_owned()], ..config::Peers::default() };
        let flags =
            ["--peer-listen", "127.0.0.1:7", "--peer", "b:2", "--peer-advertise", "10.0.0.1:0"];
        let read = settings(&flags, Some(section)).unwrap().unwrap();
        assert_eq!(read.listen.to_string(), "127.0.0.1:7");
        assert_eq!(read.seeds, ["a:1", "b:2"]);
        assert_eq!(read.advertise.unwrap().to_string(), "10.0.0.1:0");
        assert!(!read.key.is_secret());
    }

    #[test]
    fn a_key_comes_from_the_flag_or_the_file_and_is_not_empty() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        let with_file =
            || Some(config::Peers { key_file: Some(file.clone()), ..config::Peers::default() });
        assert!(settings(&[], with_file()).is_err(), "there is no such file");
        std::fs::write(&file, "secret\n").unwrap();
        assert!(settings(&[], with_file()).unwrap().unwrap().key.is_secret());
        std::fs::write(&file, "\n").unwrap();
        assert!(settings(&[], with_file()).is_err());
        assert!(settings(&["--peer-key", "k"], with_file()).unwrap().unwrap().key.is_secret());
    }

    #[test]
    fn a_peer_without_a_port_is_refused() {
        for peer in ["gateway", "gateway:", "gateway:0", ":9004"] {
            assert!(settings(&["--peer", peer], None).is_err(), "{peer}");
        }
    }
}
