//! Which test proves which scenario: what users of other gateways complain about, and what the field and AWS
//! promise, as far as flow control, rewrites, identity and limits are concerned.
//!
//! Letters and numbers are those of the design notes. A name that is no test any more fails here.
//!
//! | scenario | what | tests |
//! | --- | --- | --- |
//! | FC-1 | sheddable work is shed at once, or queued if the document says so | `sheddable_requests_are_refused_at_once_while_others_wait`, `sheddable_work_is_refused_at_once_when_the_pool_is_saturated_or_others_wait`, `a_critical_request_calls_back_one_that_has_not_answered` |
//! | FC-2 | a low band does not starve under constant load above | `a_reserved_share_is_kept_under_endless_work_above` |
//! | FC-3 | fairness by tokens, whoever is noisy | `flows_get_equal_tokens_but_for_one_request`, `one_flow_cannot_keep_the_others_out_of_a_full_band`, `a_tenant_beyond_its_part_leaves_room_for_whoever_comes` |
//! | FC-3 | … and what it does to the others' P99 | `fifty_times_its_share_moves_the_others_little_with_headroom_and_many_times_without` |
//! | FC-5 | a TTL ends to the millisecond and before dispatch | `a_wait_ends_with_its_ttl_and_says_so`, `a_ttl_ends_to_the_millisecond_and_before_dispatch` |
//! | FC-6 | a client that leaves while queued is never sent | `a_client_that_leaves_the_queue_is_never_sent`, `a_proxy_that_resets_the_stream_gives_the_place_in_the_queue_up` |
//! | FC-7 | bodies in the queue are bounded in bytes | `a_band_holds_no_more_bytes_than_it_may` |
//! | FC-9 | room at one endpoint lets one go, not a burst | `one_that_ends_lets_one_go_and_no_more`, `requests_of_many_threads_never_exceed_what_an_endpoint_may_have` |
//! | FC-11 | who is called back gets a clean error, once | `a_critical_request_calls_back_one_that_has_not_answered`, `a_request_that_is_called_back_is_429_while_nothing_was_answered`, `once_the_answer_has_begun_nothing_calls_a_request_back` |
//! | FC-12 | saturated, no endpoint and wrong request are told apart | `sheddable_requests_are_refused_at_once_while_others_wait`, `a_pool_without_endpoints_is_503_with_retry_after`, `a_body_that_is_no_request_is_400` |
//! | FC-13 | an objective goes while its request waits; one that is unknown is told | `an_objective_that_goes_while_its_request_waits_harms_nobody`, `an_objective_that_is_not_there_is_told_in_the_answer_and_counted` |
//! | RW-1 | a split is exact, and sticky if asked | `ten_thousand_requests_at_ninety_to_ten_are_within_one_percent`, `ninety_to_ten_is_ninety_to_ten_and_every_answer_has_the_clients_name`, `a_session_stays_with_its_target` |
//! | RW-2 | precedence is deterministic | `exact_goes_before_all_then_the_document_then_the_list` |
//! | RW-3 | mixed weights are refused with their place | `targets_without_weights_share_alike_and_some_without_are_refused` |
//! | RW-4 | both groups of the resource are read, and a conflict is told | `objectives_of_both_groups_hold_and_are_told_so` |
//! | RW-5 | an unknown model is 404 | `a_model_goes_to_its_own_pool_and_an_unknown_one_to_none`, `an_unknown_model_is_404_in_the_apis_own_form` |
//! | RW-6 | lists of models are merged, and filtered for their caller | `the_list_of_models_is_merged_over_pools`, `a_caller_sees_and_uses_its_models_only` |
//! | SEC-1 | fields that steer are stripped | `fields_that_steer_routing_or_claim_identity_never_reach_an_endpoint`, `every_field_that_steers_is_removed_in_any_case`, `a_client_can_lower_its_priority_and_never_raise_it` |
//! | SEC-2 | the proxy verifies the picker, whose certificate changes while it runs | `a_client_that_verifies_is_served_and_one_without_tls_is_not`, `a_changed_certificate_is_shown_to_the_next_connection` |
//! | SEC-3 | a destination is an endpoint of the pool | `a_subset_without_an_eligible_endpoint_is_503`, `a_client_cannot_choose_a_model_by_a_field` |
//! | SEC-4 | prompts and answers are never logged | `no_prompt_and_no_answer_is_written_anywhere` |
//! | SEC-5 | tokens are limited by key | `usage_settles_what_was_reserved`, `keys_within_their_limits_are_held_by_that_of_their_tenant` |
//! | SEC-6 | the page of metrics can ask for a token | `administration_asks_for_its_token_but_probes_need_none` |
//! | AWS §5 | 401 and 403, each for its faults | `each_fault_has_the_status_that_aws_gives_it`, `tokens_are_judged_as_aws_judges_them` |
//! | AWS §5 | not ready until keys could be fetched; probes stay open | `it_is_not_ready_until_signing_keys_were_fetched`, `without_a_key_nothing_is_served_but_health` |
//! | AWS §5 | an outage of the issuer for a stated time | `keys_stay_valid_through_an_outage_for_the_stated_time_and_no_longer` |
//! | AWS §5 | `none` and key confusion are refused | `a_token_without_a_signature_is_refused`, `a_public_key_is_never_taken_for_a_shared_secret` |
//! | A.4 | fields of one connection end with it | `fields_of_the_connection_end_with_it`, `the_rules_about_fields_hold_on_http2` |
//! | A.4 | one host, one framing, each policy field once | `a_head_that_could_be_read_in_two_ways_is_refused_and_its_connection_ends`, `a_field_that_comes_twice_is_refused` |
//! | A.4 | paths by an exact list, methods too | `a_path_that_is_not_on_the_list_is_a_404_and_reaches_nobody`, `a_method_that_a_path_does_not_have_is_a_405_that_names_the_right_ones` |
//! | A.4 | an early answer leaves no unread body behind | `a_body_that_nobody_waited_for_is_never_read_as_a_request`, `a_stranger_is_answered_before_the_body` |
//! | A.4 | `Expect` after the checks of the head | `a_client_that_expects_continue_is_told_so_only_if_its_head_was_let_in`, `a_body_is_not_asked_for_where_the_head_is_refused` |
//! | A.4 | framing of endpoints is not trusted; interim answers | `an_answer_that_could_be_read_in_two_ways_is_a_502`, `bytes_behind_an_answer_do_not_reach_the_client`, `interim_answers_are_passed_over_up_to_a_number` |
//! | A.4 | HTTP/1.0 | `http_1_0_gets_no_chunks_and_a_closed_connection` |
//! | A.4 | `Retry-After` on 429 and 503 always | `a_refusal_of_the_endpoint_gets_a_retry_after_if_it_has_none`, `connect_failures_walk_the_list_and_end_in_503_with_retry_after` |
//! | E.5 | reserve, settle, debt, exactly once | `what_was_used_beyond_the_reservation_is_a_debt_and_nothing_passes_until_it_is_repaid`, `the_sum_of_reservations_returns_to_zero_and_a_second_settlement_changes_nothing`, `a_client_that_leaves_early_pays_for_the_events_it_got` |
//! | E.5 | 0.97 to 1.08 of a limit in any minute | `under_three_times_the_load_a_minute_holds_the_limit_and_hardly_less`, `no_window_holds_more_requests_than_its_rate_and_one_burst` |
//! | E.5 | all rules must pass; shadow; contradictions | `the_rule_with_the_longest_wait_is_named_and_none_is_charged`, `a_shadow_rule_only_counts`, `a_limit_of_a_key_above_its_tenants_is_told`, `a_limit_for_a_tenant_that_no_caller_is_never_applies` |
//! | E.5 | leases, and what is remembered | `a_bucket_spends_its_part_while_it_lasts_and_another_afterwards`, `buckets_at_rest_are_forgotten_and_those_in_use_are_not`, `a_days_use_outlives_the_bucket_that_it_was_counted_in` |
//! | C 32, 33, 41 | errors about the request eject nobody, and keep their body | `an_error_about_the_request_itself_is_passed_on_unchanged_and_ejects_nobody`, `client_errors_and_429_never_eject` |
//! | C 34, 37 | a failure is remembered, and others are tried at once | `an_endpoint_that_refuses_is_replaced_at_once_ejected_and_taken_back` |
//! | C 35 | retries are a share of the traffic | `retries_stop_when_their_budget_is_spent` |
//! | C 36, 45 | no retry after the first content | `a_stream_that_its_endpoint_cuts_ends_with_an_error_event_and_no_done`, `an_endpoint_that_dies_before_its_head_is_replaced_once` |
//! | C 38 | none there, none usable, none reachable are told apart | `a_pool_that_refuses_connections_answers_503_in_openai_form`, `a_pool_without_endpoints_is_503_with_retry_after` |
//! | C 39 | one that recovers is not flooded | `a_failing_endpoint_comes_back_by_one_trial_and_is_not_flooded` |
//! | C 43 | silence before the first byte ends, and is cancelled | `an_endpoint_that_stays_silent_costs_a_504_and_one_attempt`, `an_attempt_that_timed_out_is_cancelled_at_the_endpoint` |
//! | G 105, 110 | several models behind one gateway; one place decides | `a_model_goes_to_its_own_pool_and_an_unknown_one_to_none`, `the_model_and_its_base_are_named_and_the_route_is_decided_anew` |
//! | G 106 | what a proxy says breaks no picker | `messages_out_of_order_end_the_stream`, `no_sequence_of_messages_leaks_credit` |
//! | G 108 | large bodies pass in pieces | `a_body_comes_back_byte_for_byte_in_pieces_that_envoy_takes` |
//! | G 111 | errors of endpoints pass as they are | `an_error_about_the_request_itself_is_passed_on_unchanged_and_ejects_nobody` |
//! | I 124, 125, 128 | keys: which reach engines, which do not | `credentials_reach_no_engine_unless_the_document_says_so`, `credentials_end_here_and_go_on_only_where_the_document_says_so` |
//! | I 126 | fields of answers | `fields_of_an_answer_that_are_not_the_clients_do_not_reach_it`, `what_an_endpoint_says_in_our_name_reaches_nobody` |
//! | I 127 | no key in any log | `no_secret_is_written_anywhere` |
//! | I 130 | a burst is held by what it reserves | `a_burst_is_refused_by_what_it_reserves_before_anyone_has_answered` |
//! | I 132 | an organisation's cap above its keys' | `keys_within_their_limits_are_held_by_that_of_their_tenant` |
//! | I 133 | shed and expired are told apart | `sheddable_requests_are_refused_at_once_while_others_wait`, `a_wait_ends_with_its_ttl_and_says_so` |
//! | I 134 | how many wait before it is told with the refusal | `a_full_band_refuses_the_next` |
//!
//! Not here: FC-10 (pools with separate prefill are not there yet), G 96 to 104 (a cluster's
//! resources), G 107 (`bench/run --figure epp-streams`), C 40 and 42 (no request is sent to another model when one fails), I 129 (the global tier's
//! own tests), I 131 (nothing caches answers).

use std::path::Path;

/// All source of the workspace's crates.
fn sources(folder: &Path, all: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            all.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_scenario_names_tests_that_are_there() {
    let mut all = String::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut all);
    let rows: Vec<_> = include_str!("scenarios.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("//! | "))
        .collect();
    assert!(rows.len() > 50, "{}", rows.len());
    for row in &rows[2..] {
        let tests = row.rsplit(" | ").next().unwrap();
        let names: Vec<_> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test: {row}");
        for name in names {
            assert!(all.contains(&format!("fn {name}(")), "`{name}` is no test any more: {row}");
        }
    }
}
