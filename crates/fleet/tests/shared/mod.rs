//! A large fleet.

use std::time::Duration;

use types::{Ratio, Timestamp};
use wicketgate_fleet::{
    Adapter, Fleet, Heartbeat, Label, Labels, Member, MemberId, ModelLoad, Settings, Sketch,
};

pub(crate) const NOW: Timestamp = Timestamp(60_000_000_000);

/// Each member serves `models` models with eight adapters each and tells a full sketch.
pub(crate) fn fleet(members: u16, models: u16) -> Fleet {
    let labels = Labels::new([Label::new("eu"), Label::new("gdpr")]);
    let all = (0..members).map(|n| {
        let member = Member::new(&format!("cluster-{n}"), &format!("region-{}", n % 20));
        Member { labels: labels.clone(), ..member }
    });
    let fleet = Fleet::new(Settings::new("region-0"), all.collect(), None, NOW);
    for n in 0..members {
        let heartbeat = Heartbeat {
            epoch: 1,
            sequence: 1,
            uptime: Duration::from_secs(60),
            models: (0..models).map(|at| model(n, at)).collect(),
            ..Heartbeat::default()
        };
        fleet.heard(MemberId(n), heartbeat, NOW).expect("a heartbeat that is in order");
    }
    fleet
}

fn model(member: u16, at: u16) -> ModelLoad {
    let used = u32::from(member * 37 % 90);
    let spread = |n: u32| n.wrapping_mul(0x9e37_79b9) ^ u32::from(member);
    ModelLoad {
        adapters: (0..8)
            .map(|n| Adapter {
                name: format!("model-{at}-adapter-{n}").as_str().into(),
                is_resident: n % 2 == 0,
            })
            .collect(),
        endpoints_ready: 200,
        in_flight_max: 3200,
        in_flight: 32 * used,
        drain_per_second: 400.0,
        arrivals_per_second: 300.0,
        finished_per_second: 300.0,
        prefill_tokens_per_second: 10_000.0,
        ttft_base: Duration::from_millis(80),
        kv_used: Ratio::new(f64::from(used) / 100.0).unwrap_or_default(),
        prefixes: Sketch::new((0..1024).map(spread)),
        ..ModelLoad::new(&format!("model-{at}"))
    }
}
