//! What is told to peers and what is made of their words. No I/O and no clock: whoever carries the
//! messages hands in the time.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use gateway::{Gateway, Member, Outbox, Peering, SentPrompts};
use telemetry::PeerMetrics;
use telemetry::metrics::labels::{Direction, PeerLoss};
use types::{EndpointAddress, Slot, Timestamp};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::books::{Heard, Told, Word};
use crate::chains::Chains;
use crate::message::{CreditEntry, Kind, Reader, Writer};
use crate::settings::Settings;

/// Blocks that may wait for one flush: 1 MiB.
const OUTBOX_BLOCKS_MAX: usize = 131_072;
/// Messages of credits in one flush: about 4,000 endpoints at the least; the rest has its turn in the
/// next.
const CREDIT_MESSAGES_MAX: usize = 64;
/// Messages of prompts in one flush: 75 kB, 9,400 blocks.
const PROMPT_MESSAGES_MAX: usize = 64;
/// Longest time without a word.
const SIGN_OF_LIFE: Duration = Duration::from_millis(250);

/// One gateway's part in the sharing.
pub struct Sharing {
    gateway: Arc<Gateway>,
    metrics: Arc<PeerMetrics>,
    hash_key: u64,
    silence: Duration,
    outbox: Arc<Outbox>,
    prompts: SentPrompts,
    chains: Chains,
    heard: Heard,
    members: Vec<Known>,
    /// Where in `members` each is, by the key that peers know it by.
    by_key: HashMap<u64, usize>,
    by_slot: HashMap<Slot, u64>,
    /// Whose turn it is first.
    hand: usize,
    credit_messages_max: usize,
    last_flush: Option<Timestamp>,
    last_word: Option<Timestamp>,
    warned_of_blocks: bool,
}

#[derive(Debug)]
struct Known {
    key: u64,
    member: Arc<Member>,
    told: Told,
}

impl Sharing {
    /// Makes the gateway hash prompts as its peers do. Before traffic.
    pub fn new(gateway: Arc<Gateway>, settings: &Settings) -> Self {
        let metrics = Arc::clone(&gateway.metrics.gateway().peers);
        let hash_key = settings.key.hashes();
        let outbox = Arc::new(Outbox::new(OUTBOX_BLOCKS_MAX));
        gateway.join_peers(Peering { hash_key, outbox: Arc::clone(&outbox) });
        let mut sharing = Self {
            gateway,
            metrics,
            hash_key,
            silence: settings.silence,
            outbox,
            prompts: SentPrompts::default(),
            chains: Chains::default(),
            heard: Heard::default(),
            members: Vec::new(),
            by_key: HashMap::new(),
            by_slot: HashMap::new(),
            hand: 0,
            credit_messages_max: CREDIT_MESSAGES_MAX,
            last_flush: None,
            last_word: None,
            warned_of_blocks: false,
        };
        sharing.follow_members();
        sharing
    }

    /// Takes notice of endpoints that came or went.
    pub fn follow_members(&mut self) {
        let mut before: HashMap<u64, Known> =
            self.members.drain(..).map(|known| (known.key, known)).collect();
        for member in self.gateway.members() {
            let key = key_of(&member.endpoint.address, self.hash_key);
            let told = match before.remove(&key) {
                Some(known) if Arc::ptr_eq(&known.member, &member) => known.told,
                _ => Told::nothing(),
            };
            self.members.push(Known { key, member, told });
        }
        let places = self.members.iter().enumerate();
        self.by_key = places.map(|(at, known)| (known.key, at)).collect();
        let slots = self.members.iter();
        self.by_slot = slots.map(|known| (known.member.endpoint.slot, known.key)).collect();
        self.heard.keep(|key| self.by_key.contains_key(&key));
        self.hand = 0;
    }

    /// A peer came that knows nothing yet: all is told again.
    pub fn peer_came(&mut self) {
        self.chains.forget();
        for known in &mut self.members {
            known.told.forget();
        }
    }

    /// Appends what is to be told to every peer now. Bounded; empty most of the time while idle.
    pub fn flush(&mut self, now: Timestamp, messages: &mut Vec<Vec<u8>>) {
        self.flush_credits(now, messages);
        self.flush_prompts(now, messages);
        self.last_flush = Some(now);
        if !messages.is_empty() {
            self.last_word = Some(now);
        }
    }

    /// The same when nobody is there to hear it: what is waiting is of no use any more.
    pub fn flush_to_nobody(&mut self, now: Timestamp) {
        self.outbox.take(&mut self.prompts);
        self.prompts.clear();
        self.last_flush = Some(now);
    }

    /// The last word of a gateway that stops.
    pub fn farewell() -> Vec<u8> {
        vec![Kind::Leaving.byte()]
    }

    /// Takes a peer's message.
    ///
    /// * `sender`, `counter`: who said it, and a number that rises with each of its messages.
    pub fn receive(&mut self, sender: u64, counter: u64, message: &[u8], now: Timestamp) {
        let understood = match message.split_first() {
            None => None,
            Some((kind, rest)) => match Kind::of(*kind) {
                Some(Kind::Credits) => self.hear_credits(sender, counter, Reader::new(rest), now),
                Some(Kind::Prompts) => self.hear_prompts(Reader::new(rest), now),
                Some(Kind::Leaving) => {
                    let changed = self.heard.leave(sender, counter);
                    self.settle(&changed, Duration::MAX, now);
                    Some(())
                }
                Some(Kind::Gossip) | None => None,
            },
        };
        if understood.is_none() {
            self.metrics.losses.of(PeerLoss::Malformed).inc();
        }
    }

    /// Drops the credit of peers that are silent. To be called with every flush.
    pub fn expire(&mut self, now: Timestamp) {
        let changed = self.heard.expire(self.silence, now);
        self.settle(&changed, Duration::MAX, now);
    }

    fn flush_credits(&mut self, now: Timestamp, messages: &mut Vec<Vec<u8>>) {
        let span = self.last_flush.map_or(Duration::ZERO, |last| now.since(last));
        let span_ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let mut writer = Writer::credits(span_ms, self.credit_messages_max);
        let count = self.members.len();
        for step in 0..count {
            let at = (self.hand + step) % count;
            let known = &mut self.members[at];
            let credit = known.member.state.credit(now);
            if !known.told.is_due(&credit, now) {
                continue;
            }
            if !writer.credit(&CreditEntry { endpoint: known.key, credit }) {
                self.hand = at;
                break;
            }
            known.told.tell(credit, now);
        }
        if self.last_word.is_none_or(|last| now.since(last) >= SIGN_OF_LIFE) {
            writer.at_least_one();
        }
        messages.append(&mut writer.finish());
    }

    fn flush_prompts(&mut self, now: Timestamp, messages: &mut Vec<Vec<u8>>) {
        self.outbox.take(&mut self.prompts);
        let mut writer = Writer::prompts(self.gateway.block_tokens(), PROMPT_MESSAGES_MAX);
        let (mut told, mut lost) = (0, 0);
        for (slot, hashes) in self.prompts.iter() {
            let Some(endpoint) = self.by_slot.get(&slot) else { continue };
            match self.chains.tell(*endpoint, hashes, &mut writer, now) {
                Some(blocks) => told += blocks as u64,
                None => lost += 1,
            }
        }
        self.prompts.clear();
        self.metrics.prefix_blocks.of(Direction::Sent).add(told);
        self.metrics.losses.of(PeerLoss::FlushFull).add(lost + self.outbox.take_dropped());
        messages.append(&mut writer.finish());
    }

    fn hear_credits(
        &mut self,
        sender: u64,
        counter: u64,
        mut reader: Reader<'_>,
        now: Timestamp,
    ) -> Option<()> {
        let span = Duration::from_millis(reader.number()?);
        let Some(word) = self.heard.listen(sender, counter, now) else { return Some(()) };
        while !reader.is_empty() {
            let CreditEntry { endpoint, credit } = reader.credit()?;
            if !self.by_key.contains_key(&endpoint) {
                continue;
            }
            let was_told = self.heard.note(sender, endpoint, credit, now);
            let over = if word == Word::OfANewcomer && !was_told { Duration::MAX } else { span };
            self.settle(&[endpoint], over, now);
        }
        Some(())
    }

    fn hear_prompts(&mut self, mut reader: Reader<'_>, now: Timestamp) -> Option<()> {
        let block_tokens = reader.number()?;
        let own = self.gateway.block_tokens();
        if block_tokens != u64::from(own) {
            if !std::mem::replace(&mut self.warned_of_blocks, true) {
                tracing::warn!(
                    block_tokens,
                    own,
                    "a peer cuts prompts into other blocks (prefixIndex.blockTokens): its prompts cannot be used"
                );
            }
            return Some(());
        }
        while !reader.is_empty() {
            let entry = reader.prompt()?;
            let blocks = entry.hashes.len() as u64;
            let Some(at) = self.by_key.get(&entry.endpoint) else { continue };
            let member = &self.members[*at].member;
            let hangs_in_the_air = entry.continues
                && entry.hashes.first().is_some_and(|first| {
                    self.gateway.held_blocks(member, std::slice::from_ref(first)) == 0
                });
            if hangs_in_the_air {
                self.metrics.losses.of(PeerLoss::Unlinked).inc();
                continue;
            }
            self.metrics.prefix_blocks.of(Direction::Received).add(blocks);
            self.gateway.record_for_peer(member, &entry.hashes);
            self.chains.heard(&entry, now);
        }
        Some(())
    }

    /// Puts the sums of these endpoints in force.
    fn settle(&self, endpoints: &[u64], over: Duration, now: Timestamp) {
        for endpoint in endpoints {
            if let Some(at) = self.by_key.get(endpoint) {
                let state = &self.members[*at].member.state;
                state.set_peers(self.heard.sum(*endpoint), over, now);
            }
        }
    }
}

/// What peers call an endpoint.
fn key_of(address: &EndpointAddress, hash_key: u64) -> u64 {
    xxh3_64_with_seed(address.to_string().as_bytes(), hash_key)
}
