use super::*;

fn world() -> World {
    World::new(12, 6, 60)
}

fn played(scenario: &str, policy: Policy) -> Outcome {
    let scenario = Scenario::find(scenario).unwrap();
    play(&world(), scenario, policy, &Settings { seed: 1, scale: 60.0, load: None })
}

/// Plays a scenario, prints what it measured, and holds all invariants against it.
fn holds(scenario: &str) -> Outcome {
    let outcome = played(scenario, Policy::Wicketgate);
    println!("{scenario}: {outcome:?}");
    for verdict in judge(Scenario::find(scenario).unwrap(), &outcome) {
        assert!(verdict.holds, "{scenario}: {verdict:?}");
    }
    outcome
}

#[test]
fn a_lost_region_is_left_within_twelve_seconds_and_its_return_swings_nothing() {
    let outcome = holds("region-lost");
    assert!(outcome.to_dead_seconds > 0.0, "nobody noticed anything: was it lost?");
}

#[test]
fn half_of_the_clusters_going_and_coming_back_cold_at_once_is_survived() {
    holds("thundering-return");
}

#[test]
fn a_cluster_that_flaps_costs_what_it_was_answering_and_no_more() {
    let outcome = holds("flapping");
    assert!(outcome.cut > 0);
}

#[test]
fn lost_and_late_heartbeats_and_an_isolated_router_cost_next_to_nothing() {
    for scenario in ["heartbeat-loss", "heartbeat-delay", "router-isolated"] {
        assert!(holds(scenario).failed_during < 0.001, "{scenario}");
    }
}

#[test]
fn clocks_that_differ_change_nothing_at_all() {
    let steady = holds("steady");
    assert_eq!(holds("clock-skew"), steady);
}

#[test]
fn clusters_that_lie_fail_or_are_slow_lose_their_requests_to_others() {
    for scenario in ["liar", "poison", "degraded"] {
        holds(scenario);
    }
}

#[test]
fn routers_that_restart_one_after_the_other_lose_next_to_nothing() {
    holds("rolling-upgrade");
}

#[test]
fn clusters_that_all_restart_within_a_minute_refuse_nothing_for_their_ramps() {
    let outcome = holds("rolling-restart");
    assert!(outcome.failed_during < 0.005, "{outcome:?}");
}

#[test]
fn crowds_and_clients_that_repeat_leave_no_lasting_damage() {
    for scenario in ["flash-crowd", "retry-storm"] {
        let outcome = holds(scenario);
        assert!(outcome.failed_during > 0.01, "it was no overload: {outcome:?}");
    }
}

#[test]
fn a_limit_holds_while_the_authority_and_a_region_are_lost() {
    let outcome = holds("store-and-region");
    assert!(outcome.limit_most > 0.5, "the limit was not reached");
}

#[test]
fn cheaper_members_are_used_and_the_latency_target_is_kept() {
    let outcome = holds("price-swing");
    assert!(outcome.price < 0.95 && outcome.goodput > 0.97, "{outcome:?}");
}

#[test]
fn equal_arguments_give_equal_outcomes() {
    assert_eq!(played("poison", Policy::RoundRobin), played("poison", Policy::RoundRobin));
}

#[test]
fn a_distant_member_costs_what_its_distance_costs() {
    let (near, far) = (played("steady", Policy::Wicketgate), played("steady", Policy::RoundRobin));
    assert!(near.ttft_p50_ms + 40.0 < far.ttft_p50_ms, "{near:?} {far:?}");
}
