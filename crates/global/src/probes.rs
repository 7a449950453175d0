//! Whether the router reaches its members, and how far they are.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fleet::MemberId;
use gateway::{Fetch, FetchError, Gateway, Probe};
use telemetry::clock;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Between two looks at who should be probed.
const LOOK: Duration = Duration::from_secs(1);
/// Between two probes of members that are well, for the round trip.
const ROUND_TRIPS: Duration = Duration::from_secs(10);
/// Longest wait for one answer.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Who has just fallen silent is probed so often, so far apart: three refused connections are evidence.
const SUSPECTED: u32 = 3;
const SUSPECTED_PAUSE: Duration = Duration::from_millis(100);
/// Bytes of a list of models that are read.
const BYTES_MAX: usize = 1 << 20;

/// Where it is told that a member may be gone.
#[derive(Clone, Debug)]
pub struct Suspicions(mpsc::Sender<MemberId>);

impl Suspicions {
    pub fn channel() -> (Self, mpsc::Receiver<MemberId>) {
        let (sender, receiver) = mpsc::channel(256);
        (Self(sender), receiver)
    }

    pub(crate) fn raise(&self, member: MemberId) {
        // Full: so many are suspected that each one's turn comes by itself.
        let _ = self.0.try_send(member);
    }
}

/// Probes as long as it is polled. Must run inside a `LocalSet`.
pub async fn probe<F: Fetch + 'static>(
    gateway: Arc<Gateway>,
    fetch: Rc<F>,
    mut suspected: mpsc::Receiver<MemberId>,
) {
    let Some(clusters) = gateway.clusters().cloned() else { return };
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut under_way = JoinSet::new();
    let mut measured = clock::now();
    loop {
        tokio::select! {
            _ = looks.tick() => {
                let now = clock::now();
                let wanted = if now.since(measured) >= ROUND_TRIPS {
                    measured = now;
                    clusters.all_probes()
                } else {
                    clusters.wants_probe(now)
                };
                for probe in wanted {
                    let (gateway, fetch) = (gateway.clone(), fetch.clone());
                    under_way.spawn_local(async move {
                        try_once(&gateway, &*fetch, &probe).await;
                    });
                }
            }
            Some(member) = suspected.recv() => {
                let Some(probe) = clusters.probe_of(member) else { continue };
                let (gateway, fetch) = (gateway.clone(), fetch.clone());
                under_way.spawn_local(async move {
                    for _ in 0..SUSPECTED {
                        if try_once(&gateway, &*fetch, &probe).await {
                            return;
                        }
                        tokio::time::sleep(SUSPECTED_PAUSE).await;
                    }
                });
            }
            Some(_) = under_way.join_next() => {}
        }
    }
}

/// Whether the member was reached.
async fn try_once<F: Fetch>(gateway: &Arc<Gateway>, fetch: &F, probe: &Probe) -> bool {
    let begun = clock::now();
    let authorization = probe.authorization.as_deref();
    let fetched = fetch.get(&probe.address, "/v1/models", authorization, BYTES_MAX, TIMEOUT).await;
    let now = clock::now();
    let is_reached = match fetched {
        // Whatever it says to somebody without a key: it speaks.
        Ok(fetched) => fetched.status < 500,
        Err(FetchError::TooLarge(_)) => true,
        Err(_) => false,
    };
    if let Some(clusters) = gateway.clusters() {
        clusters.probed(probe.member, is_reached.then(|| now.since(begun)), now);
    }
    is_reached
}
