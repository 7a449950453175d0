//! Whether a `Retry-After` is worth waiting for: clients that obey it and others before a pool that is
//! too small, in virtual time.

#![allow(clippy::unwrap_used)]

mod common;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use types::{Priority, Saturation, Standing, Timestamp};
use wicketgate_flow::{Config, Ended, Expiry, Queue, Victim, Work};

/// Requests that the pool works on at once, each a second long on average.
const SLOTS: usize = 20;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Arrive(usize),
    Done(usize),
}

#[derive(Clone)]
struct Client {
    flow: &'static str,
    priority: Priority,
    first: Timestamp,
    seconds: f64,
    /// Comes back after a tenth of what it is told.
    is_impatient: bool,
    /// Never comes back.
    gives_up: bool,
    /// It was told to come now.
    is_at_its_time: bool,
    tries: u32,
    served: Option<Timestamp>,
}

#[derive(Debug, Default)]
struct Outcome {
    /// Returns at the promised time, and how many of them were taken and later dispatched.
    returns: u32,
    kept: u32,
    busy_seconds: f64,
    ttl: u32,
}

struct World {
    queue: Queue<usize>,
    clients: Vec<Client>,
    events: BinaryHeap<Reverse<(Timestamp, u64, Event)>>,
    ordered: u64,
    busy: usize,
    rng: Pcg64Mcg,
    outcome: Outcome,
    until: Timestamp,
}

impl World {
    fn new(config: Config, clients: Vec<Client>, until: Timestamp) -> Self {
        let mut world = Self {
            queue: Queue::new(config),
            events: BinaryHeap::new(),
            ordered: 0,
            busy: 0,
            rng: Pcg64Mcg::seed_from_u64(9),
            outcome: Outcome::default(),
            until,
            clients,
        };
        for at in 0..world.clients.len() {
            world.order(world.clients[at].first, Event::Arrive(at));
        }
        world
    }

    fn order(&mut self, at: Timestamp, event: Event) {
        self.ordered += 1;
        self.events.push(Reverse((at, self.ordered, event)));
    }

    fn saturation(&self) -> f32 {
        self.busy as f32 / SLOTS as f32
    }

    fn run(mut self) -> (Outcome, Vec<Client>) {
        let mut last = Timestamp::ZERO;
        while let Some(Reverse((now, _, event))) = self.events.pop()
            && now < self.until
        {
            self.outcome.busy_seconds += self.busy as f64 * now.since(last).as_secs_f64();
            last = now;
            match event {
                Event::Arrive(at) => self.arrive(at, now),
                Event::Done(at) => {
                    self.busy -= 1;
                    let client = &self.clients[at];
                    let done = common::work(client.flow, client.priority, tokens(client), now);
                    self.queue.drained(&done.flow, done.tokens, now);
                }
            }
            let mut ended: Vec<Ended<usize, Expiry>> = Vec::new();
            self.queue.expired(now, &mut ended);
            for gone in ended {
                self.outcome.ttl += 1;
                self.refused(gone.payload, gone.retry_after, now);
            }
            while let Some(gone) = self.queue.next(self.saturation(), now) {
                self.start(gone.payload, now);
            }
        }
        (self.outcome, self.clients)
    }

    fn arrive(&mut self, at: usize, now: Timestamp) {
        let client = &mut self.clients[at];
        client.tries += 1;
        self.outcome.returns += u32::from(client.is_at_its_time);
        let mut work = common::work(client.flow, client.priority, tokens(client), now);
        work.fingerprint = Some(at as u64);
        if self.queue.pass(&work, self.saturation(), now).is_some() {
            return self.start(at, now);
        }
        let mut evicted = Vec::new();
        let refused = self.queue.offer(work, at, self.saturation(), now, &mut evicted).err();
        if let Some(refused) = refused {
            self.refused(at, refused.retry_after, now);
        }
        for gone in evicted {
            self.refused(gone.payload, gone.retry_after, now);
        }
    }

    fn refused(&mut self, at: usize, retry_after: Option<Duration>, now: Timestamp) {
        let told = retry_after.expect("it is worth coming back");
        assert!(told >= Duration::from_secs(1) && told.subsec_nanos() == 0, "{told:?}");
        let client = &mut self.clients[at];
        if client.gives_up {
            return;
        }
        client.is_at_its_time = !client.is_impatient;
        let wait = if client.is_impatient { told / 10 } else { told };
        // The way there and back, and a client that is a little late.
        let late = Duration::from_secs_f64(self.rng.random::<f64>() * 0.3);
        self.order(now + wait + late, Event::Arrive(at));
    }

    fn start(&mut self, at: usize, now: Timestamp) {
        self.busy += 1;
        self.outcome.kept += u32::from(self.clients[at].is_at_its_time);
        self.clients[at].served = Some(now);
        // Nobody knows exactly how long it takes.
        let noise = 0.5 + self.rng.random::<f64>();
        let end = now + Duration::from_secs_f64(self.clients[at].seconds * noise);
        self.order(end, Event::Done(at));
    }
}

fn tokens(client: &Client) -> u32 {
    (client.seconds * 1000.0) as u32
}

/// Clients at a constant load from `from` to `until`.
fn clients(load: f64, (from, until): (f64, f64), seed: u64) -> Vec<Client> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let (mut at, mut all) = (from, Vec::new());
    loop {
        at += -(1.0 - rng.random::<f64>()).ln() / (load * SLOTS as f64);
        if at >= until {
            return all;
        }
        all.push(Client {
            flow: ["a", "b", "c"][rng.random_range(0..3)],
            priority: Priority::STANDARD,
            first: Timestamp::from_duration(Duration::from_secs_f64(at)),
            seconds: 0.2 + 1.6 * rng.random::<f64>(),
            is_impatient: false,
            gives_up: false,
            is_at_its_time: false,
            tries: 0,
            served: None,
        });
    }
}

fn short_queue() -> Config {
    let mut config = Config::default();
    config.band.limits.requests_max = Some(200);
    config
}

fn seconds(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

/// Share of the returns at the promised time that were taken, and of the pool's time in use.
fn shares(outcome: &Outcome, until: f64) -> (f64, f64) {
    let kept = f64::from(outcome.kept) / f64::from(outcome.returns.max(1));
    (kept, outcome.busy_seconds / (until * SLOTS as f64))
}

#[test]
fn nine_in_ten_who_come_when_told_are_taken_under_a_load_that_lasts() {
    for load in [1.3, 2.0] {
        for config in [short_queue(), Config::default()] {
            let until = 900.0;
            let world = World::new(config, clients(load, (0.0, until), 1), seconds(900));
            let (outcome, _) = world.run();
            let (kept, used) = shares(&outcome, until);
            println!("load {load}: {kept:.3} kept, {used:.3} used, {outcome:?}");
            assert!(outcome.returns > 1000, "{outcome:?}");
            assert!(kept >= 0.9, "load {load}: {kept:.3}, {outcome:?}");
            assert!(used >= 0.95, "load {load}: {used:.3} of the pool in use");
        }
    }
}

#[test]
fn nine_in_ten_who_come_when_told_are_taken_after_a_burst() {
    let mut all = clients(0.5, (0.0, 600.0), 1);
    all.extend(clients(10.0, (60.0, 68.0), 2));
    let (outcome, all) = World::new(short_queue(), all, seconds(600)).run();
    let (kept, _) = shares(&outcome, 600.0);
    println!("burst: {kept:.3} kept, {outcome:?}");
    assert!(outcome.returns > 800 && kept >= 0.9, "{kept:.3}, {outcome:?}");
    assert!(all.iter().all(|client| client.served.is_some() || client.first > seconds(590)));
}

#[test]
fn clients_that_give_up_leave_no_capacity_unused_and_the_others_their_places() {
    let mut all = clients(1.5, (0.0, 900.0), 1);
    for client in all.iter_mut().step_by(2) {
        client.gives_up = true;
    }
    let (outcome, _) = World::new(short_queue(), all, seconds(900)).run();
    let (kept, used) = shares(&outcome, 900.0);
    println!("half give up: {kept:.3} kept, {used:.3} used, {outcome:?}");
    assert!(outcome.returns > 1000 && kept >= 0.9, "{kept:.3}, {outcome:?}");
    assert!(used >= 0.95, "{used:.3} of the pool in use");
}

#[test]
fn sheddable_clients_that_come_when_told_are_taken_too() {
    let mut all = clients(0.6, (0.0, 600.0), 1);
    let mut sheddable = clients(0.8, (0.0, 600.0), 2);
    sheddable.iter_mut().for_each(|client| client.priority = Priority::SHEDDABLE);
    all.extend(sheddable);
    let (outcome, _) = World::new(Config::default(), all, seconds(600)).run();
    let (kept, used) = shares(&outcome, 600.0);
    println!("sheddable: {kept:.3} kept, {used:.3} used, {outcome:?}");
    assert!(outcome.returns > 500 && kept >= 0.9, "{kept:.3}, {outcome:?}");
}

#[test]
fn who_comes_before_its_time_gains_nothing() {
    let mut all = clients(1.5, (0.0, 900.0), 1);
    for client in all.iter_mut().step_by(4) {
        client.is_impatient = true;
    }
    let (outcome, all) = World::new(short_queue(), all, seconds(900)).run();
    let (kept, _) = shares(&outcome, 900.0);
    // Of those that came between the first refusals and a time that leaves room for their return.
    let counted = |client: &&Client| client.first > seconds(60) && client.first < seconds(450);
    let wait = |is_impatient: bool| {
        let waits: Vec<f64> = all
            .iter()
            .filter(counted)
            .filter(|client| client.is_impatient == is_impatient)
            .map(|client| client.served.unwrap_or(seconds(900)).since(client.first).as_secs_f64())
            .collect();
        waits.iter().sum::<f64>() / waits.len() as f64
    };
    let (patient, impatient) = (wait(false), wait(true));
    println!("patient {patient:.1} s, impatient {impatient:.1} s, {kept:.3} kept");
    assert!(impatient >= patient * 0.97, "patient {patient:.1} s, impatient {impatient:.1} s");
    assert!(kept >= 0.9, "those who obey lost by the others: {kept:.3}");
}

fn known(flow: &str, fingerprint: u64, at: Timestamp) -> Work {
    Work { fingerprint: Some(fingerprint), ..common::standard(flow, 1000, at) }
}

/// Offers to a pool that is full for all; what it is told if it is refused.
fn told(queue: &mut Queue<usize>, work: Work) -> Option<Duration> {
    let (now, mut evicted) = (work.received, Vec::new());
    let refused = queue.offer(work, 0, 1.0, now, &mut evicted).err();
    assert!(evicted.is_empty(), "{evicted:?}");
    refused.map(|refused| refused.retry_after.expect("it is worth coming back"))
}

#[test]
fn who_comes_when_told_takes_the_place_of_one_of_its_flow_that_only_just_came() {
    let mut config = Config::default();
    config.band.limits.requests_max = Some(2);
    let mut queue = Queue::new(config);
    assert_eq!(told(&mut queue, known("a", 1, seconds(1))), None);
    assert_eq!(told(&mut queue, known("a", 2, seconds(2))), None);
    let first = told(&mut queue, known("a", 3, seconds(3))).expect("two wait already");
    let back = seconds(3) + first;
    let mut evicted = Vec::new();
    assert!(queue.offer(known("a", 3, back), 3, 1.0, back, &mut evicted).is_ok());
    let [gone] = evicted.as_slice() else { panic!("{evicted:?}") };
    assert_eq!((gone.why, gone.work.fingerprint), (Victim::OfPromise, Some(2)), "the latest");
    assert!(gone.retry_after.is_some(), "it is told when to come");
    // Those who were promised a place do not take one from each other.
    let again = back + gone.retry_after.unwrap();
    let mut evicted = Vec::new();
    assert!(queue.offer(known("a", 2, again), 2, 1.0, again, &mut evicted).is_ok());
    assert_eq!(evicted[0].work.fingerprint, Some(1));
    let refused = told(&mut queue, known("a", 1, again + evicted[0].retry_after.unwrap()));
    assert!(refused.is_some(), "both that wait had been promised their places");
}

#[test]
fn who_was_refused_within_its_part_comes_back_within_it() {
    // Full for whoever is beyond its part.
    let reserved = Saturation { within: 0.5, lower: 0.5, beyond: 1.0 };
    let mut config = Config::default();
    config.band.limits.requests_max = Some(1);
    let mut queue: Queue<usize> = Queue::new(config);
    let goes = |queue: &mut Queue<usize>, work: Work| {
        let now = work.received;
        queue.pass(&work, reserved, now)
    };
    assert!(goes(&mut queue, known("b", 0, seconds(1))).is_some());
    assert_eq!(told(&mut queue, known("a", 1, seconds(1))), None);
    let promised = told(&mut queue, known("a", 2, seconds(1))).expect("one waits already");
    let first = queue.next(0.0, seconds(1)).expect("its turn");
    assert_eq!(first.standing, Standing::Within);
    queue.drained(&common::standard("b", 1000, seconds(1)).flow, 1000, seconds(2));
    // All that is in flight is of this flow now, and another one asked lately.
    assert_eq!(queue.standing(&first.work.flow, seconds(2)), Standing::Beyond);
    assert_eq!(goes(&mut queue, known("a", 3, seconds(2))), None);
    let back = seconds(1) + promised;
    assert_eq!(goes(&mut queue, known("a", 2, back)), Some(Standing::Within));
}
