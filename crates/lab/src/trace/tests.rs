//! The traces are those that were published, and are replayed as they should be.

use std::collections::HashSet;

use super::{Row, Trace, TraceName};
use crate::workload::{Request, uncached_tokens};

fn mean(trace: &Trace, of: fn(&Row) -> u32) -> f64 {
    trace.rows.iter().map(|row| f64::from(of(row))).sum::<f64>() / trace.rows.len() as f64
}

#[test]
fn the_traces_have_the_published_figures() {
    let (mooncake, azure) = (TraceName::MooncakeConversation.trace(), TraceName::AzureCode.trace());
    assert_eq!((mooncake.rows.len(), azure.rows.len()), (1750, 8819));
    assert_eq!(mean(mooncake, |row| row.prompt_tokens).round(), 13_992.0);
    assert_eq!(mean(mooncake, |row| row.answer_tokens).round(), 354.0);
    assert_eq!(mean(azure, |row| row.prompt_tokens).round(), 2048.0);
    assert_eq!(mean(azure, |row| row.answer_tokens).round(), 28.0);
    assert_eq!(azure.rows.last().unwrap().at.as_secs(), 3435);
}

#[test]
fn a_cache_without_bounds_finds_28_4_per_cent_of_the_blocks_of_the_first_ten_minutes() {
    let mut seen = HashSet::new();
    let (mut all, mut found) = (0, 0);
    for row in &TraceName::MooncakeConversation.trace().rows {
        all += row.ids.len();
        found += row.ids.iter().take_while(|id| seen.contains(*id)).count();
        seen.extend(row.ids.iter().copied());
    }
    let share = f64::from(found as u32) / all as f64;
    assert!((share - 0.284).abs() < 0.0005, "{share}");
}

#[test]
fn replayed_prompts_share_what_the_recorded_ones_did() {
    let trace = TraceName::MooncakeConversation.trace();
    let mut requests: Vec<Request> = Vec::new();
    trace.copy(1, 1.0, trace.span * 2, &mut requests);
    // The lap of the middle, which is whole.
    requests.sort_by_key(|request| request.at);
    let tokens: u64 = requests.iter().map(|request| u64::from(request.prompt_tokens())).sum();
    let uncached: u64 = uncached_tokens(&requests, 16).iter().map(|left| u64::from(*left)).sum();
    let hit = 1.0 - uncached as f64 / tokens as f64;
    // Two laps begun in the middle: a lap's own hits, less those across the cuts.
    assert!((0.24..0.29).contains(&hit), "{hit}");
}

#[test]
fn a_rate_is_reached_by_copies_that_share_nothing_with_each_other() {
    let trace = TraceName::AzureCode.trace();
    let hours = trace.requests(3, 2.5 * trace.rate(), trace.span).len() as f64 / 8819.0;
    assert!((hours - 2.5).abs() < 0.05, "{hours}");
    let trace = TraceName::MooncakeConversation.trace();
    let hit = |copies: f64| {
        let requests = trace.requests(3, copies * trace.rate(), trace.span);
        let tokens: u32 = requests.iter().map(Request::prompt_tokens).sum();
        let uncached: u32 = uncached_tokens(&requests, 16).iter().sum();
        1.0 - f64::from(uncached) / f64::from(tokens)
    };
    let (one, three, half) = (hit(1.0), hit(3.0), hit(0.5));
    assert!((three - one).abs() < 0.03 && (half - one).abs() < 0.06, "{one} {three} {half}");
}
