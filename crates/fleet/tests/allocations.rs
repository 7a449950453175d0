//! A decision allocates nothing.

mod shared;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use wicketgate_fleet::{Aim, Request, Scratch};

#[test]
fn a_decision_and_its_booking_allocate_nothing() {
    let fleet = shared::fleet(100, 16);
    let (mut scratch, mut rng) = (Scratch::default(), Pcg64Mcg::seed_from_u64(1));
    let blocks: Vec<u64> = (1..100).collect();
    let mut decide = |n: u64| {
        let request = Request {
            prompt_tokens: 2000,
            blocks: &blocks,
            affinity: n.is_multiple_of(2).then_some(n),
            aim: if n.is_multiple_of(3) { Aim::Cheapest } else { Aim::Soonest },
            ..Request::new("model-7-adapter-3")
        };
        let choice = fleet.choose(&request, &mut scratch, &mut rng, shared::NOW).unwrap();
        drop(choice.first.slot.book());
    };
    (0..100).for_each(&mut decide);
    let counted = allocation_counter::measure(|| (100..300).for_each(&mut decide));
    assert_eq!(counted.count_total, 0);
}
