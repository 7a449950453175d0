//! Credits: what is still to be told of ours, and what peers told of theirs.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::Duration;

use sched::Credit;
use types::Timestamp;

/// Every endpoint that is in use is told again at least this often, changed or not.
pub(crate) const REFRESH: Duration = Duration::from_secs(1);
/// What was not told again for so long is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(3);
/// An idle endpoint is told so many times.
const IDLE_TELLINGS: u8 = 3;
/// Peers, and those that were there a while ago.
const PEERS_MAX: usize = 64;

/// What peers know of one endpoint's credit here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    credit: Credit,
    at: Option<Timestamp>,
    tellings_left: u8,
}

impl Told {
    pub(crate) fn nothing() -> Self {
        Self { credit: Credit::default(), at: None, tellings_left: 0 }
    }

    /// Whether `credit` must be told now.
    pub(crate) fn is_due(&self, credit: &Credit, now: Timestamp) -> bool {
        if differs(&self.credit, credit) {
            return true;
        }
        let is_of_use = !credit.is_none() || self.tellings_left > 0;
        is_of_use && self.at.is_none_or(|at| now.since(at) >= REFRESH)
    }

    pub(crate) fn tell(&mut self, credit: Credit, now: Timestamp) {
        self.tellings_left = match credit.is_none() {
            true => self.tellings_left.saturating_sub(1),
            false => IDLE_TELLINGS,
        };
        self.credit = credit;
        self.at = Some(now);
    }

    /// A peer came that knows nothing yet.
    pub(crate) fn forget(&mut self) {
        self.at = None;
    }
}

/// What is left to compute falls from moment to moment; a difference below an eighth is none.
fn differs(told: &Credit, credit: &Credit) -> bool {
    let same = Credit { tokens_ahead: told.tokens_ahead, ..*credit } == *told;
    !same || told.tokens_ahead.abs_diff(credit.tokens_ahead) > told.tokens_ahead / 8
}

/// What all peers told.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    peers: HashMap<u64, Peer>,
}

#[derive(Debug)]
struct Peer {
    since: Timestamp,
    last: Timestamp,
    /// Of its newest credits.
    counter: u64,
    has_left: bool,
    entries: HashMap<u64, (Credit, Timestamp)>,
}

/// How a peer's word is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// It has just begun to tell what it has: that was there before.
    OfANewcomer,
    /// What it tells has changed since its last word.
    OfAPeer,
}

impl Heard {
    /// Whether a peer's credits are news; `None`: too old, or one peer too many.
    pub(crate) fn listen(&mut self, sender: u64, counter: u64, now: Timestamp) -> Option<Word> {
        if !self.peers.contains_key(&sender) {
            self.make_room()?;
        }
        let newcomer =
            || Peer { since: now, last: now, counter: 0, has_left: false, entries: HashMap::new() };
        let peer = self.peers.entry(sender).or_insert_with(newcomer);
        // A counter never comes twice: what is old was late, or was recorded and played again.
        if peer.has_left || counter <= peer.counter {
            return None;
        }
        if peer.entries.is_empty() && now.since(peer.last) > REFRESH {
            peer.since = now;
        }
        peer.counter = counter;
        peer.last = now;
        Some(if now.since(peer.since) < REFRESH { Word::OfANewcomer } else { Word::OfAPeer })
    }

    /// Notes a peer's credit on an endpoint; whether the peer had told of it before.
    pub(crate) fn note(
        &mut self,
        sender: u64,
        endpoint: u64,
        credit: Credit,
        now: Timestamp,
    ) -> bool {
        let Some(peer) = self.peers.get_mut(&sender) else { return true };
        if credit.is_none() {
            return peer.entries.remove(&endpoint).is_some();
        }
        peer.entries.insert(endpoint, (credit, now)).is_some()
    }

    /// All that peers have on an endpoint.
    pub(crate) fn sum(&self, endpoint: u64) -> Credit {
        let entries = self.peers.values().filter_map(|peer| peer.entries.get(&endpoint));
        entries.fold(Credit::default(), |sum, (credit, _)| sum.plus(*credit))
    }

    /// Forgets what a peer told that says it leaves; the endpoints that this changes.
    pub(crate) fn leave(&mut self, sender: u64, counter: u64) -> Vec<u64> {
        let Some(peer) = self.peers.get_mut(&sender) else { return Vec::new() };
        if counter <= peer.counter {
            return Vec::new();
        }
        peer.has_left = true;
        std::mem::take(&mut peer.entries).into_keys().collect()
    }

    /// Forgets what was not told again; the endpoints that this changes.
    pub(crate) fn expire(&mut self, silence: Duration, now: Timestamp) -> Vec<u64> {
        let mut changed = Vec::new();
        for peer in self.peers.values_mut() {
            let is_silent = now.since(peer.last) > silence;
            peer.entries.retain(|endpoint, (_, told)| {
                let stays = !is_silent && now.since(*told) <= FORGOTTEN;
                if !stays {
                    changed.push(*endpoint);
                }
                stays
            });
        }
        changed
    }

    /// Forgets endpoints that are no longer here.
    pub(crate) fn keep(&mut self, is_here: impl Fn(u64) -> bool) {
        for peer in self.peers.values_mut() {
            peer.entries.retain(|endpoint, _| is_here(*endpoint));
        }
    }

    /// Room for one more peer; the one that was silent longest goes, but none that has credit.
    fn make_room(&mut self) -> Option<()> {
        if self.peers.len() < PEERS_MAX {
            return Some(());
        }
        let idle = self.peers.iter().filter(|(_, peer)| peer.entries.is_empty());
        let (oldest, _) = idle.min_by_key(|(_, peer)| peer.last)?;
        let oldest = *oldest;
        self.peers.remove(&oldest);
        Some(())
    }
}
