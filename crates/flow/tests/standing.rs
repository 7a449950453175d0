//! Who is beyond an equal part of what is in flight, and what is left free for the others.

mod common;

use common::{ms, offer, queue, standard, work};
use types::{Priority, Saturation, Standing};
use wicketgate_flow::{Fairness, FlowKey, Queue};

/// Full for whoever is beyond its part, and nobody else.
const RESERVED: Saturation = Saturation { within: 0.5, lower: 0.9, beyond: 1.0 };

fn flow(id: &str) -> FlowKey {
    FlowKey { id: id.into(), priority: Priority::STANDARD }
}

/// Sends so many requests of ten tokens at once.
fn send(queue: &mut Queue<u64>, id: &str, count: u64, at: u64) {
    for _ in 0..count {
        assert!(queue.pass(&standard(id, 10, ms(at)), 0.0, ms(at)).is_some());
    }
}

fn is_beyond(queue: &Queue<u64>, id: &str, at: u64) -> bool {
    queue.standing(&flow(id), ms(at)) == Standing::Beyond
}

#[test]
fn a_flow_that_is_alone_is_never_beyond_its_part() {
    let mut queue = queue(|_| {});
    send(&mut queue, "a", 100, 0);
    assert!(!is_beyond(&queue, "a", 0));
}

#[test]
fn a_flow_is_beyond_its_part_from_half_as_much_again_as_an_equal_one() {
    let mut queue = queue(|_| {});
    for id in ["b", "c", "d"] {
        send(&mut queue, id, 10, 0);
    }
    // Of four flows, 15 of 45 are a third: more than a quarter, less than three eighths.
    send(&mut queue, "a", 15, 0);
    assert!(!is_beyond(&queue, "a", 0));
    send(&mut queue, "a", 4, 0);
    assert!(is_beyond(&queue, "a", 0) && !is_beyond(&queue, "b", 0));
}

#[test]
fn room_is_kept_for_one_that_asked_within_a_minute_and_not_for_longer() {
    let mut queue = queue(|_| {});
    send(&mut queue, "now-and-then", 1, 0);
    queue.drained(&flow("now-and-then"), 10, ms(1000));
    send(&mut queue, "a", 5, 2000);
    assert!(is_beyond(&queue, "a", 59_999), "one of two has all");
    assert!(!is_beyond(&queue, "a", 60_001));
}

#[test]
fn what_has_ended_or_was_never_sent_is_in_flight_no_more() {
    let mut queue = queue(|_| {});
    send(&mut queue, "b", 2, 0);
    send(&mut queue, "a", 10, 0);
    assert!(is_beyond(&queue, "a", 0));
    for _ in 0..4 {
        queue.drained(&flow("a"), 10, ms(1));
        queue.unsent(&flow("a"), 10, ms(1));
    }
    assert!(!is_beyond(&queue, "a", 1), "two of four");
    for _ in 0..9 {
        queue.unsent(&flow("a"), u32::MAX, ms(2));
        queue.drained(&flow("nobody"), 10, ms(2));
    }
    send(&mut queue, "a", 1, 3);
    assert!(!is_beyond(&queue, "a", 3) && !is_beyond(&queue, "b", 3), "one of three, two of three");
}

#[test]
fn one_within_its_part_goes_past_all_that_are_beyond_theirs() {
    let mut queue = queue(|_| {});
    send(&mut queue, "b", 1, 0);
    send(&mut queue, "a", 9, 0);
    offer(&mut queue, standard("a", 10, ms(1)), 1).unwrap();
    assert!(queue.next(RESERVED, ms(1)).is_none(), "it leaves the reserve");
    offer(&mut queue, standard("b", 10, ms(2)), 2).unwrap();
    let gone = queue.next(RESERVED, ms(2)).unwrap();
    assert_eq!((gone.payload, gone.standing), (2, Standing::Within));
    assert!(queue.next(RESERVED, ms(2)).is_none());
    assert_eq!(queue.next(0.9, ms(2)).unwrap().standing, Standing::Beyond);
}

#[test]
fn a_band_below_one_that_asked_lately_leaves_a_part_of_the_reserve() {
    let mut queue = queue(|_| {});
    let full_below = Saturation { within: 0.5, lower: 1.0, beyond: 1.0 };
    assert!(queue.pass(&standard("a", 10, ms(0)), full_below, ms(0)).is_some());
    assert!(queue.pass(&work("c", Priority::CRITICAL, 10, ms(1)), full_below, ms(1)).is_some());
    assert_eq!(queue.standing(&flow("a"), ms(1)), Standing::Lower);
    assert_eq!(queue.standing(&flow("never-seen"), ms(1)), Standing::Lower);
    assert!(queue.pass(&standard("a", 10, ms(2)), full_below, ms(2)).is_none());
    assert!(queue.pass(&standard("a", 10, ms(61_002)), full_below, ms(61_002)).is_some());
}

#[test]
fn flows_of_a_band_that_knows_none_are_never_beyond_their_part() {
    let mut queue = queue(|config| config.band.fairness = Fairness::GlobalOrder);
    send(&mut queue, "b", 1, 0);
    send(&mut queue, "a", 50, 0);
    assert!(!is_beyond(&queue, "a", 0));
}
