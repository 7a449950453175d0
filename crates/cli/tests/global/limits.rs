//! Limits that two routers share through a real Redis.
//!
//! That a window of sixty seconds holds at most 1.08 and at least 0.97 of a limit is shown in virtual time, by the same
//! limiters and leases (`crates/fleet/tests/leases.rs`). Here windows are of ten seconds, so that a test takes no
//! minutes: a burst of three seconds (the least that parts have) is a third of one, which the upper bound allows for,
//! and one lease that comes late on a busy machine is a tenth, which the lower bound does.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::http::chat;
use crate::load::prompt;
use crate::process::until;
use crate::redis::Redis;
use crate::stand::{Plan, Stand};

const RATE: f64 = 20.0;
const BURST: f64 = 60.0;

fn shared(redis: &Redis, mode: &str) -> Value {
    json!({
        "store": { "type": "redis", "url": redis.url(), "timeout": "500ms" },
        "routers": 2,
        "failureMode": mode,
        "rateLimits": [{ "name": "all", "requests": { "perSecond": RATE as u64, "burst": BURST as u64 } }],
    })
}

/// Asks both routers, the first `skew` times as often, for a while. How many were let through at each.
async fn offer(stand: &Stand, skew: usize, seconds: u64) -> [usize; 2] {
    let begun = Instant::now();
    let end = begun + Duration::from_secs(seconds);
    let asking = |router: usize, every: Duration| {
        let to = stand.routers[router].traffic;
        async move {
            let (mut passed, mut at) = (0, begun);
            while at < end {
                sleep_until(at).await;
                passed += usize::from(chat(to, &prompt("Hi", 1)).await.status == 200);
                at += every;
            }
            passed
        }
    };
    let every = Duration::from_millis(25);
    let (one, other) = tokio::join!(asking(0, every), asking(1, every * skew as u32));
    [one, other]
}

async fn has_lease(stand: &Stand) {
    for router in &stand.routers {
        until("it holds a lease", async || {
            let up = router.metric("wicketgate_fleet_store_up", &[]).await;
            up == 1.0 && router.metric("wicketgate_fleet_leases", &[]).await > 0.0
        })
        .await;
    }
}

/// Before a burst and after it, what is let through in any time is the rate's and the burst's.
fn assert_within(passed: usize, seconds: u64, factor: f64) {
    let most = BURST + factor * RATE * seconds as f64;
    assert!((passed as f64) <= most, "{passed} of at most {most}");
}

#[tokio::test]
#[ignore = "needs redis-server: cargo xtask test --only global"]
async fn two_routers_together_let_through_what_the_limit_allows_and_use_it() {
    let redis = Redis::start().await;
    let plan = Plan { routers: 2, router: shared(&redis, "safe"), ..Plan::default() };
    let stand = Stand::start(plan).await;
    offer(&stand, 1, 3).await;
    has_lease(&stand).await;
    let [one, other] = offer(&stand, 1, 12).await;
    assert_within(one + other, 12, 1.08);
    assert!((one + other) as f64 >= 0.9 * RATE * 12.0, "{one} + {other}");
    assert!(one.abs_diff(other) < 60, "{one} and {other}: the same demand, the same part");
}

#[tokio::test]
#[ignore = "needs redis-server: cargo xtask test --only global"]
async fn a_router_that_alone_is_asked_may_spend_nearly_all() {
    let redis = Redis::start().await;
    let plan = Plan { routers: 2, router: shared(&redis, "safe"), ..Plan::default() };
    let stand = Stand::start(plan).await;
    offer(&stand, 40, 4).await;
    has_lease(&stand).await;
    let [one, other] = offer(&stand, 40, 10).await;
    assert_within(one + other, 10, 1.08);
    // Equal parts would be half of it; small bursts leave about a fifth of a limit unused.
    assert!(one as f64 > 0.65 * RATE * 10.0, "{one} + {other}");
}

#[tokio::test]
#[ignore = "needs redis-server: cargo xtask test --only global"]
async fn without_the_store_routers_keep_to_their_equal_parts_and_share_again_when_it_is_back() {
    let mut redis = Redis::start().await;
    let plan = Plan { routers: 2, router: shared(&redis, "safe"), ..Plan::default() };
    let stand = Stand::start(plan).await;
    offer(&stand, 1, 3).await;
    has_lease(&stand).await;
    redis.process.kill();
    let down = async |stand: &Stand| {
        for router in &stand.routers {
            until("the outage is seen", async || {
                router.metric("wicketgate_fleet_store_up", &[]).await == 0.0
            })
            .await;
        }
    };
    down(&stand).await;
    let [one, other] = offer(&stand, 1, 10).await;
    assert_within(one + other, 10, 1.10);
    assert!((one + other) as f64 > 0.8 * RATE * 10.0, "{one} + {other}");
    redis.restart().await;
    offer(&stand, 1, 4).await;
    has_lease(&stand).await;
    let [one, other] = offer(&stand, 1, 8).await;
    assert_within(one + other, 8, 1.08);
}

#[tokio::test]
#[ignore = "needs redis-server: cargo xtask test --only global"]
async fn with_failure_mode_closed_nothing_passes_once_leases_have_ended() {
    let mut redis = Redis::start().await;
    let plan = Plan { routers: 2, router: shared(&redis, "closed"), ..Plan::default() };
    let stand = Stand::start(plan).await;
    offer(&stand, 1, 4).await;
    has_lease(&stand).await;
    redis.process.kill();
    until("nothing passes", async || {
        chat(stand.router().traffic, &prompt("Hi", 1)).await.status == 429
    })
    .await;
    let [one, other] = offer(&stand, 1, 3).await;
    assert!(one + other <= 2 * BURST as usize, "{one} + {other}");
}

/// Every request is answered as fast as before while the store hangs.
#[tokio::test]
#[ignore = "needs redis-server: cargo xtask test --only global"]
async fn no_request_waits_for_a_store_that_hangs() {
    let redis = Redis::start().await;
    let plan = Plan { routers: 1, router: shared(&redis, "open"), ..Plan::default() };
    let stand = Stand::start(plan).await;
    offer_one(&stand).await;
    redis.process.signal("STOP");
    let router = stand.router();
    until("the outage is seen", async || {
        offer_one(&stand).await;
        router.metric("wicketgate_fleet_store_up", &[]).await == 0.0
    })
    .await;
    let begun = Instant::now();
    for _ in 0..20 {
        offer_one(&stand).await;
    }
    // Twenty requests that waited for it would take ten seconds.
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

async fn offer_one(stand: &Stand) {
    let answer = chat(stand.router().traffic, &prompt("Hi", 1)).await;
    assert!(matches!(answer.status, 200 | 429), "{answer:?}");
}

/// Without a store each router spends its part, whatever the others do.
#[tokio::test]
async fn routers_without_a_store_spend_equal_parts() {
    let router = json!({
        "routers": 2,
        "rateLimits": [{ "name": "all", "requests": { "perHour": 8 } }],
    });
    let stand = Stand::start(Plan { routers: 2, router, ..Plan::default() }).await;
    for router in &stand.routers {
        let mut passed = 0;
        for _ in 0..8 {
            passed += usize::from(chat(router.traffic, &prompt("Hi", 1)).await.status == 200);
        }
        assert_eq!(passed, 4);
    }
}
