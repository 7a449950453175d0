//! Where clusters stand, how far they are from each other, what they can do and what they cost.

use std::time::Duration;

/// Regions with latitude, longitude, share of the clients, and hours ahead of UTC.
const REGIONS: [(&str, f64, f64, f64); 20] = [
    ("us-east", 39.0, -77.5, 0.16),
    ("us-west", 45.6, -121.2, 0.09),
    ("eu-west", 53.3, -6.3, 0.08),
    ("eu-central", 50.1, 8.7, 0.10),
    ("asia-northeast", 35.7, 139.7, 0.08),
    ("asia-south", 19.1, 72.9, 0.09),
    ("asia-southeast", 1.35, 103.8, 0.06),
    ("us-central", 41.3, -95.9, 0.05),
    ("us-south", 32.8, -96.8, 0.04),
    ("ca-east", 45.5, -73.6, 0.03),
    ("sa-east", -23.5, -46.6, 0.04),
    ("eu-north", 59.3, 18.1, 0.02),
    ("eu-south", 45.5, 9.2, 0.03),
    ("eu-west-2", 51.5, -0.1, 0.03),
    ("me-central", 25.3, 55.3, 0.02),
    ("af-south", -33.9, 18.4, 0.01),
    ("asia-east", 22.3, 114.2, 0.03),
    ("asia-northeast-2", 37.6, 127.0, 0.02),
    ("au-southeast", -33.9, 151.2, 0.02),
    ("eu-west-3", 48.9, 2.4, 0.02),
];
/// Clusters beyond one for each region go, in turn, to these.
const LARGE: [usize; 10] = [0, 0, 3, 1, 2, 0, 4, 5, 3, 6];
/// Speeds of GPU generations, with prices for a million tokens and places of an endpoint.
const KINDS: [(f32, f64, u32); 3] = [(1.0, 1.0, 16), (1.6, 1.8, 24), (0.7, 0.6, 12)];
/// g CO₂ for a kWh, by region modulo their number.
const CARBON: [f32; 5] = [380.0, 120.0, 300.0, 30.0, 550.0];
/// Shares of the models in traffic and in endpoints.
pub(crate) const MODELS: [(&str, f64); 3] = [("large", 0.6), ("medium", 0.25), ("small", 0.15)];
/// Prompt and answer on average.
pub(crate) const PROMPT: f64 = 800.0;
pub(crate) const ANSWER: f64 = 100.0;

/// What there is.
#[derive(Clone, Debug)]
pub struct World {
    pub(crate) regions: Vec<Region>,
    pub(crate) clusters: Vec<Site>,
    /// Round trips between regions.
    ways: Vec<Vec<Duration>>,
    /// Endpoints of a cluster.
    pub endpoints: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub(crate) name: &'static str,
    /// Of all clients.
    pub(crate) clients: f64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    pub(crate) region: usize,
    /// Over that of the first GPU generation.
    pub(crate) speed: f32,
    /// For a million tokens, each way.
    pub(crate) price: f64,
    pub(crate) places: u32,
    pub(crate) carbon: f32,
}

impl World {
    /// * `clusters`, `regions`: at least 1; regions at most 20 and at most as many as clusters.
    pub fn new(clusters: usize, regions: usize, endpoints: u32) -> Self {
        let regions = regions.clamp(1, REGIONS.len()).min(clusters.max(1));
        let sum: f64 = REGIONS[..regions].iter().map(|region| region.3).sum();
        let region = |(name, _, _, clients): &(&'static str, f64, f64, f64)| Region {
            name,
            clients: clients / sum,
        };
        let site = |at: usize| {
            let region =
                if at < regions { at } else { LARGE[(at - regions) % LARGE.len()] % regions };
            let (speed, price, places) = KINDS[at % KINDS.len()];
            Site { region, speed, price, places, carbon: CARBON[region % CARBON.len()] }
        };
        let way = |a: usize, b: usize| {
            let (a, b) = (&REGIONS[a], &REGIONS[b]);
            // Light in glass needs 1 ms for 100 km there and back; cables are half as long again.
            let ms = 1.0 + distance_km((a.1, a.2), (b.1, b.2)) / 100.0 * 1.5;
            Duration::from_secs_f64(ms / 1e3)
        };
        Self {
            ways: (0..regions).map(|a| (0..regions).map(|b| way(a, b)).collect()).collect(),
            regions: REGIONS[..regions].iter().map(region).collect(),
            clusters: (0..clusters.max(1)).map(site).collect(),
            endpoints,
        }
    }

    /// 50 clusters of 200 endpoints in 20 regions.
    pub fn large() -> Self {
        Self::new(50, 20, 200)
    }

    pub fn clusters(&self) -> usize {
        self.clusters.len()
    }

    pub fn regions(&self) -> usize {
        self.regions.len()
    }

    pub(crate) fn round_trip(&self, from: usize, to: usize) -> Duration {
        self.ways[from][to]
    }

    /// What all clusters together can do at most, requests a second.
    pub fn capacity(&self) -> f64 {
        self.clusters.iter().map(|site| site.capacity(self.endpoints)).sum()
    }

    /// The region whose clusters can do most.
    pub(crate) fn largest_region(&self) -> usize {
        let capacity = |region: usize| -> f64 {
            let here = self.clusters.iter().filter(|site| site.region == region);
            here.map(|site| site.capacity(self.endpoints)).sum()
        };
        let all = 0..self.regions.len();
        all.max_by(|a, b| capacity(*a).total_cmp(&capacity(*b))).unwrap_or(0)
    }
}

impl Site {
    fn capacity(&self, endpoints: u32) -> f64 {
        f64::from(endpoints * self.places) / super::cluster::stay_full(self.speed)
    }
}

/// On the great circle.
fn distance_km(a: (f64, f64), b: (f64, f64)) -> f64 {
    let (lat_a, lat_b) = (a.0.to_radians(), b.0.to_radians());
    let half = |angle: f64| (angle / 2.0).sin().powi(2);
    let h = half(lat_b - lat_a) + lat_a.cos() * lat_b.cos() * half((b.1 - a.1).to_radians());
    2.0 * 6371.0 * h.sqrt().asin()
}
