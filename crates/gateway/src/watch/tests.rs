use std::time::Duration;

use bytes::Bytes;
use types::EndpointAddress;

use super::{Rc, watch};
use crate::fetch::{Fetch, FetchError, Fetched};
use crate::testing::pool_of;

/// Endpoints that serve `llama` and one adapter, and have no metrics.
struct Models;

impl Fetch for Models {
    async fn get(
        &self,
        _: &EndpointAddress,
        path: &str,
        _: Option<&str>,
        _: usize,
        _: Duration,
    ) -> Result<Fetched, FetchError> {
        let status = if path == "/v1/models" { 200 } else { 404 };
        let body = r#"{"data":[{"id":"llama"},{"id":"fr","parent":"llama"}]}"#;
        Ok(Fetched { status, body: Bytes::from_static(body.as_bytes()) })
    }
}

#[tokio::test(start_paused = true)]
async fn endpoints_that_tell_at_once_make_the_catalog_anew_a_few_times_only() {
    let gateway = pool_of(200);
    let changes = gateway.members_changed();
    let before = *changes.borrow();
    let local = tokio::task::LocalSet::new();
    local.spawn_local(watch(gateway.clone(), Rc::new(Models)));
    local
        .run_until(async {
            while gateway.catalog().get("fr").is_none() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        })
        .await;
    let made_anew = *changes.borrow() - before;
    assert!((1..=3).contains(&made_anew), "{made_anew} times");
}
