//! Finds the addresses behind the seeds, again and again: peers come and go, and names with them.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::sync::mpsc;

/// After the start peers are few and names change; later both hardly do.
const INTERVAL_FIRST: Duration = Duration::from_millis(500);
const INTERVAL_LAST: Duration = Duration::from_secs(30);
/// Longest time for one name.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Resolves until nobody listens any more.
///
/// * `seeds`: `HOST:PORT`.
/// * `found`: gets all addresses that the seeds stand for, each time.
pub(crate) async fn resolve(seeds: Vec<String>, found: mpsc::Sender<BTreeSet<SocketAddr>>) {
    let mut interval = INTERVAL_FIRST;
    loop {
        let mut addresses = BTreeSet::new();
        for seed in &seeds {
            addresses.extend(addresses_of(seed).await);
        }
        if found.send(addresses).await.is_err() {
            return;
        }
        tokio::time::sleep(interval).await;
        interval = (2 * interval).min(INTERVAL_LAST);
    }
}

/// What a seed stands for; nothing if that cannot be found out now.
pub(crate) async fn addresses_of(seed: &str) -> Vec<SocketAddr> {
    match tokio::time::timeout(RESOLVE_TIMEOUT, lookup_host(seed)).await {
        Ok(Ok(addresses)) => addresses.collect(),
        // A headless Service has no name until one of its pods is there.
        Ok(Err(error)) => {
            tracing::debug!(seed, error = &error as &dyn std::error::Error, "seed not resolved");
            Vec::new()
        }
        Err(_) => {
            tracing::warn!(seed, "resolving a seed takes too long");
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_seed_that_nobody_knows_does_not_hide_the_others() {
        let seeds = vec!["no-such-host.invalid:1".to_owned(), "127.0.0.1:2".to_owned()];
        let (found, mut addresses) = mpsc::channel(1);
        let resolving = tokio::spawn(resolve(seeds, found));
        let addresses = addresses.recv().await.unwrap();
        assert_eq!(addresses, BTreeSet::from(["127.0.0.1:2".parse().unwrap()]));
        resolving.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn seeds_are_resolved_again_and_ever_less_often() {
        let (found, mut addresses) = mpsc::channel(1);
        let resolving = tokio::spawn(resolve(vec!["127.0.0.1:2".to_owned()], found));
        let begun = tokio::time::Instant::now();
        let mut at = Vec::new();
        for _ in 0..9 {
            addresses.recv().await.unwrap();
            at.push(begun.elapsed().as_secs_f32());
        }
        assert_eq!(at, [0.0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5, 61.5, 91.5]);
        resolving.abort();
    }
}
