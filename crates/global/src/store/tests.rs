//! The script against the crate: the same questions get the same answers. Needs a Redis, whose address
//! `WICKETGATE_TEST_REDIS` names.

use std::sync::Arc;

use fleet::lease::{Authority, Want};
use limits::BucketName;
use proptest::prelude::*;
use types::Timestamp;

use super::*;

fn key(rule: &str) -> Key {
    let name = BucketName { tenant: Some("t:1".into()), key: None, model: None, route: None };
    (Arc::from(rule), name)
}

fn settings(prefix: String) -> Option<StoreSettings> {
    let url = std::env::var("WICKETGATE_TEST_REDIS").ok()?;
    let timeout = Duration::from_secs(5);
    Some(StoreSettings { url, username: None, password: None, prefix, timeout })
}

/// What three holders ask for in one round: demands of two limits each.
type Round = [[f64; 2]; 3];

/// Shares of each round and holder, by the script and by the crate.
async fn both(rounds: &[Round], reserves: bool) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
    let prefix = format!("test-{}", rand::random::<u64>());
    let mut store = RedisStore::new(settings(prefix).unwrap(), reserves).unwrap();
    let mut authority: Authority<Key> = Authority::new(reserves, 0, Timestamp::ZERO);
    let (mut by_script, mut by_crate) = (Vec::new(), Vec::new());
    let mut now = Timestamp::ZERO;
    let mut held = [[0_u32; 2]; 3];
    for (number, round) in rounds.iter().enumerate() {
        for (holder, demands) in round.iter().enumerate() {
            let wants = demands.iter().enumerate().map(|(limit, demand)| Want {
                key: key(&format!("rule-{limit}")),
                demand: *demand,
                holds: Share::of_parts(held[holder][limit]),
            });
            let leased_for = if number == 0 { Duration::ZERO } else { fleet::lease::LEASE / 2 };
            let ask =
                Ask { holder: holder as u64 + 1, holders: 3, leased_for, wants: wants.collect() };
            let shares = |answer: Answer<Key>| -> Vec<u32> {
                answer.grants.iter().map(|grant| grant.share.parts()).collect()
            };
            let told = shares(store.ask(&ask).await.unwrap());
            for (limit, share) in told.iter().enumerate() {
                held[holder][limit] = *share;
            }
            by_script.push(told);
            by_crate.push(shares(authority.ask(&ask, now)));
        }
        // The store's clock cannot be set; a lease's half passes for both.
        tokio::time::sleep(fleet::lease::LEASE / 2).await;
        now = now + fleet::lease::LEASE / 2;
    }
    (by_script, by_crate)
}

#[tokio::test]
#[ignore = "needs a Redis: cargo xtask test --only global"]
async fn the_script_divides_as_the_crate_does() {
    let rounds: Vec<Round> = vec![
        [[0.5, 0.0], [0.5, 2.0], [0.1, 0.1]],
        [[0.5, 0.0], [0.5, 2.0], [0.1, 0.1]],
        [[0.5, 0.3], [0.5, 2.0], [0.1, 0.1]],
        [[3.0, 0.3], [0.5, 2.0], [0.0, 0.1]],
        [[3.0, 0.3], [3.0, 0.0], [0.0, 0.1]],
        [[3.0, 0.3], [3.0, 0.0], [3.0, 0.1]],
    ];
    for reserves in [false, true] {
        let (by_script, by_crate) = both(&rounds, reserves).await;
        for (script, own) in by_script.iter().flatten().zip(by_crate.iter().flatten()) {
            // Floating point of two languages.
            assert!(script.abs_diff(*own) <= 2, "{by_script:?}\n{by_crate:?}");
        }
    }
}

#[test]
fn buckets_of_different_names_have_different_keys_in_one_slot() {
    let settings = StoreSettings {
        url: "redis://localhost".to_owned(),
        username: None,
        password: None,
        prefix: "w".to_owned(),
        timeout: Duration::from_secs(1),
    };
    let store = RedisStore::new(settings, true).unwrap();
    let name = |tenant: Option<&str>, key: Option<&str>| BucketName {
        tenant: tenant.map(Into::into),
        key: key.map(Into::into),
        model: None,
        route: None,
    };
    let keys = [
        store.bucket(&("a".into(), name(Some("x"), None))),
        store.bucket(&("a".into(), name(None, Some("x")))),
        store.bucket(&("a".into(), name(Some("x:1:y"), None))),
        store.bucket(&("a".into(), name(Some("x"), Some("y")))),
        store.bucket(&("a:1:x".into(), name(None, None))),
    ];
    let different: std::collections::BTreeSet<_> = keys.iter().collect();
    assert_eq!(different.len(), keys.len(), "{keys:?}");
    assert!(keys.iter().all(|key| key.starts_with("{w}:")));
}

proptest! {
    #[test]
    fn a_url_never_makes_it_panic(url in ".{0,60}") {
        let settings = StoreSettings {
            url, username: None, password: None, prefix: "w".to_owned(), timeout: Duration::from_secs(1),
        };
        let _ = RedisStore::new(settings, true);
    }
}
