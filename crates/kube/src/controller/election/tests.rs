use super::*;

const SECONDS: u64 = 15;

fn candidate(name: &str) -> Election {
    Election::new(name.to_owned(), Timing::of(Duration::from_secs(SECONDS)))
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn record(holder: &str, renewed: &str) -> Option<Record> {
    let (holder, renewed) = (holder.to_owned(), renewed.to_owned());
    Some(Record { holder, renewed, seconds: SECONDS, transitions: 3 })
}

#[test]
fn who_finds_no_lease_takes_it() {
    let mut a = candidate("a");
    assert_eq!(a.look(None, at(0)), Step::Write { transitions: 0 });
    assert!(!a.leads(at(0)), "not before it is written");
    assert!(a.wrote(at(0)));
    assert!(a.leads(at(9)));
}

#[test]
fn another_leads_as_long_as_its_record_changes() {
    let mut b = candidate("b");
    for n in 0..10 {
        assert_eq!(b.look(record("a", &n.to_string()), at(n * 14)), Step::Wait);
    }
}

#[test]
fn a_lease_that_stays_the_same_for_its_duration_is_taken() {
    let mut b = candidate("b");
    assert_eq!(b.look(record("a", "x"), at(100)), Step::Wait);
    assert_eq!(b.look(record("a", "x"), at(114)), Step::Wait);
    assert_eq!(b.look(record("a", "x"), at(115)), Step::Write { transitions: 4 });
}

#[test]
fn a_lease_that_was_given_back_is_taken_at_once() {
    assert_eq!(candidate("b").look(record("", "x"), at(0)), Step::Write { transitions: 4 });
}

#[test]
fn a_leader_that_cannot_renew_gives_up_before_another_may_take_over() {
    let mut a = candidate("a");
    let mut b = candidate("b");
    a.wrote(at(0));
    assert_eq!(b.look(record("a", "0"), at(0)), Step::Wait);
    let mut both = false;
    for second in 0..40 {
        let b_may = b.look(record("a", "0"), at(second)) != Step::Wait;
        both |= b_may && a.leads(at(second));
    }
    assert!(!both);
    assert!(!a.leads(at(10)));
}

#[test]
fn a_name_in_the_lease_from_an_earlier_life_does_not_make_a_leader() {
    let mut a = candidate("a");
    assert_eq!(a.look(record("a", "x"), at(0)), Step::Write { transitions: 3 });
    assert!(!a.leads(at(0)));
    assert!(a.wrote(at(0)) && a.leads(at(1)));
    assert!(!a.wrote(at(2)), "a renewal is no beginning");
}
