use proptest::prelude::*;

use super::*;

const USUAL: Surroundings = Surroundings { is_cold: false, is_alone: false, is_frozen: false };

/// A member with its clock: milliseconds.
struct Patient {
    vitals: Vitals,
    settings: Settings,
    now: u64,
    epoch: u64,
    sequence: u64,
    around: Surroundings,
}

impl Patient {
    fn new() -> Self {
        let (vitals, settings) = (Vitals::new(), Settings::new("here"));
        Self { vitals, settings, now: 1_000_000, epoch: 1, sequence: 0, around: USUAL }
    }

    /// Heard of in the first seconds of the router.
    fn fresh() -> Self {
        let mut patient = Self::new();
        patient.around.is_cold = true;
        patient.beat();
        patient.around = USUAL;
        assert_eq!(patient.condition(), Condition::Fresh);
        patient
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now)
    }

    fn beat(&mut self) {
        self.sequence += 1;
        self.send(self.epoch, self.sequence, self.now).unwrap();
    }

    fn send(&mut self, epoch: u64, sequence: u64, uptime: u64) -> Result<Option<Cause>, Rejected> {
        let uptime = Duration::from_millis(uptime);
        let heartbeat = Heartbeat { epoch, sequence, uptime, ..Heartbeat::default() };
        self.vitals.heard(&heartbeat, self.around, &self.settings, self.now())
    }

    /// Time passes without heartbeats.
    fn silence(&mut self, ms: u64) {
        for _ in 0..ms / 100 {
            self.now += 100;
            self.vitals.tick(self.around, &self.settings, self.now());
        }
    }

    fn beats(&mut self, count: usize) {
        for _ in 0..count {
            self.silence(2000);
            self.beat();
        }
    }

    fn fail(&mut self, is_unreachable: bool) {
        self.vitals.failed_once(is_unreachable, &self.settings, self.now());
    }

    fn answer(&mut self) {
        self.vitals.answered(self.now());
    }

    fn probe(&mut self) {
        self.vitals.probed(self.around, &self.settings, self.now());
    }

    fn condition(&self) -> Condition {
        self.vitals.condition
    }

    fn ramp(&self) -> f32 {
        self.vitals.ramp.as_ref().map_or(1.0, |ramp| ramp.share(self.now()))
    }
}

#[test]
fn a_silent_member_is_suspect_after_six_seconds_and_dead_after_ten() {
    let mut member = Patient::fresh();
    member.silence(6000);
    assert_eq!(member.condition(), Condition::Fresh);
    member.silence(100);
    assert_eq!(member.condition(), Condition::Suspect);
    member.silence(3900);
    assert_eq!(member.condition(), Condition::Suspect);
    member.silence(100);
    assert_eq!(member.condition(), Condition::Dead);
}

#[test]
fn a_silent_member_that_answers_stays_suspect_and_dies_five_seconds_after_its_last_answer() {
    let mut member = Patient::fresh();
    for _ in 0..30 {
        member.silence(1000);
        member.answer();
    }
    assert_eq!(member.condition(), Condition::Suspect);
    member.silence(5000);
    assert_eq!(member.condition(), Condition::Suspect);
    member.silence(100);
    assert_eq!(member.condition(), Condition::Dead);
}

#[test]
fn failures_eject_at_once_whatever_heartbeats_say() {
    for (is_unreachable, most) in [(true, 3), (false, 5)] {
        let mut member = Patient::fresh();
        for _ in 1..most {
            member.fail(is_unreachable);
            assert_eq!(member.condition(), Condition::Fresh);
        }
        member.fail(is_unreachable);
        member.beat();
        assert_eq!(member.condition(), Condition::Ejected);
    }
}

#[test]
fn an_answer_between_failures_keeps_a_member() {
    let mut member = Patient::fresh();
    for _ in 0..20 {
        member.fail(false);
        member.fail(false);
        member.answer();
    }
    assert_eq!(member.condition(), Condition::Fresh);
    assert!(member.vitals.failed(member.now()) > 0.4);
}

#[test]
fn a_dead_member_comes_back_after_three_heartbeats_and_a_probe_with_a_ramp() {
    let mut member = Patient::fresh();
    member.silence(20_000);
    member.beat();
    assert_eq!(member.condition(), Condition::Returning);
    member.beats(5);
    assert_eq!(member.condition(), Condition::Returning, "no probe was answered");
    member.probe();
    assert_eq!(member.condition(), Condition::Fresh);
    assert_eq!(member.ramp(), 0.1);
    member.beats(30);
    assert_eq!((member.condition(), member.ramp()), (Condition::Fresh, 1.0));
}

#[test]
fn a_probe_that_fails_begins_a_return_anew() {
    let mut member = Patient::fresh();
    member.silence(20_000);
    member.beat();
    member.probe();
    member.fail(true);
    member.beats(4);
    assert_eq!(member.condition(), Condition::Returning);
    member.probe();
    assert_eq!(member.condition(), Condition::Fresh);
}

#[test]
fn an_ejection_is_longer_each_time_and_never_longer_than_its_bound() {
    let mut member = Patient::fresh();
    let mut ejections = Vec::new();
    for _ in 0..40 {
        (0..3).for_each(|_| member.fail(true));
        let from = member.now;
        while member.condition() == Condition::Ejected {
            member.beats(1);
        }
        ejections.push((member.now - from) / 1000);
        member.probe();
        while member.condition() != Condition::Fresh {
            member.beats(1);
        }
    }
    assert_eq!(ejections[..4], [10, 20, 30, 40]);
    assert_eq!(ejections.iter().max(), Some(&300));
}

#[test]
fn ejections_are_forgotten_after_five_good_minutes() {
    let mut member = Patient::fresh();
    for good_beats in [10, 170] {
        (0..3).for_each(|_| member.fail(true));
        member.beats(20);
        member.probe();
        member.beats(good_beats);
    }
    (0..3).for_each(|_| member.fail(true));
    member.beats(5);
    assert_eq!(member.condition(), Condition::Returning, "ten seconds again");
}

#[test]
fn a_frozen_table_does_not_kill_by_silence_but_by_failures() {
    let mut member = Patient::fresh();
    member.around.is_frozen = true;
    member.silence(60_000);
    assert_eq!(member.condition(), Condition::Fresh);
    assert!(member.vitals.wants_probe(&member.settings, member.now()));
    (0..3).for_each(|_| member.fail(true));
    assert_eq!(member.condition(), Condition::Ejected);
}

#[test]
fn the_only_member_needs_neither_probe_nor_ramp() {
    let mut member = Patient::fresh();
    member.silence(20_000);
    member.around.is_alone = true;
    member.beat();
    assert_eq!((member.condition(), member.ramp()), (Condition::Fresh, 1.0));
}

#[test]
fn who_joins_a_running_fleet_ramps_and_who_is_there_at_its_start_does_not() {
    assert_eq!(Patient::fresh().ramp(), 1.0);
    let mut member = Patient::new();
    member.beat();
    assert_eq!(member.condition(), Condition::Returning);
    member.probe();
    member.beats(2);
    assert_eq!((member.condition(), member.ramp()), (Condition::Fresh, 0.1));
}

#[test]
fn a_drained_member_takes_nothing_until_the_command_is_taken_back() {
    let mut member = Patient::fresh();
    assert_eq!(member.vitals.drain(true), Some(Cause::Drain));
    member.beats(3);
    assert_eq!(member.condition(), Condition::Draining);
    member.vitals.drain(false);
    member.beats(3);
    member.probe();
    assert_eq!(member.condition(), Condition::Fresh);
}

#[test]
fn old_heartbeats_and_those_of_a_former_life_are_refused() {
    let mut member = Patient::fresh();
    member.beats(3);
    let now = member.now;
    assert_eq!(member.send(1, 4, now), Err(Rejected::Old { got: 4, last: 4 }));
    assert!(member.send(2, 1, 0).is_ok(), "another life begins anew");
    assert_eq!(member.send(1, 99, now), Err(Rejected::FormerLife(1)));
    assert!(member.send(2, 2, 2000).is_ok());
}

#[test]
fn heartbeats_that_come_twenty_seconds_late_are_no_sign_of_life() {
    let mut member = Patient::fresh();
    member.beats(5);
    // From here on each one is twenty seconds on its way.
    for sequence in 7..40 {
        member.silence(2000);
        let sent = member.now - 20_000;
        member.send(1, sequence, sent).unwrap();
    }
    assert_eq!(member.condition(), Condition::Dead);
    assert!((19..=20).contains(&member.vitals.lag.as_secs()));
}

#[test]
fn clocks_that_differ_by_minutes_are_no_lateness() {
    let mut member = Patient::fresh();
    for sequence in 2..10 {
        member.silence(2000);
        let sent = member.now - 300_000;
        member.send(9, sequence, sent).unwrap();
        assert!(member.vitals.lag < Duration::from_millis(1));
    }
    assert_eq!(member.condition(), Condition::Fresh);
}

#[derive(Clone, Debug)]
enum Deed {
    Beat,
    OldBeat,
    Restart,
    Pass(u64),
    Answer,
    Fail(bool),
    Probe,
    Drain(bool),
    Freeze(bool),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        4 => Just(Deed::Beat),
        1 => Just(Deed::OldBeat),
        1 => Just(Deed::Restart),
        4 => (100..15_000_u64).prop_map(Deed::Pass),
        2 => Just(Deed::Answer),
        3 => any::<bool>().prop_map(Deed::Fail),
        2 => Just(Deed::Probe),
        1 => any::<bool>().prop_map(Deed::Drain),
        1 => any::<bool>().prop_map(Deed::Freeze),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_no_member_is_used_that_was_silent_or_failing(
        deeds in prop::collection::vec(deed(), 1..120),
    ) {
        let mut member = Patient::fresh();
        // Told apart from the code: last sign of life, answers, failures in a row.
        let (mut heard, mut answered, mut in_a_row) = (member.now, 0, 0);
        let mut was_used = true;
        for deed in deeds {
            let before = member.condition();
            match deed {
                Deed::Beat => {
                    member.beat();
                    heard = member.now;
                }
                Deed::OldBeat => {
                    let sequence = member.sequence;
                    let (epoch, now) = (member.epoch, member.now);
                    prop_assert!(member.send(epoch, sequence, now).is_err());
                    prop_assert_eq!(member.condition(), before);
                }
                Deed::Restart => {
                    (member.epoch, member.sequence) = (member.epoch + 1, 0);
                    member.beat();
                    heard = member.now;
                }
                Deed::Pass(ms) => member.silence(ms),
                Deed::Answer => {
                    member.answer();
                    (answered, in_a_row) = (member.now, 0);
                }
                Deed::Fail(is_unreachable) => {
                    member.fail(is_unreachable);
                    in_a_row += 1;
                }
                Deed::Probe => {
                    member.probe();
                    answered = member.now;
                }
                Deed::Drain(is_drained) => {
                    member.vitals.drain(is_drained);
                }
                Deed::Freeze(is_frozen) => member.around.is_frozen = is_frozen,
            }
            // Twice: after a thaw a long silence goes by way of suspect.
            for _ in 0..2 {
                member.vitals.tick(member.around, &member.settings, member.now());
            }
            let is_used = member.condition().takes_requests();
            let age = member.now - heard;
            if is_used {
                prop_assert!(
                    age <= 10_000 || member.now - answered <= 5000 || member.around.is_frozen,
                    "silent for {age} ms and {:?}", member.condition()
                );
                prop_assert!(!member.vitals.is_drained || !was_used, "drained");
            }
            // Five failures without an answer in between: whoever is used came back since.
            if is_used && !was_used {
                in_a_row = 0;
                prop_assert!(member.ramp() < 1.0, "came back without a ramp");
            }
            prop_assert!(!is_used || in_a_row < 5, "{in_a_row} failures in a row");
            prop_assert!((0.025..=1.0).contains(&member.ramp()));
            was_used = is_used;
        }
    }
}
