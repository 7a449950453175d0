use super::*;
use crate::choose::Scratch;
use crate::heartbeat::ModelLoad;
use crate::request::Request;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

fn second(n: u64) -> Timestamp {
    Timestamp::from_millis(n * 1000)
}

fn heartbeat(epoch: u64, n: u64) -> Heartbeat {
    let model = ModelLoad { endpoints_ready: 4, in_flight_max: 64, ..ModelLoad::new("m") };
    Heartbeat {
        epoch,
        sequence: n + 1,
        uptime: Duration::from_secs(n),
        models: vec![model],
        ..Heartbeat::default()
    }
}

fn fleet(members: u16) -> Fleet {
    let members = (0..members).map(|n| Member::new(&format!("m{n}"), "here")).collect();
    let fleet = Fleet::new(Settings::new("here"), members, None, second(0));
    for id in fleet.ids() {
        fleet.heard(id, heartbeat(1, 0), second(0)).unwrap();
    }
    fleet
}

/// Time passes; only these members are heard.
fn pass(fleet: &Fleet, from: u64, to: u64, heard: &[u16]) -> Vec<Event> {
    let mut events = Vec::new();
    for n in from + 1..=to {
        for id in heard {
            events.extend(fleet.heard(MemberId(*id), heartbeat(1, n), second(n)).unwrap());
        }
        events.extend(fleet.tick(second(n)));
    }
    events
}

fn conditions(fleet: &Fleet) -> Vec<Condition> {
    fleet.status(second(0)).members.iter().map(|member| member.condition).collect()
}

#[test]
fn half_of_the_members_die_and_more_than_half_at_once_freeze_the_table() {
    let calm = fleet(4);
    pass(&calm, 0, 20, &[0, 1]);
    assert_eq!(conditions(&calm)[2..], [Condition::Dead; 2]);

    let frozen = fleet(4);
    let events = pass(&frozen, 0, 60, &[0]);
    assert_eq!(events, [Event::Frozen]);
    assert_eq!(conditions(&frozen), [Condition::Fresh; 4]);
    assert_eq!(frozen.wants_probe(second(60)), [1, 2, 3].map(MemberId));
}

#[test]
fn a_frozen_table_thaws_when_most_are_heard_again_and_the_others_die() {
    let fleet = fleet(4);
    pass(&fleet, 0, 30, &[]);
    let events = pass(&fleet, 30, 40, &[0, 1, 2]);
    assert!(events.contains(&Event::Thawed), "{events:?}");
    assert_eq!(conditions(&fleet)[3], Condition::Dead);
    assert_eq!(conditions(&fleet)[0], Condition::Fresh);
}

#[test]
fn a_lost_region_that_is_most_of_the_fleet_is_ejected_by_probes_within_seconds() {
    let fleet = fleet(5);
    let mut ejected_at = None;
    for n in 1..40 {
        for id in [0, 1] {
            fleet.heard(MemberId(id), heartbeat(1, n), second(n)).unwrap();
        }
        for id in fleet.wants_probe(second(n)) {
            let round_trip = (id.0 < 2).then_some(Duration::from_millis(1));
            fleet.probed(id, round_trip, second(n));
        }
        fleet.tick(second(n));
        if ejected_at.is_none() && conditions(&fleet)[2..].iter().all(|c| !c.takes_requests()) {
            ejected_at = Some(n);
        }
    }
    assert!(ejected_at.is_some_and(|n| n <= 12), "{ejected_at:?}");
    assert!(!fleet.is_frozen());
}

#[test]
fn events_tell_what_changed_and_why() {
    let fleet = fleet(3);
    let events = pass(&fleet, 0, 11, &[0, 1]);
    let member = MemberId(2);
    let changed = |from, to| Event::Changed { member, from, to, cause: Cause::Silence };
    let expected = [
        changed(Condition::Fresh, Condition::Suspect),
        changed(Condition::Suspect, Condition::Dead),
    ];
    assert_eq!(events, expected);
}

#[test]
fn a_new_document_keeps_what_is_known_of_members_that_stay() {
    let old = fleet(3);
    pass(&old, 0, 20, &[0, 1]);
    let members = vec![Member::new("m2", "here"), Member::new("m1", "here"), Member::new("x", "y")];
    let new = Fleet::new(Settings::new("here"), members, Some(&old), second(20));
    let expected = [Condition::Dead, Condition::Fresh, Condition::Unknown];
    assert_eq!(conditions(&new), expected);
    let report = new.report(MemberId(1)).unwrap();
    assert_eq!(report.heartbeat.sequence, 21);
    assert_eq!(new.find("m2"), Some(MemberId(0)));
}

#[test]
fn a_heartbeat_that_no_member_can_mean_changes_nothing() {
    let fleet = fleet(1);
    let mut bad = heartbeat(1, 1);
    bad.models[0].drain_per_second = f32::NAN;
    assert!(matches!(fleet.heard(MemberId(0), bad, second(1)), Err(Rejected::Invalid(_))));
    let mut twice = heartbeat(1, 1);
    twice.models.push(twice.models[0].clone());
    assert!(matches!(fleet.heard(MemberId(0), twice, second(1)), Err(Rejected::Invalid(_))));
    let unknown = fleet.heard(MemberId(7), heartbeat(1, 1), second(1));
    assert_eq!(unknown, Err(Rejected::Unknown(7)));
    assert_eq!(fleet.report(MemberId(0)).unwrap().heartbeat.sequence, 1);
}

#[test]
fn resets_eject_within_one_burst_and_books_survive_reports() {
    let fleet = fleet(2);
    let mut scratch = Scratch::default();
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let mut choose =
        || fleet.choose(&Request::new("m"), &mut scratch, &mut rng, second(1)).unwrap();
    let choice = choose();
    let booking = choice.first.slot.book();
    pass(&fleet, 0, 3, &[0, 1]);
    let status = fleet.status(second(3));
    let member = &status.members[usize::from(choice.first.member.0)];
    assert_eq!((member.models[0].own_in_flight, member.models[0].own_sent), (1, 1));
    drop(booking);
    let events: Vec<_> =
        (0..5).filter_map(|_| fleet.outcome(&choice.first, Outcome::Failed, second(3))).collect();
    assert_eq!(events.len(), 1);
    assert!((0..50).all(|_| choose().first.member != choice.first.member));
}
