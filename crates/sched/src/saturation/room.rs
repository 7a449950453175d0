//! How much more a pool takes now, and from whom.

use std::borrow::Borrow;

use types::{Saturation, Standing};

use super::Config;
use crate::Candidate;

/// A pool's capacity at one instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    pub has_endpoints: bool,
    within: Part,
    lower: Part,
    beyond: Part,
}

/// What is left for those of one standing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Part {
    /// Requests until there is none.
    requests: u32,
    /// Share in use now, `0.0..=1.0`.
    saturation: f32,
}

/// Sums over endpoints of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: u32,
    /// By standing.
    room: [u32; 3],
    saturation: f32,
    stretch: f32,
    stretch_of_one: f32,
}

const STANDINGS: [Standing; 3] = [Standing::Within, Standing::Lower, Standing::Beyond];

impl Room {
    /// Endpoints that cannot be used have no room; stale ones only if there is no other.
    pub fn of(config: &Config, candidates: impl Iterator<Item = impl Borrow<Candidate>>) -> Self {
        let [mut fresh, mut stale] = [Sums::default(); 2];
        for candidate in candidates {
            let candidate = candidate.borrow();
            if candidate.ejected || candidate.asleep {
                continue;
            }
            let sums = if candidate.stale { &mut stale } else { &mut fresh };
            sums.add(config, candidate);
        }
        let sums = if fresh.count > 0 { fresh } else { stale };
        let [within, lower, beyond] = [0, 1, 2].map(|at| sums.part(config, at));
        Self { has_endpoints: sums.count > 0, within, lower, beyond }
    }

    /// The share in use once this many more were sent; 1.0 where no more has room.
    pub fn saturation_after(&self, sent: u32) -> Saturation {
        if !self.has_endpoints {
            return Saturation::FULL;
        }
        Saturation {
            within: self.within.after(sent),
            lower: self.lower.after(sent),
            beyond: self.beyond.after(sent),
        }
    }
}

impl Sums {
    fn add(&mut self, config: &Config, candidate: &Candidate) {
        self.count += 1;
        self.saturation += config.endpoint(candidate).min(1.0);
        let room = config.room(candidate);
        for (sum, standing) in self.room.iter_mut().zip(STANDINGS) {
            if config.is_open(candidate, standing) {
                *sum = sum.saturating_add(room);
            }
        }
        if config.reserve.is_some() {
            self.stretch += candidate.stretch();
            self.stretch_of_one += candidate.stretch_of_one();
        }
    }

    fn part(&self, config: &Config, at: usize) -> Part {
        let count = self.count.max(1) as f32;
        let all = Part { requests: self.room[at], saturation: self.saturation / count };
        let stretch_max = config.reserve.and_then(|reserve| reserve.stretch_max(STANDINGS[at]));
        let Some(max) = stretch_max else { return all };
        // Each that is sent lengthens the wait of the next; the last may exceed the bound by one prompt.
        let left = max - self.stretch / count;
        let more = (left * count * count / self.stretch_of_one).ceil().max(0.0) as u32;
        let used = (1.0 - left / (max - 1.0)).clamp(0.0, 1.0);
        Part { requests: all.requests.min(more), saturation: all.saturation.max(used) }
    }
}

impl Part {
    fn after(&self, sent: u32) -> f32 {
        if sent >= self.requests {
            return 1.0;
        }
        let used = sent as f32 / self.requests as f32;
        self.saturation + (1.0 - self.saturation) * used
    }
}

#[cfg(test)]
mod tests {
    use types::{EndpointId, Slot};

    use super::*;

    fn after(room: Room, sent: u32) -> f32 {
        room.saturation_after(sent).within
    }

    fn room(waiting: &[u32]) -> Room {
        let config = Config { queue_depth: 4, ..Config::default() };
        let candidates = waiting.iter().map(|waiting| {
            let mut candidate = Candidate::idle(EndpointId(0), Slot(0));
            candidate.scraped.waiting = Some(*waiting);
            candidate.scraped.running = Some(8);
            candidate
        });
        Room::of(&config, candidates)
    }

    #[test]
    fn a_pool_is_full_when_as_many_were_sent_as_there_was_room_for() {
        let room = room(&[2, 3, 9]);
        assert_eq!(room.within.requests, 3);
        assert!(after(room, 0) < after(room, 2));
        assert!(after(room, 2) < 1.0);
        assert_eq!(after(room, 3), 1.0);
    }

    #[test]
    fn a_pool_without_endpoints_is_full() {
        assert_eq!(after(room(&[]), 0), 1.0);
        assert!(!room(&[]).has_endpoints);
    }

    #[test]
    fn a_pool_whose_endpoints_cannot_be_used_has_none() {
        let mut asleep = Candidate::idle(EndpointId(0), Slot(0));
        asleep.asleep = true;
        let config = Config::default();
        assert!(!Room::of(&config, [asleep].iter()).has_endpoints);
    }

    #[test]
    fn stale_endpoints_count_only_where_no_other_is_left() {
        let config = Config { queue_depth: 4, ..Config::default() };
        let mut stale = Candidate::idle(EndpointId(0), Slot(0));
        stale.stale = true;
        let mut full = Candidate::idle(EndpointId(1), Slot(1));
        full.scraped.waiting = Some(4);
        let both = Room::of(&config, [stale.clone(), full].iter());
        assert_eq!(after(both, 0), 1.0);
        assert!(after(Room::of(&config, [stale].iter()), 0) < 1.0);
    }
}
