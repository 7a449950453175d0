use std::time::Duration;

use sched::Credit;
use types::Timestamp;

use super::{Heard, PEERS_MAX, Told, Word};

const SILENCE: Duration = Duration::from_secs(1);

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn requests(requests: u32) -> Credit {
    Credit { requests, ..Credit::default() }
}

fn ahead(tokens_ahead: u64) -> Credit {
    Credit { requests: 1, tokens_ahead, ..Credit::default() }
}

/// One peer that tells one thing.
fn hear(heard: &mut Heard, sender: u64, counter: u64, credit: Credit, now: Timestamp) -> bool {
    let is_news = heard.listen(sender, counter, now).is_some();
    if is_news {
        heard.note(sender, 5, credit, now);
    }
    is_news
}

#[test]
fn a_change_is_told_at_once_and_the_rest_every_second() {
    let mut told = Told::nothing();
    assert!(told.is_due(&requests(1), at(0)));
    told.tell(requests(1), at(0));
    assert!(!told.is_due(&requests(1), at(999)));
    assert!(told.is_due(&requests(1), at(1000)));
    assert!(told.is_due(&requests(2), at(1)));
}

#[test]
fn an_idle_endpoint_is_told_a_few_times_and_then_no_more() {
    let mut told = Told::nothing();
    assert!(!told.is_due(&requests(0), at(0)), "nobody thinks that it is busy");
    told.tell(requests(1), at(0));
    let mut tellings = 0;
    for second in 1..20 {
        if told.is_due(&requests(0), at(second * 1000)) {
            told.tell(requests(0), at(second * 1000));
            tellings += 1;
        }
    }
    assert_eq!(tellings, 3);
}

#[test]
fn what_is_left_to_compute_is_told_in_steps_of_an_eighth() {
    let mut told = Told::nothing();
    told.tell(ahead(800), at(0));
    assert!(!told.is_due(&ahead(701), at(1)));
    assert!(told.is_due(&ahead(699), at(1)));
}

#[test]
fn credits_of_all_peers_add_up() {
    let mut heard = Heard::default();
    assert!(hear(&mut heard, 1, 1, requests(3), at(0)));
    assert!(hear(&mut heard, 2, 1, requests(4), at(0)));
    assert_eq!(heard.sum(5), requests(7));
    assert_eq!(heard.sum(6), requests(0));
    assert!(hear(&mut heard, 1, 2, requests(0), at(1)));
    assert_eq!(heard.sum(5), requests(4));
}

#[test]
fn the_newest_word_counts_whatever_comes_late_or_again() {
    let mut heard = Heard::default();
    assert!(hear(&mut heard, 1, 8, requests(3), at(0)));
    assert!(!hear(&mut heard, 1, 7, requests(9), at(1)));
    assert!(!hear(&mut heard, 1, 8, requests(9), at(1)));
    assert_eq!(heard.sum(5), requests(3));
}

#[test]
fn a_silent_peers_credit_goes() {
    let mut heard = Heard::default();
    hear(&mut heard, 1, 1, requests(3), at(0));
    hear(&mut heard, 2, 1, requests(4), at(500));
    assert!(heard.expire(SILENCE, at(1000)).is_empty());
    assert_eq!(heard.expire(SILENCE, at(1001)), [5]);
    assert_eq!(heard.sum(5), requests(4));
}

#[test]
fn an_entry_that_is_not_told_again_goes_though_its_peer_talks() {
    let mut heard = Heard::default();
    hear(&mut heard, 1, 1, requests(3), at(0));
    for counter in 2..40 {
        heard.listen(1, counter, at(counter * 100));
    }
    assert_eq!(heard.expire(SILENCE, at(3901)), [5]);
}

#[test]
fn a_peer_that_leaves_is_not_heard_again() {
    let mut heard = Heard::default();
    hear(&mut heard, 1, 1, requests(3), at(0));
    assert_eq!(heard.leave(1, 2), [5]);
    assert!(!hear(&mut heard, 1, 3, requests(3), at(1)));
    assert_eq!(heard.sum(5), requests(0));
}

#[test]
fn what_a_newcomer_has_was_there_before() {
    let mut heard = Heard::default();
    assert_eq!(heard.listen(1, 1, at(0)), Some(Word::OfANewcomer));
    heard.note(1, 5, requests(1), at(0));
    assert_eq!(heard.listen(1, 2, at(999)), Some(Word::OfANewcomer));
    assert_eq!(heard.listen(1, 3, at(1000)), Some(Word::OfAPeer));
    heard.expire(SILENCE, at(9000));
    assert_eq!(heard.listen(1, 4, at(9000)), Some(Word::OfANewcomer), "after a split");
}

#[test]
fn one_peer_too_many_displaces_a_silent_one_or_is_not_heard() {
    let mut heard = Heard::default();
    for sender in 0..PEERS_MAX as u64 {
        assert!(hear(&mut heard, sender, 1, requests(1), at(sender)));
    }
    assert!(!hear(&mut heard, 1000, 1, requests(1), at(100)), "all of them have credit");
    heard.leave(3, 2);
    assert!(hear(&mut heard, 1000, 1, requests(1), at(100)));
    assert_eq!(heard.sum(5), requests(PEERS_MAX as u32));
}
