//! Where queued requests lie: by place, each with a number that is never given again.

use std::time::Duration;

use types::{Standing, Timestamp};

use crate::held::Held;
use crate::work::{Ticket, Work};

/// A queued request.
#[derive(Debug)]
pub(crate) struct Item<T> {
    pub(crate) number: u64,
    pub(crate) work: Work,
    pub(crate) payload: T,
    /// What it counts with; of tokens no more than the bounds allow one request.
    pub(crate) held: Held,
    /// Its flow in the band's [`Flows`](crate::flows::Flows).
    pub(crate) flow: u32,
    /// Its place in the flow's order.
    pub(crate) key: u64,
    pub(crate) offered: Timestamp,
    /// As what it was refused before, if it came back when it was told to.
    pub(crate) returned: Option<Standing>,
    /// When the budget that runs is used up: the band's TTL, or that without endpoints.
    pub(crate) budget_end: Timestamp,
    /// What is left of the other budget, which stands still.
    pub(crate) budget_other: Duration,
}

impl<T> Item<T> {
    /// When it has to leave, whatever the reason.
    pub(crate) fn expiry(&self) -> Timestamp {
        self.last_start().map_or(self.budget_end, |start| start.min(self.budget_end))
    }

    /// Sent later than this, its first token would come after its deadline.
    pub(crate) fn last_start(&self) -> Option<Timestamp> {
        let deadline = self.work.deadline?;
        let service = u64::try_from(self.work.service.as_nanos()).unwrap_or(u64::MAX);
        // A nanosecond more, so that what can just make it is still sent.
        Some(Timestamp(deadline.0.saturating_sub(service).saturating_add(1)))
    }
}

#[derive(Debug)]
pub(crate) struct Store<T> {
    places: Vec<Option<Item<T>>>,
    free: Vec<u32>,
    numbers: u64,
}

impl<T> Store<T> {
    pub(crate) fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new(), numbers: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// The number that the next item will have.
    pub(crate) fn next_number(&self) -> u64 {
        self.numbers + 1
    }

    /// * `item`: its number is set here.
    pub(crate) fn insert(&mut self, mut item: Item<T>) -> Ticket {
        self.numbers += 1;
        item.number = self.numbers;
        let number = item.number;
        let place = match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = Some(item);
                place
            }
            None => {
                self.places.push(Some(item));
                (self.places.len() - 1) as u32
            }
        };
        Ticket { place, number }
    }

    pub(crate) fn get(&self, place: u32) -> Option<&Item<T>> {
        self.places.get(place as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut Item<T>> {
        self.places.get_mut(place as usize)?.as_mut()
    }

    pub(crate) fn remove(&mut self, place: u32) -> Option<Item<T>> {
        let item = self.places.get_mut(place as usize)?.take()?;
        self.free.push(place);
        Some(item)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Item<T>)> {
        let each = self.places.iter().enumerate();
        each.filter_map(|(place, item)| Some((place as u32, item.as_ref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Item<T>)> {
        let each = self.places.iter_mut().enumerate();
        each.filter_map(|(place, item)| Some((place as u32, item.as_mut()?)))
    }
}
