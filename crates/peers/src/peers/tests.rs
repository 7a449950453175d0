//! Over loopback, with the gossip.

use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gateway::Gateway;
use telemetry::clock;
use telemetry::metrics::labels::{Direction, PeerLoss};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{OpenError, Peers};
use crate::testing::{blocks, body, document, gateway, key, lost, peers, send, text};
use crate::wire::Wire;
use crate::{Key, Settings};

const DEADLINE: Duration = Duration::from_secs(20);

struct Node {
    gateway: Arc<Gateway>,
    address: SocketAddr,
    wire: Arc<Wire>,
    running: JoinHandle<()>,
    stop: Option<oneshot::Sender<()>>,
}

impl Node {
    async fn start(seeds: &[SocketAddr], key: Key) -> Self {
        let gateway = gateway(&document(&[1, 2, 3, 4], ""));
        let mut settings = Settings::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), key);
        settings.seeds = seeds.iter().map(ToString::to_string).collect();
        let opened = Peers::open(&settings, gateway.clone()).await.unwrap();
        let (address, wire) = (opened.advertised(), Arc::clone(&opened.wire));
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(opened.run(async {
            if stopped.await.is_err() {
                pending::<()>().await;
            }
        }));
        Self { gateway, address, wire, running, stop: Some(stop) }
    }

    fn live(&self) -> i64 {
        self.gateway.metrics.gateway().peers.live.get()
    }
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let looking = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(5));
        while !condition() {
            ticks.tick().await;
        }
    };
    assert!(tokio::time::timeout(DEADLINE, looking).await.is_ok(), "never: {what}");
}

async fn pair() -> (Node, Node) {
    let first = Node::start(&[], key()).await;
    let second = Node::start(&[first.address], key()).await;
    until("both are there", || first.live() == 1 && second.live() == 1).await;
    (first, second)
}

#[tokio::test]
async fn gateways_find_each_other_by_a_seed_and_share_load_and_prompts() {
    let (first, second) = pair().await;
    let said = text("a", 1000);
    let (open, home) = send(&first.gateway, &body(&said), clock::now());
    until("the request is seen", || peers(&second.gateway)[home] == 1).await;
    until("the prompt is known", || blocks(&second.gateway, Direction::Received) > 0).await;
    drop(open);
    until("its end is seen", || peers(&second.gateway)[home] == 0).await;
    let (_open, chosen) = send(&second.gateway, &body(&(said + &text("b", 200))), clock::now());
    assert_eq!(chosen, home);
}

#[tokio::test]
async fn a_third_finds_all_through_one() {
    let (first, second) = pair().await;
    let third = Node::start(&[second.address], key()).await;
    until("all are there", || [&first, &second, &third].iter().all(|node| node.live() == 2)).await;
}

#[tokio::test]
async fn the_credit_of_a_peer_that_is_killed_goes_and_nobody_waits_for_it() {
    let (first, second) = pair().await;
    let (_open, home) = send(&first.gateway, &body("hi"), clock::now());
    until("the request is seen", || peers(&second.gateway)[home] == 1).await;
    first.running.abort();
    until("its credit is gone", || peers(&second.gateway)[home] == 0).await;
    until("it counts as dead", || second.live() == 0).await;
    let (_open, _) = send(&second.gateway, &body("still here"), clock::now());
}

#[tokio::test]
async fn a_peer_that_stops_says_so() {
    let (mut first, second) = pair().await;
    let (_open, home) = send(&first.gateway, &body("hi"), clock::now());
    until("the request is seen", || peers(&second.gateway)[home] == 1).await;
    let stopped_at = clock::now();
    first.stop.take().unwrap().send(()).unwrap();
    first.running.await.unwrap();
    until("its credit is gone", || peers(&second.gateway)[home] == 0).await;
    let took = clock::now().since(stopped_at);
    assert!(took < Duration::from_millis(900), "before the silence is noticed: {took:?}");
}

#[tokio::test]
async fn a_peer_that_comes_back_is_heard_again() {
    let (first, second) = pair().await;
    first.running.abort();
    until("it counts as dead", || second.live() == 0).await;
    let again = Node::start(&[second.address], key()).await;
    until("both are there", || again.live() == 1 && second.live() == 1).await;
    let (_open, home) = send(&again.gateway, &body("hi"), clock::now());
    until("the request is seen", || peers(&second.gateway)[home] == 1).await;
}

#[tokio::test]
async fn a_split_ends_the_sharing_and_its_end_begins_it_again() {
    let (first, second) = pair().await;
    let (_open, home) = send(&first.gateway, &body("hi"), clock::now());
    until("the request is seen", || peers(&second.gateway)[home] == 1).await;
    let cut = |is_cut| {
        for node in [&first, &second] {
            node.wire.is_cut.store(is_cut, Ordering::Relaxed);
        }
    };
    cut(true);
    until("each is alone", || first.live() == 0 && second.live() == 0).await;
    assert_eq!(peers(&second.gateway), [0; 4]);
    let (_alone, _) = send(&second.gateway, &body("still here"), clock::now());
    cut(false);
    let healed_at = clock::now();
    until("both are there", || first.live() == 1 && second.live() == 1).await;
    until("all is told", || {
        peers(&second.gateway)[home] == 1 && peers(&first.gateway).contains(&1)
    })
    .await;
    let took = clock::now().since(healed_at);
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test]
async fn another_key_is_no_peer() {
    let first = Node::start(&[], key()).await;
    let other = Node::start(&[first.address], Key::new("test", Some(b"guessed"))).await;
    until("it was heard", || lost(&first.gateway, PeerLoss::Unreadable) >= 2).await;
    assert_eq!((first.live(), other.live()), (0, 0));
    let sent = &first.gateway.metrics.gateway().peers.datagrams;
    assert_eq!(sent.of(Direction::Sent).get(), 0, "a stranger gets no answer");
}

#[tokio::test]
async fn junk_from_anywhere_changes_nothing() {
    let (first, second) = pair().await;
    let stranger = tokio::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    for length in 0..300 {
        let junk = vec![1; length * 4];
        stranger.send_to(&junk, second.address).await.unwrap();
    }
    until("it was refused", || lost(&second.gateway, PeerLoss::Unreadable) >= 200).await;
    let (_open, home) = send(&first.gateway, &body("hi"), clock::now());
    until("the request is seen", || peers(&second.gateway)[home] == 1).await;
    assert_eq!(lost(&second.gateway, PeerLoss::Malformed), 0);
}

#[tokio::test]
async fn an_address_in_use_is_said() {
    let first = Node::start(&[], key()).await;
    let gateway = gateway(&document(&[1], ""));
    let opened = Peers::open(&Settings::new(first.address, key()), gateway).await;
    assert!(matches!(opened, Err(OpenError::Listen { .. })));
}

/// CPU time of this process, kernel included.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<u64>().unwrap();
    Duration::from_millis(10 * (ticks(11) + ticks(12)))
}

/// For `docs/replicas.md`: `cargo test --release -p wicketgate-peers -- --ignored --nocapture over_loopback`.
#[tokio::test]
#[ignore = "a measurement"]
async fn cost_over_loopback_kernel_included() {
    const SECONDS: u32 = 10;
    let load = async |gateways: [&Arc<Gateway>; 2], per_tick: usize, round: usize| {
        let begun = cpu();
        let mut ticks = tokio::time::interval(Duration::from_millis(10));
        let mut open = std::collections::VecDeque::new();
        for tick in 0..SECONDS as usize * 100 {
            ticks.tick().await;
            for number in 0..per_tick {
                let prompt = body(&text(&format!("r{round}t{tick}n{number}"), 1000));
                open.push_back(send(gateways[tick % 2], &prompt, clock::now()));
            }
            while open.len() > 200 {
                open.pop_front();
            }
        }
        (cpu() - begun).as_secs_f64() * 1e3 / f64::from(SECONDS)
    };
    let alone = [gateway(&document(&[1, 2, 3, 4], "")), gateway(&document(&[1, 2, 3, 4], ""))];
    let (first, second) = pair().await;
    first.running.abort();
    second.running.abort();
    let idle = load([&alone[0], &alone[1]], 0, 0).await;
    let busy = load([&alone[0], &alone[1]], 1, 1).await;
    let (first, second) = pair().await;
    let bytes = || first.gateway.metrics.gateway().peers.bytes.of(Direction::Sent).get();
    let bytes_before = bytes();
    let sharing_idle = load([&first.gateway, &second.gateway], 0, 2).await;
    let bytes_idle = bytes() - bytes_before;
    let sharing_busy = load([&first.gateway, &second.gateway], 1, 3).await;
    let bytes_busy = bytes() - bytes_before - bytes_idle;
    println!(
        "each gateway: idle {:.2} ms of CPU and {} bytes a second, at 50 requests a second more by {:.2} ms and {} bytes",
        (sharing_idle - idle) / 2.0,
        bytes_idle / u64::from(SECONDS),
        (sharing_busy - busy) / 2.0,
        bytes_busy / u64::from(SECONDS),
    );
}
