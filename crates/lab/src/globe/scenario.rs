//! What happens to a world.

use std::time::Duration;

use super::cluster::Health;

/// Before it all is well; of [`Scenario::lasts`] later it is over.
pub(crate) const BEGINS: Duration = Duration::from_secs(60);

/// A story.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scenario {
    pub name: &'static str,
    pub about: &'static str,
    /// Share of the clusters' capacity that is offered.
    pub load: f64,
    pub(crate) lasts: Duration,
    pub(crate) deed: Deed,
}

/// What befalls whom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Deed {
    Nothing,
    /// All clusters of the largest region.
    LoseRegion(Health),
    /// Times of the clusters in two of three regions.
    Degrade(f64),
    /// Of all heartbeats.
    LoseHeartbeats(f64),
    /// Those of every fourth cluster come later by so much.
    DelayHeartbeats(Duration),
    /// The first router hears nobody.
    Isolate,
    /// The first cluster says it is idle and takes so many times as long.
    Lie(f64),
    /// The first cluster is up and down in turn, each for so long.
    Flap(Duration),
    /// Half of the clusters go and come back at once, cold: twice as slow for half a minute.
    Return,
    /// One model is asked for so many times as often.
    Crowd(f64),
    /// So many times the load, and clients repeat at once, three times, what fails.
    Retries(f64),
    /// The largest region and whoever divides limits.
    StoreAndRegion,
    /// The first cluster fails all requests at once.
    Poison,
    /// Clocks of clusters differ by up to so much.
    Skew(Duration),
    /// Half of the routers restart, one each five seconds.
    Upgrade,
    /// All clusters restart, one after the other; each is away for so long.
    Roll(Duration),
    /// Prices swing by half, each cluster at its own time, with this period; requests ask for the cheapest.
    Prices(Duration),
}

/// There is no such scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no scenario `{0}`")]
pub struct UnknownScenario(String);

const fn scenario(
    name: &'static str,
    about: &'static str,
    load: f64,
    lasts: u64,
    deed: Deed,
) -> Scenario {
    Scenario { name, about, load, lasts: Duration::from_secs(lasts), deed }
}

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    scenario("steady", "nothing happens", 0.7, 60, Deed::Nothing),
    scenario(
        "region-lost",
        "the largest region vanishes (packets dropped), and is back later",
        0.6,
        60,
        Deed::LoseRegion(Health::Blackhole),
    ),
    scenario(
        "degraded",
        "two of three regions answer five times as slowly",
        0.25,
        60,
        Deed::Degrade(5.0),
    ),
    scenario("heartbeat-loss", "30 % of heartbeats are lost", 0.7, 60, Deed::LoseHeartbeats(0.3)),
    scenario(
        "heartbeat-delay",
        "heartbeats of every fourth cluster come 20 s late",
        0.7,
        60,
        Deed::DelayHeartbeats(Duration::from_secs(20)),
    ),
    scenario("router-isolated", "one router hears nobody", 0.7, 60, Deed::Isolate),
    scenario(
        "liar",
        "a cluster says it is idle and is four times as slow",
        0.7,
        60,
        Deed::Lie(4.0),
    ),
    scenario(
        "flapping",
        "a cluster is up and down, ten seconds each",
        0.7,
        60,
        Deed::Flap(Duration::from_secs(10)),
    ),
    scenario(
        "thundering-return",
        "half of the clusters go and come back at once, cold",
        0.4,
        60,
        Deed::Return,
    ),
    scenario(
        "flash-crowd",
        "one model is asked for ten times as often",
        0.5,
        30,
        Deed::Crowd(10.0),
    ),
    scenario(
        "retry-storm",
        "1.3 times what can be done, and clients repeat three times at once",
        0.7,
        30,
        Deed::Retries(1.86),
    ),
    scenario(
        "store-and-region",
        "the largest region and the authority of limits are lost",
        0.6,
        60,
        Deed::StoreAndRegion,
    ),
    scenario("poison", "a cluster fails all requests, at once", 0.7, 60, Deed::Poison),
    scenario(
        "clock-skew",
        "clocks of clusters differ by up to 5 minutes",
        0.7,
        60,
        Deed::Skew(Duration::from_secs(300)),
    ),
    scenario(
        "rolling-upgrade",
        "half of the routers restart, one after the other",
        0.7,
        60,
        Deed::Upgrade,
    ),
    scenario(
        "rolling-restart",
        "all clusters restart within a minute, one after the other",
        0.5,
        60,
        Deed::Roll(Duration::from_secs(2)),
    ),
    scenario(
        "price-swing",
        "prices swing by half within 20 s, and requests ask for the cheapest",
        0.6,
        60,
        Deed::Prices(Duration::from_secs(20)),
    ),
];

impl Scenario {
    pub fn find(name: &str) -> Result<&'static Self, UnknownScenario> {
        let mut all = SCENARIOS.iter();
        all.find(|scenario| scenario.name == name).ok_or_else(|| UnknownScenario(name.to_owned()))
    }

    pub(crate) fn ends(&self) -> Duration {
        BEGINS + self.lasts
    }

    /// With the time to recover, two and a half minutes.
    pub(crate) fn whole(&self) -> Duration {
        self.ends() + Duration::from_secs(150)
    }
}
