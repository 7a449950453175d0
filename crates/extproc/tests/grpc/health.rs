//! `grpc.health.v1` on both listeners.

use tokio::time::timeout;
use tokio_stream::StreamExt;
use tonic::Code;
use wicketgate_extproc::wire::health::ServingStatus;

use crate::client::{check, connect, watch};
use crate::server::{PATIENCE, Server};

const SERVING: i32 = ServingStatus::Serving as i32;
const NOT_SERVING: i32 = ServingStatus::NotServing as i32;
const READINESS: [&str; 4] =
    ["", "readiness", "inference-extension", "envoy.service.ext_proc.v3.ExternalProcessor"];

#[tokio::test]
async fn every_name_in_use_is_answered_and_follows_readiness() {
    let server = Server::start("", None).await;
    for address in [server.health, server.ext_proc] {
        let channel = connect(address).await;
        for service in READINESS {
            assert_eq!(check(channel.clone(), service).await.unwrap(), SERVING, "{service}");
        }
        assert_eq!(check(channel.clone(), "liveness").await.unwrap(), SERVING);
        assert_eq!(check(channel, "other").await.unwrap_err().code(), Code::NotFound);
    }
    server.gateway.start_draining();
    let channel = connect(server.health).await;
    for service in READINESS {
        assert_eq!(check(channel.clone(), service).await.unwrap(), NOT_SERVING, "{service}");
    }
    assert_eq!(check(channel, "liveness").await.unwrap(), SERVING, "still alive");
}

#[tokio::test]
async fn a_watcher_is_told_now_and_when_it_changes() {
    let server = Server::start("", None).await;
    let channel = connect(server.health).await;
    let mut states = watch(channel.clone(), "readiness").await;
    let mut unknown = watch(channel.clone(), "other").await;
    let mut alive = watch(channel, "liveness").await;
    assert_eq!(states.next().await.unwrap().unwrap().status, SERVING);
    assert_eq!(unknown.next().await.unwrap().unwrap().status, ServingStatus::ServiceUnknown as i32);
    assert_eq!(alive.next().await.unwrap().unwrap().status, SERVING);
    server.gateway.start_draining();
    let told = timeout(PATIENCE, states.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(told.status, NOT_SERVING);
}
