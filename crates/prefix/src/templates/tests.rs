//! Simulated traffic: templates with parts of their own behind them, edited while it runs.

use super::*;

const POOL: &str = "chat";

struct Traffic {
    templates: Templates,
    now: Timestamp,
    pool: PoolName,
    /// Of a generator of our own, so that a run is the same each time.
    state: u64,
    events: Vec<Event>,
    ticked: Timestamp,
}

impl Traffic {
    fn new() -> Self {
        let now = Timestamp::from_millis(1_000_000);
        Self {
            templates: Templates::default(),
            now,
            pool: PoolName::new(POOL),
            state: 7,
            events: Vec::new(),
            ticked: now,
        }
    }

    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.state ^ (self.state >> 29)
    }

    /// A chain of blocks whose contents are these.
    fn chain(contents: impl IntoIterator<Item = u64>) -> Vec<BlockHash> {
        let mut before = 1_u64;
        contents
            .into_iter()
            .map(|content| {
                before = (before ^ content).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
                BlockHash(before)
            })
            .collect()
    }

    /// A prompt of template `number`, 40 blocks, edited or not, with 10 blocks of its own behind it.
    fn prompt(&mut self, number: u64, edit: Option<(usize, Cause)>) -> Vec<BlockHash> {
        let random = self.random();
        let own = (0..10).map(|at| random.wrapping_add(at));
        let template = (0..40).map(|at| {
            let usual = number * 1000 + at;
            match edit {
                Some((block, Cause::PerRequest)) if at == block as u64 => random,
                Some((block, Cause::Replaced)) if at == block as u64 => usual + 500,
                _ => usual,
            }
        });
        Self::chain(template.chain(own))
    }

    /// Prompts of one template for some seconds.
    fn run(&mut self, seconds: u64, per_second: u64, edit: Option<(usize, Cause)>) {
        for _ in 0..seconds * per_second {
            let prompt = self.prompt(1, edit);
            self.observe(&prompt, 1000 / per_second);
        }
    }

    fn observe(&mut self, prompt: &[BlockHash], millis: u64) {
        self.templates.observe(&self.pool, prompt, 0, self.now);
        self.now = self.now + Duration::from_millis(millis);
        if self.now.since(self.ticked) >= self.templates.tick_every() {
            self.ticked = self.now;
            self.events.extend(self.templates.tick(self.now));
        }
    }

    fn only_event(&self) -> (u64, Regression) {
        match &self.events[..] {
            [Event::Began { template, regression, .. }] => (*template, regression.clone()),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_edit_that_differs_from_prompt_to_prompt_is_blamed_at_its_block_within_a_minute() {
    for block in [1, 7, 39] {
        for per_second in [2, 20] {
            let mut traffic = Traffic::new();
            traffic.run(300, per_second, None);
            assert_eq!(traffic.events, [], "nothing was edited yet");
            let edited = traffic.now;
            traffic.run(60, per_second, Some((block, Cause::PerRequest)));
            if block == 39 {
                assert_eq!(traffic.events, [], "the last block of forty is no loss to speak of");
                continue;
            }
            let (_, regression) = traffic.only_event();
            assert_eq!((regression.block, regression.cause), (block as u32, Cause::PerRequest));
            assert_eq!(regression.shared_before, 40);
            assert!(regression.since.since(edited) <= Duration::from_secs(60));
            let lost = (40 - block) as f64 * 3600.0 * per_second as f64;
            let open = traffic.templates.views(traffic.now).into_iter();
            let now = open.filter_map(|view| view.regression).next().unwrap();
            let share = now.lost_blocks_per_hour / lost;
            assert!((0.8..1.2).contains(&share), "{share} of what is lost");
        }
    }
}

#[test]
fn an_edit_of_the_very_beginning_is_found_though_no_block_is_left() {
    let mut traffic = Traffic::new();
    traffic.run(300, 10, None);
    traffic.run(60, 10, Some((0, Cause::PerRequest)));
    let (_, regression) = traffic.only_event();
    assert_eq!((regression.block, regression.cause), (0, Cause::PerRequest));
}

#[test]
fn a_block_that_is_replaced_for_all_is_told_apart_and_costs_nothing_more() {
    let mut traffic = Traffic::new();
    traffic.run(300, 10, None);
    traffic.run(60, 10, Some((7, Cause::Replaced)));
    let (_, regression) = traffic.only_event();
    assert_eq!((regression.block, regression.cause), (7, Cause::Replaced));
    assert_eq!(regression.lost_blocks_per_hour, 0.0);
}

#[test]
fn an_edit_that_is_taken_back_ends_the_regression() {
    let mut traffic = Traffic::new();
    traffic.run(300, 10, None);
    traffic.run(120, 10, Some((7, Cause::PerRequest)));
    traffic.run(60, 10, None);
    assert!(matches!(traffic.events[..], [Event::Began { .. }, Event::Ended { .. }]));
}

#[test]
fn a_template_that_is_no_longer_used_and_one_that_begins_beside_it_are_no_edits() {
    let mut traffic = Traffic::new();
    traffic.run(300, 10, None);
    for _ in 0..600 {
        // Shares seven blocks with the first, which goes on.
        let (old, new) = (traffic.prompt(1, None), traffic.prompt(1, Some((7, Cause::Replaced))));
        traffic.observe(&old, 50);
        traffic.observe(&new, 50);
    }
    let other = |traffic: &mut Traffic| traffic.prompt(2, None);
    for _ in 0..1200 {
        let prompt = other(&mut traffic);
        traffic.observe(&prompt, 100);
    }
    assert_eq!(traffic.events, []);
}

#[test]
fn a_thousand_templates_that_come_and_go_raise_no_alarm() {
    let mut traffic = Traffic::new();
    // Each is used for some minutes, a few much, most little; one prompt in ten is of no template.
    for step in 0..120_000_u64 {
        let window = step / 400;
        let draw = traffic.random();
        let prompt = if draw.is_multiple_of(10) {
            let random = traffic.random();
            Traffic::chain((0..50).map(|at| random.wrapping_add(at)))
        } else {
            let rank = (traffic.random() % 64).min(traffic.random() % 64);
            // A rank's template changes every five to twelve minutes.
            let number = 10 + rank * 100 + (window + rank) / (8 + rank % 9);
            traffic.prompt(number, None)
        };
        traffic.observe(&prompt, 100);
    }
    assert_eq!(traffic.events, []);
    assert!(traffic.templates.spines.len() <= SPINES_MAX);
}

#[test]
fn short_prompts_are_not_looked_at_and_memory_stays_bounded() {
    let mut traffic = Traffic::new();
    let chain = Traffic::chain([1, 2, 3]);
    assert_eq!(traffic.templates.observe(&traffic.pool.clone(), &chain, 0, traffic.now), None);
    for number in 0..5000 {
        for _ in 0..3 {
            let prompt = traffic.prompt(number, None);
            traffic.observe(&prompt, 10);
        }
    }
    assert_eq!(traffic.templates.spines.len(), SPINES_MAX);
    let linked: usize = traffic.templates.by_first.values().map(Vec::len).sum();
    assert_eq!(linked, SPINES_MAX, "each spine is found by its first block, once");
}

#[test]
fn a_conversation_that_grows_stays_with_its_template() {
    let mut traffic = Traffic::new();
    let mut conversation: Vec<u64> = (0..40).collect();
    for turn in 0..400 {
        conversation.extend([1_000_000 + turn, 2_000_000 + turn]);
        let chain = Traffic::chain(conversation.iter().copied());
        traffic.observe(&chain, 500);
        let other = traffic.random();
        let chain = Traffic::chain((0..40).chain((0..10).map(|at| other.wrapping_add(at))));
        traffic.observe(&chain, 500);
    }
    assert_eq!(traffic.events, []);
}
