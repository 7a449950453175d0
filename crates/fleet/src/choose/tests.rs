use std::collections::BTreeMap;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use types::{ModelName, Ratio};

use super::*;
use crate::Label;
use crate::choice::Reason;
use crate::heartbeat::{Adapter, Heartbeat, ModelLoad};
use crate::member::{Labels, Member};
use crate::outcome::Outcome;
use crate::request::Aim;
use crate::settings::{Mode, Settings};
use crate::shaping::{Price, PriceSheet};
use crate::sketch::Sketch;
use crate::vitals::Condition;
use crate::weights::Weights;

const MODEL: &str = "llama";

/// A fleet of members that say what a test wants.
struct Scene {
    fleet: Fleet,
    sequence: u64,
    now: u64,
    rng: Pcg64Mcg,
    scratch: Scratch,
}

fn member(name: &str, region: &str) -> Member {
    let round_trip = if region == "here" { 1 } else { 80 };
    let round_trip = Some(Duration::from_millis(round_trip));
    Member { round_trip, ..Member::new(name, region) }
}

/// 100 endpoints with 16 places; each ends 2 requests a second and begins within 100 ms.
fn load(in_flight: u32) -> ModelLoad {
    ModelLoad {
        endpoints_ready: 100,
        in_flight_max: 1600,
        in_flight,
        waiting: in_flight.saturating_sub(1600),
        drain_per_second: 200.0,
        arrivals_per_second: in_flight as f32 / 8.0,
        finished_per_second: (in_flight as f32 / 8.0).min(200.0),
        prefill_tokens_per_second: 10_000.0,
        ttft_base: Duration::from_millis(100),
        ..ModelLoad::new(MODEL)
    }
}

impl Scene {
    fn new(members: Vec<Member>, loads: Vec<ModelLoad>) -> Self {
        Self::with(Settings::new("here"), members, loads)
    }

    fn with(settings: Settings, members: Vec<Member>, loads: Vec<ModelLoad>) -> Self {
        let now = 1000;
        let fleet = Fleet::new(settings, members, None, Timestamp::from_millis(now));
        let (rng, scratch) = (Pcg64Mcg::seed_from_u64(7), Scratch::default());
        let mut scene = Self { fleet, sequence: 0, now, rng, scratch };
        scene.tell(loads);
        scene
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now)
    }

    /// Each member says how it is.
    fn tell(&mut self, loads: Vec<ModelLoad>) {
        self.sequence += 1;
        for (at, load) in loads.into_iter().enumerate() {
            let heartbeat = Heartbeat {
                epoch: 1,
                sequence: self.sequence,
                uptime: Duration::from_millis(self.now),
                models: vec![load],
                ..Heartbeat::default()
            };
            self.fleet.heard(MemberId(at as u16), heartbeat, self.now()).unwrap();
        }
    }

    fn choose(&mut self, request: &Request<'_>) -> Result<Choice, Refusal> {
        let now = self.now();
        self.fleet.choose(request, &mut self.scratch, &mut self.rng, now)
    }

    /// How many of a thousand requests go where; each is gone before the next.
    fn shares(&mut self, request: &Request<'_>) -> BTreeMap<u16, u32> {
        let mut shares = BTreeMap::new();
        for _ in 0..1000 {
            let choice = self.choose(request).unwrap();
            *shares.entry(choice.first.member.0).or_default() += 1;
        }
        shares
    }
}

#[test]
fn a_name_that_nobody_serves_and_a_policy_that_nobody_meets_are_told_apart() {
    let mut scene = Scene::new(vec![member("a", "here")], vec![load(0)]);
    assert_eq!(scene.choose(&Request::new("gpt")).unwrap_err(), Refusal::UnknownModel);
    let labels = Labels::new([Label::new("eu")]);
    let request = Request { labels: &labels, ..Request::new(MODEL) };
    assert_eq!(scene.choose(&request).unwrap_err(), Refusal::Policy);
    let tried = [MemberId(0)];
    let request = Request { tried: &tried, ..Request::new(MODEL) };
    assert_eq!(scene.choose(&request).unwrap_err(), Refusal::Exhausted);
    assert_eq!(scene.choose(&Request::new(MODEL)).unwrap().reason, Reason::Only);
}

#[test]
fn residency_is_never_traded_for_speed() {
    let eu = Member { labels: Labels::new([Label::new("eu")]), ..member("eu", "far") };
    let mut scene = Scene::new(vec![member("us", "here"), eu], vec![load(0), load(3000)]);
    let labels = Labels::new([Label::new("eu")]);
    let request = Request { labels: &labels, ..Request::new(MODEL) };
    let choice = scene.choose(&request).unwrap();
    assert_eq!((choice.first.member, choice.second.is_none()), (MemberId(1), true));
}

#[test]
fn local_members_are_preferred_while_they_have_room() {
    let members = vec![member("near", "here"), member("far", "there")];
    let mut scene = Scene::new(members, vec![load(1000), load(0)]);
    assert_eq!(scene.shares(&Request::new(MODEL)), BTreeMap::from([(0, 1000)]));
    assert_eq!(scene.choose(&Request::new(MODEL)).unwrap().reason, Reason::Local);
    scene.tell(vec![load(1500), load(0)]);
    assert_eq!(scene.shares(&Request::new(MODEL)), BTreeMap::from([(1, 1000)]));
    assert_eq!(scene.choose(&Request::new(MODEL)).unwrap().reason, Reason::Spill);
}

#[test]
fn spilling_begins_in_proportion_not_at_once() {
    let round_trip = Some(Duration::from_millis(250));
    let far = Member { round_trip, ..member("far", "there") };
    let members = vec![member("near", "here"), far];
    // Between 0.70 and 0.85: one third of the way.
    let mut scene = Scene::new(members, vec![load(1200), load(0)]);
    let spilled = scene.shares(&Request::new(MODEL)).get(&1).copied().unwrap_or(0);
    assert!((250..420).contains(&spilled), "{spilled}");
}

#[test]
fn equal_members_get_shares_by_what_they_can_do() {
    let half =
        |in_flight| ModelLoad { in_flight_max: 800, drain_per_second: 100.0, ..load(in_flight) };
    let members = vec![member("a", "here"), member("b", "here")];
    // The same use of both.
    let mut scene = Scene::new(members, vec![load(400), half(200)]);
    let shares = scene.shares(&Request::new(MODEL));
    assert!((500..800).contains(&shares[&0]), "{shares:?}");
}

#[test]
fn a_report_of_idleness_does_not_attract_everything_until_the_next() {
    let members: Vec<_> = (0..4).map(|n| member(&format!("m{n}"), "here")).collect();
    let mut scene = Scene::new(members, vec![load(100), load(100), load(100), load(0)]);
    let mut bookings = Vec::new();
    let mut shares = [0; 4];
    for _ in 0..1000 {
        let choice = scene.choose(&Request::new(MODEL)).unwrap();
        bookings.push(choice.first.slot.book());
        shares[usize::from(choice.first.member.0)] += 1;
    }
    // 1,300 requests over four: 325 each, of which the idle one had none.
    assert!((280..380).contains(&shares[3]), "{shares:?}");
}

#[test]
fn a_member_that_always_says_it_is_idle_gets_no_more_than_twice_its_share() {
    let members: Vec<_> = (0..4).map(|n| member(&format!("m{n}"), "here")).collect();
    let mut scene = Scene::new(members, vec![load(0); 4]);
    let mut bookings = Vec::new();
    let mut own = [0_u32; 4];
    for n in 0..2000 {
        if n % 100 == 0 {
            scene.now += 2000;
            let honest = |at: usize| ModelLoad { arrivals_per_second: 12.0, ..load(own[at]) };
            scene.tell(vec![honest(0), honest(1), honest(2), load(0)]);
        }
        let choice = scene.choose(&Request::new(MODEL)).unwrap();
        bookings.push(choice.first.slot.book());
        own[usize::from(choice.first.member.0)] += 1;
    }
    assert!(own[3] < 1000, "{own:?}");
}

#[test]
fn what_is_cached_elsewhere_is_worth_the_way_if_it_is_long() {
    let blocks: Vec<u64> = (1..=64_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let holder = |in_flight| ModelLoad {
        prefixes: Sketch::new(blocks.iter().map(|hash| Sketch::fold(*hash))),
        ..load(in_flight)
    };
    let members = vec![member("near", "here"), member("far", "there")];
    let mut scene = Scene::new(members, vec![load(100), holder(100)]);
    let ask = |tokens| Request { prompt_tokens: tokens, blocks: &blocks, ..Request::new(MODEL) };
    assert_eq!(scene.choose(&ask(500)).unwrap().first.member, MemberId(0));
    assert_eq!(scene.choose(&ask(30_000)).unwrap().first.member, MemberId(1));
}

#[test]
fn sessions_stay_where_they_are_and_leave_a_member_that_has_more_than_its_share() {
    let members: Vec<_> = (0..4).map(|n| member(&format!("m{n}"), "here")).collect();
    let mut scene = Scene::new(members, vec![load(600); 4]);
    let session = |key| Request { affinity: Some(key), ..Request::new(MODEL) };
    let homes: Vec<_> =
        (0..200).map(|key| scene.choose(&session(key)).unwrap().first.member).collect();
    for (key, home) in homes.iter().enumerate() {
        let choice = scene.choose(&session(key as u64)).unwrap();
        assert_eq!((choice.first.member, choice.reason), (*home, Reason::Affinity));
    }
    for at in 0..4 {
        let count = homes.iter().filter(|home| home.0 == at).count();
        assert!((25..80).contains(&count), "{count} sessions on {at}");
    }
    // One has one and a half times its share.
    scene.tell(vec![load(900), load(600), load(600), load(600)]);
    let after: Vec<_> =
        (0..200).map(|key| scene.choose(&session(key)).unwrap().first.member).collect();
    for (before, after) in homes.iter().zip(&after) {
        assert!(after.0 != 0 && (before == after || before.0 == 0));
    }
}

#[test]
fn nothing_goes_to_a_member_whose_queue_is_long_while_others_have_room() {
    let members = vec![member("near", "here"), member("far", "there")];
    let mut scene = Scene::new(members, vec![load(1900), load(1580)]);
    assert_eq!(scene.choose(&Request::new(MODEL)).unwrap().first.member, MemberId(1));
    scene.tell(vec![load(5000), load(9000)]);
    let choice = scene.choose(&Request::new(MODEL)).unwrap();
    assert_eq!((choice.first.member, choice.reason), (MemberId(0), Reason::Overflow));
}

#[test]
fn a_member_that_refuses_is_left_alone_for_a_moment() {
    let members = vec![member("a", "here"), member("b", "here")];
    let mut scene = Scene::new(members, vec![load(100); 2]);
    let choice = scene.choose(&Request::new(MODEL)).unwrap();
    let retry_after = Some(Duration::from_secs(2));
    let now = scene.now();
    scene.fleet.outcome(&choice.first, Outcome::Refused { retry_after }, now);
    let other = 1 - choice.first.member.0;
    assert_eq!(scene.shares(&Request::new(MODEL)), BTreeMap::from([(other, 1000)]));
    scene.now += 2000;
    assert_eq!(scene.shares(&Request::new(MODEL)).len(), 2);
}

#[test]
fn a_member_that_fails_a_fifth_of_its_requests_gets_less_but_is_not_cut_off_for_ever() {
    let members = vec![member("grey", "here"), member("good", "here")];
    let mut scene = Scene::new(members, vec![load(100); 2]);
    let pick = (0..100).find_map(|_| {
        let choice = scene.choose(&Request::new(MODEL)).unwrap();
        (choice.first.member.0 == 0).then_some(choice.first)
    });
    let pick = pick.unwrap();
    for n in 0..200 {
        let outcome = if n % 5 == 0 { Outcome::Failed } else { Outcome::Answered { ttft: None } };
        let now = scene.now();
        scene.fleet.outcome(&pick, outcome, now);
    }
    let now = scene.now();
    scene.fleet.tick(now);
    let share = scene.shares(&Request::new(MODEL)).get(&0).copied().unwrap_or(0);
    assert!(share < 50, "{share}");
    // Half a minute later there is nothing to hold against it.
    scene.now += 30_000;
    scene.tell(vec![load(100); 2]);
    assert!(scene.shares(&Request::new(MODEL))[&0] > 150);
}

#[test]
fn a_member_that_is_slower_than_it_says_gets_less() {
    let members = vec![member("slow", "here"), member("good", "here")];
    let mut scene = Scene::new(members, vec![load(100); 2]);
    for _ in 0..400 {
        let now = scene.now();
        let choice = scene.choose(&Request::new(MODEL)).unwrap();
        let ttft = if choice.first.member.0 == 0 { 600 } else { 110 };
        let ttft = Some(Duration::from_millis(ttft));
        scene.fleet.outcome(&choice.first, Outcome::Answered { ttft }, now);
    }
    let share = scene.shares(&Request::new(MODEL)).get(&0).copied().unwrap_or(0);
    assert!(share < 100, "{share}");
}

fn priced(name: &str, region: &str, units: f64) -> Member {
    let money = Money::from_units(units).unwrap();
    let prices = Some(PriceSheet::flat(Price { input: money, output: money }));
    Member { prices, ..member(name, region) }
}

fn cheapest<'a>(target_ms: u64) -> Request<'a> {
    Request {
        aim: Aim::Cheapest,
        prompt_tokens: 1000,
        output_tokens: 200,
        ttft_target: Some(Duration::from_millis(target_ms)),
        ..Request::new(MODEL)
    }
}

#[test]
fn the_cheapest_member_gets_what_keeps_its_latency_target_and_nothing_else() {
    let members = vec![priced("near", "here", 3.0), priced("far", "there", 1.0)];
    let mut scene = Scene::new(members, vec![load(100); 2]);
    let choice = scene.choose(&cheapest(2000)).unwrap();
    assert_eq!((choice.first.member, choice.reason), (MemberId(1), Reason::Shaped));
    assert_eq!(choice.first.price, Money(1_200_000));
    assert_eq!(choice.price_soonest, Money(3_600_000));
    // 80 ms away and 200 ms inside: too late for 300 ms with some slack.
    assert_eq!(scene.choose(&cheapest(350)).unwrap().first.member, MemberId(0));
    // Nor is it filled beyond its room.
    scene.tell(vec![load(100), load(1500)]);
    assert_eq!(scene.choose(&cheapest(20_000)).unwrap().first.member, MemberId(0));
}

/// Each of many routers sees its own requests only until the next report.
#[test]
fn of_many_routers_only_so_many_send_to_the_cheapest_as_it_has_room_for() {
    let small = |in_flight: u32| ModelLoad {
        endpoints_ready: 4,
        in_flight_max: 40,
        in_flight,
        drain_per_second: 20.0,
        arrivals_per_second: 40.0,
        ..load(in_flight)
    };
    let members = vec![priced("near", "here", 3.0), priced("far", "there", 1.0)];
    let mut scene = Scene::new(members, vec![small(10); 2]);
    // Of 80 requests a second this router sends two.
    for _ in 0..20 {
        for _ in 0..4 {
            drop(scene.choose(&cheapest(5000)).unwrap().first.slot.book());
        }
        scene.now += 2000;
        scene.tell(vec![small(10); 2]);
    }
    // Room for some ten more, forty routers.
    let sent = scene.shares(&cheapest(5000)).get(&1).copied().unwrap_or(0);
    assert!((50..400).contains(&sent), "of 1000: {sent}");
}

#[test]
fn a_member_without_a_price_is_never_the_cheapest() {
    let members = vec![member("free?", "here"), priced("far", "there", 9.0)];
    let mut scene = Scene::new(members, vec![load(0); 2]);
    assert_eq!(scene.choose(&cheapest(5000)).unwrap().first.member, MemberId(1));
}

#[test]
fn the_cleanest_member_is_taken_inside_the_slack() {
    let clean = Member { carbon: Some(20.0), ..member("hydro", "there") };
    let members = vec![Member { carbon: Some(600.0), ..member("coal", "here") }, clean];
    let mut scene = Scene::new(members, vec![load(0); 2]);
    let request = Request { aim: Aim::Cleanest, ..Request::new(MODEL) };
    assert_eq!(scene.choose(&request).unwrap().first.member, MemberId(1));
}

#[test]
fn adapters_are_found_by_their_name_and_resident_ones_are_sooner() {
    let with = |is_resident| ModelLoad {
        adapters: vec![Adapter { name: ModelName::new("legal-de"), is_resident }],
        ..load(100)
    };
    let members = vec![member("a", "here"), member("b", "here"), member("c", "here")];
    let mut scene = Scene::new(members, vec![with(false), with(true), load(0)]);
    assert_eq!(scene.shares(&Request::new("legal-de")), BTreeMap::from([(1, 1000)]));
}

/// `a` came alone; the others have to ramp.
fn returned(members: u16) -> Scene {
    let settings = Settings { cold_start: Duration::ZERO, ..Settings::new("here") };
    let all = (0..members).map(|n| member(&format!("m{n}"), "here")).collect();
    let mut scene = Scene::with(settings, all, vec![load(0); usize::from(members)]);
    for _ in 0..2 {
        scene.now += 2000;
        scene.tell(vec![load(0); usize::from(members)]);
        let now = scene.now();
        for at in 1..members {
            scene.fleet.probed(MemberId(at), Some(Duration::from_millis(1)), now);
        }
    }
    scene
}

#[test]
fn a_returning_member_is_capped_in_flight_while_another_has_room() {
    let mut scene = returned(2);
    let mut bookings = Vec::new();
    let mut sent = [0; 2];
    for _ in 0..1500 {
        let choice = scene.choose(&Request::new(MODEL)).unwrap();
        sent[usize::from(choice.first.member.0)] += 1;
        bookings.push(choice.first.slot.book());
    }
    assert!(sent[1] <= 160, "a tenth of 1,600: {sent:?}");
}

#[test]
fn where_all_are_in_their_ramps_requests_are_shared_in_relation_and_none_is_refused() {
    let mut scene = returned(3);
    // The one that is whole goes; the two others have ramped for 0 s and 12 s.
    let now = scene.now();
    scene.fleet.drain(MemberId(0), true, now);
    scene.fleet.drain(MemberId(2), true, now);
    scene.fleet.drain(MemberId(2), false, now);
    for _ in 0..6 {
        scene.now += 2000;
        scene.tell(vec![load(0); 3]);
    }
    let now = scene.now();
    scene.fleet.probed(MemberId(2), Some(Duration::from_millis(1)), now);
    let ramps: Vec<f32> = scene.fleet.status(now).members.iter().map(|of| of.ramp).collect();
    assert!((0.29..0.31).contains(&ramps[1]) && (0.09..0.11).contains(&ramps[2]), "{ramps:?}");
    let mut bookings = Vec::new();
    let mut sent = [0_u32; 3];
    for _ in 0..2400 {
        let choice = scene.choose(&Request::new(MODEL)).unwrap();
        sent[usize::from(choice.first.member.0)] += 1;
        bookings.push(choice.first.slot.book());
    }
    assert_eq!(sent[0], 0);
    let part = f64::from(sent[2]) / f64::from(sent[1]);
    assert!((0.2..0.45).contains(&part), "a third: {sent:?}");
}

#[test]
fn what_whole_members_have_no_room_for_goes_to_those_in_their_ramps_in_relation() {
    let mut scene = returned(3);
    // `m0` is full, the others have what a tenth allows.
    scene.now += 1;
    scene.tell(vec![load(1600 + 300), load(200), load(200)]);
    let choice = scene.choose(&Request::new(MODEL)).unwrap();
    assert_eq!(choice.reason, Reason::Overflow);
    let mut bookings = Vec::new();
    let mut sent = [0_u32; 3];
    for _ in 0..400 {
        let choice = scene.choose(&Request::new(MODEL)).unwrap();
        sent[usize::from(choice.first.member.0)] += 1;
        bookings.push(choice.first.slot.book());
    }
    // Each is used alike in relation to what it may take: 1,600, 160 and 160.
    assert!(sent[0] > 200 && sent[1] > 0 && sent[2] > 0, "{sent:?}");
}

/// All members ejected by requests that failed, while their heartbeats come.
fn ejected(members: u16) -> Scene {
    let all = (0..members).map(|n| member(&format!("m{n}"), "here")).collect();
    let scene = Scene::new(all, vec![load(0); usize::from(members)]);
    let now = scene.now();
    for id in (0..members).map(MemberId) {
        for _ in 0..3 {
            scene.fleet.probed(id, None, now);
        }
        assert_eq!(scene.fleet.condition(id), Condition::Ejected);
    }
    scene
}

#[test]
fn members_that_are_all_ejected_are_still_asked_while_they_report() {
    let mut scene = ejected(2);
    let choice = scene.choose(&Request::new(MODEL)).unwrap();
    assert_eq!(choice.reason, Reason::Overflow);
    assert!(choice.second.is_some());
    // Silent and without an answer there is nothing to hope for.
    scene.now += 6100;
    let now = scene.now();
    scene.fleet.tick(now);
    assert_eq!(scene.choose(&Request::new(MODEL)).unwrap_err(), Refusal::Unreachable);
}

#[test]
fn a_member_that_comes_back_gets_nothing_while_another_takes_requests() {
    let mut scene = ejected(2);
    scene.now += 10_000;
    scene.tell(vec![load(0); 2]);
    let conditions = [0, 1].map(|at| scene.fleet.condition(MemberId(at)));
    assert_eq!(conditions, [Condition::Fresh, Condition::Returning]);
    assert_eq!(scene.shares(&Request::new(MODEL)), BTreeMap::from([(0, 1000)]));
    // If the one fails, the other is there.
    assert_eq!(scene.choose(&Request::new(MODEL)).unwrap().second.unwrap().member, MemberId(1));
}

#[test]
fn a_member_without_a_ready_endpoint_is_asked_only_where_there_is_no_other() {
    let empty = || ModelLoad { endpoints_ready: 0, ..load(0) };
    let members = vec![member("empty", "here"), member("far", "there")];
    let mut scene = Scene::new(members, vec![empty(), load(0)]);
    assert_eq!(scene.shares(&Request::new(MODEL)), BTreeMap::from([(1, 1000)]));
    // It may make one for who asks.
    scene.tell(vec![empty(), empty()]);
    assert_eq!(scene.choose(&Request::new(MODEL)).unwrap().reason, Reason::Overflow);
}

#[test]
fn weights_rate_the_four_signals_and_ignore_those_of_weight_zero() {
    let weights = |all: [f64; 4]| {
        let [kv, queue, way, errors] = all.map(|weight| Ratio::new(weight).unwrap());
        Settings {
            mode: Mode::Weights(Weights::new(kv, queue, way, errors).unwrap()),
            ..Settings::new("here")
        }
    };
    let used = |share| ModelLoad { kv_used: Ratio::new(share).unwrap(), ..load(100) };
    let members = || vec![member("near", "here"), member("far", "there")];
    let mut kv = Scene::with(weights([1.0, 0.0, 0.0, 0.0]), members(), vec![used(0.9), used(0.1)]);
    let choice = kv.choose(&Request::new(MODEL)).unwrap();
    assert_eq!((choice.first.member, choice.reason), (MemberId(1), Reason::Weights));
    let mut way = Scene::with(weights([0.0, 0.0, 1.0, 0.0]), members(), vec![used(0.9), used(0.1)]);
    assert_eq!(way.choose(&Request::new(MODEL)).unwrap().first.member, MemberId(0));
    let loads = || vec![load(2000), load(1600)];
    let mut queue = Scene::with(weights([0.0, 1.0, 0.0, 0.0]), members(), loads());
    assert_eq!(queue.choose(&Request::new(MODEL)).unwrap().first.member, MemberId(1));
}

#[test]
fn the_second_member_is_another_one_with_room() {
    let members = vec![member("a", "here"), member("full", "here"), member("far", "there")];
    let mut scene = Scene::new(members, vec![load(0), load(5000), load(0)]);
    let choice = scene.choose(&Request::new(MODEL)).unwrap();
    assert_eq!(choice.first.member, MemberId(0));
    assert_eq!(choice.second.unwrap().member, MemberId(2));
}
