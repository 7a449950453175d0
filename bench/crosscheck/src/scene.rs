//! Small versions of the laboratory's scenarios, and their requests.
//!
//! Three engines, and so few tokens a second that two cores can serve engines, router and client
//! at once. Times, lengths and sharing are the laboratory's own, by seed.

use std::time::Duration;

use anyhow::{Context, bail};
use lab::capacity::{Mix, capacity};
use lab::{Plan, Request, Scenario, Segment, Settings, Traffic};
use sim::engine::{EngineSpec, Hardware};
use types::EngineKind;

/// Engines of every scene.
const ENDPOINTS: usize = 3;

/// Groups of the laboratory's `prefix-8b`, made fewer and shorter: a run of seconds would see none
/// of its 150 prefixes of 6,000 tokens twice.
#[derive(Clone, Copy, Debug)]
pub struct Groups {
    pub count: u64,
    pub prefix: u32,
    pub question: u32,
    pub answer: u32,
}

/// A scenario at one load.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    pub name: &'static str,
    /// Share of what the three engines can do at most.
    pub load: f64,
    pub groups: Option<Groups>,
}

pub const SCENES: [Scene; 3] = [
    Scene { name: "mixed-8b", load: 0.5, groups: None },
    Scene {
        name: "prefix-8b",
        load: 0.5,
        groups: Some(Groups { count: 30, prefix: 3000, question: 400, answer: 100 }),
    },
    Scene { name: "uniform", load: 0.5, groups: None },
];

/// A scene with its engines.
pub struct Stage {
    pub scene: Scene,
    pub plan: Plan,
    /// Engines of this scene, requests per second at most.
    pub capacity: f64,
    pub settings: Settings,
}

impl Stage {
    /// * `seconds`: of arrivals, modelled; the first fifth is not counted.
    /// * `scale`: real time for one unit of modelled time.
    pub fn new(scene: Scene, seconds: f64, scale: f64) -> anyhow::Result<Self> {
        let whole = Duration::try_from_secs_f64(seconds).context("--seconds")?;
        let warm_up = whole / 5;
        let defaults = Settings::new(whole - warm_up);
        let network = defaults.network.div_f64(scale);
        let settings = Settings { warm_up, network, ..defaults };
        let plan = Plan::with_settings(Scenario::find(scene.name)?, Some(ENDPOINTS), &settings)?;
        let capacity = match &scene.groups {
            None => plan.capacity(),
            Some(groups) => groups.capacity(&plan.rows)?,
        };
        Ok(Self { scene, plan, capacity, settings })
    }

    /// Requests per second.
    pub fn rate(&self) -> f64 {
        self.scene.load * self.capacity
    }

    /// The laboratory's requests of this seed at this scene's rate.
    pub fn traffic(&self, seed: u64) -> Traffic {
        self.plan.traffic(self.rate() / self.plan.capacity(), seed, &self.settings)
    }

    /// What is sent, in order of time.
    pub fn requests(&self, traffic: &Traffic) -> Vec<Request> {
        let shorten = |request: &Request| match &self.scene.groups {
            None => request.clone(),
            Some(groups) => groups.shorten(request),
        };
        traffic.requests().map(shorten).collect()
    }

    /// Name under which the engines serve.
    pub fn model(&self) -> anyhow::Result<&'static str> {
        let row = self.plan.rows.first().context("no engines")?;
        Ok(Hardware::find(row).context("unknown hardware")?.model)
    }
}

impl Groups {
    fn shorten(&self, request: &Request) -> Request {
        let group = request.prompt.first().map_or(0, |prefix| prefix.content % self.count);
        let own = request.prompt.last().map_or(0, |question| question.content);
        Request {
            prompt: Box::new([
                Segment { content: group, tokens: self.prefix },
                Segment { content: own, tokens: self.question },
            ]),
            answer: Segment { tokens: self.answer, ..request.answer },
            ..request.clone()
        }
    }

    /// With caches that hold every prefix already.
    fn capacity(&self, rows: &[&'static str]) -> anyhow::Result<f64> {
        let (prefix, question, answer) =
            (f64::from(self.prefix), f64::from(self.question), f64::from(self.answer));
        let mix = Mix {
            prompt: prefix + question,
            uncached: question,
            output: answer,
            pairs: question * (prefix + question / 2.0),
            own: question + answer / 2.0,
            shared: self.count as f64 * prefix / rows.len().max(1) as f64,
        };
        let mut sum = 0.0;
        for row in rows {
            let hardware = Hardware::find(row).context("unknown hardware")?;
            sum += capacity(&EngineSpec::new(EngineKind::Vllm, hardware, 0, 0), &mix);
        }
        if sum > 0.0 { Ok(sum) } else { bail!("an engine cannot hold one request") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_fixes_the_requests_and_another_changes_them() {
        for scene in SCENES {
            let stage = Stage::new(scene, 20.0, 1.0).unwrap();
            let of = |seed| stage.requests(&stage.traffic(seed));
            assert_eq!(of(1), of(1), "{}", scene.name);
            assert_ne!(of(1), of(2), "{}", scene.name);
        }
    }

    #[test]
    fn requests_come_at_the_scenes_rate() {
        for scene in SCENES {
            let stage = Stage::new(scene, 400.0, 1.0).unwrap();
            let rate = stage.requests(&stage.traffic(1)).len() as f64 / 400.0;
            let off = rate / stage.rate() - 1.0;
            assert!(off.abs() < 0.1, "{}: {rate} for {}", scene.name, stage.rate());
        }
    }

    #[test]
    fn shortened_groups_are_as_many_as_they_shall_be() {
        let groups = Groups { count: 5, prefix: 100, question: 10, answer: 3 };
        let scene = Scene { name: "prefix-8b", load: 0.5, groups: Some(groups) };
        let stage = Stage::new(scene, 20.0, 1.0).unwrap();
        let requests = stage.requests(&stage.traffic(1));
        let mut seen: Vec<u64> = requests.iter().map(|one| one.prompt[0].content).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 5);
        assert!(requests.iter().all(|one| one.prompt_tokens() == 110 && one.answer.tokens == 3));
    }
}
