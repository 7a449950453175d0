//! The engine model against measurements that others published: the data and its licence are in
//! `tests/data`. What the model misses is stated here as what it is; the constants were not fitted
//! to these tests. `CALIBRATION_POINTS=1` and `--nocapture` print every point.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an integration test, all of it test code"
)]

mod closed_loop;

use std::collections::BTreeMap;

use closed_loop::{Measured, tpot_ms};
use wicketgate_sim::engine::{Hardware, StepCosts, StepWork};

/// Relative errors of one hardware row.
#[derive(Default)]
struct Errors(Vec<f64>);

impl Errors {
    fn mean(&self) -> f64 {
        self.0.iter().map(|error| error.abs()).sum::<f64>() / self.0.len() as f64
    }

    fn bias(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    fn worst(&self) -> f64 {
        self.0.iter().map(|error| error.abs()).fold(0.0, f64::max)
    }

    fn print(&self, name: &str) {
        println!(
            "{name}: {} points, mean error {:.1} %, bias {:+.1} %, worst {:.1} %",
            self.0.len(),
            self.mean() * 100.0,
            self.bias() * 100.0,
            self.worst() * 100.0
        );
    }
}

fn fields(table: &str) -> impl Iterator<Item = Vec<&str>> {
    table.lines().skip(1).map(|line| line.split(',').collect())
}

fn silicon() -> Vec<Measured> {
    fields(include_str!("../data/silicon_h100.csv"))
        .map(|fields| Measured {
            hardware: Hardware::find(fields[0]).unwrap(),
            prompt_tokens: fields[1].parse().unwrap(),
            output_tokens: fields[2].parse().unwrap(),
            concurrency: fields[3].parse().unwrap(),
            tpot_ms: fields[5].parse().unwrap(),
        })
        .collect()
}

/// Errors of the simulated TPOT, by hardware row. `costs` may put others in the row's place.
fn tpot_errors(costs: impl Fn(&Hardware) -> Option<StepCosts>) -> BTreeMap<&'static str, Errors> {
    let mut errors: BTreeMap<_, Errors> = BTreeMap::new();
    for measured in silicon() {
        let Some(costs) = costs(measured.hardware) else { continue };
        let error = tpot_ms(&measured, costs) / measured.tpot_ms - 1.0;
        if std::env::var_os("CALIBRATION_POINTS").is_some() {
            println!("{measured} {:+.1} %", error * 100.0);
        }
        errors.entry(measured.hardware.name).or_default().0.push(error);
    }
    errors
}

/// Rows that do not come within 5 %, and by how much. 70B FP8 TP4: its fit states 2.8 %, yet played
/// by the scheduler it is 5.9 % off, nearly always slow, 19 % with 64 short prompts in flight and 15 %
/// with 64 long ones: cost of a sequence (84 µs) and prefill attention (scaled, not fitted) are too
/// high.
const TPOT_MISSES: [(&str, f64); 1] = [("llama-3.1-70b-fp8/4xh100", 0.06)];

#[test]
fn time_per_output_token_is_within_five_percent_of_the_silicon_that_the_constants_come_from() {
    let errors = tpot_errors(|hardware| Some(hardware.costs));
    let (mut all, mut points) = (0.0, 0);
    for (name, errors) in &errors {
        errors.print(name);
        let miss = TPOT_MISSES.iter().find(|(missing, _)| missing == name);
        let most = miss.map_or(0.05, |(_, mean)| *mean);
        assert!(errors.mean() <= most, "{name}: {:.3}", errors.mean());
        all += errors.mean() * errors.0.len() as f64;
        points += errors.0.len();
    }
    println!("all: {points} points, mean error {:.1} %", all / points as f64 * 100.0);
    assert!(points >= 100 && errors.len() == 8);
    assert!(all / points as f64 <= 0.05);
}

/// Constants fitted to the kernel table alone (least squares of the logarithms over its 46 steps
/// each): `t0 tw` ms, `tc` µs, `a k` ns. No measurement of a whole engine went into them.
const KERNELS: [(&str, [f64; 5]); 4] = [
    ("qwen3-32b/2xh100", [3.53, 10.644, 49.889, 1.484, 43.064]),
    ("qwen3-32b/4xh100", [8.318, 0.0, 27.272, 0.805, 19.826]),
    ("qwen3-32b/8xh100", [5.774, 0.0, 19.292, 0.345, 10.226]),
    ("llama-3.1-70b-fp8/8xh100", [7.641, 0.0, 32.917, 0.43, 7.285]),
];

/// The one host rule, on top of kernels.
fn with_host([t0, tw, tc, a, k]: [f64; 5]) -> StepCosts {
    StepCosts {
        overhead_ms: t0 + 1.2,
        weights_ms: tw,
        token_us: tc * 1.18,
        prefill_pair_ns: a,
        context_token_ns: k * 1.03,
        sequence_us: 40.0,
        experts: false,
    }
}

#[test]
fn kernels_and_the_host_rule_predict_silicon_they_were_not_fitted_to_within_ten_percent() {
    let kernels = |hardware: &Hardware| KERNELS.iter().find(|(name, _)| *name == hardware.name);
    let errors = tpot_errors(|hardware| Some(with_host(kernels(hardware)?.1)));
    assert_eq!(errors.len(), KERNELS.len());
    for (name, errors) in errors {
        errors.print(name);
        assert!(errors.mean() <= 0.10, "{name}: {:.3}", errors.mean());
    }
}

/// The row's constants without the host rule: kernels alone.
fn without_host(costs: StepCosts) -> StepCosts {
    StepCosts {
        overhead_ms: costs.overhead_ms - 1.2,
        token_us: costs.token_us / 1.18,
        context_token_ns: costs.context_token_ns / 1.03,
        sequence_us: costs.sequence_us - 40.0,
        ..costs
    }
}

/// Rows that come from silicon and not from the kernel table, and by how much they miss its prefill
/// steps (12.3, 9.1, 14.0 and 13.3 %): they are faster than the kernels, most for chunks of a few
/// tokens and, at TP8, for large ones. Their decode steps are within 8 %. The two rows of 235B are not
/// compared: the kernel table misses their silicon by half.
const PREFILL_MISSES: [(&str, f64); 4] = [
    ("qwen3-32b/2xh100", 0.13),
    ("qwen3-32b/4xh100", 0.10),
    ("qwen3-32b/8xh100", 0.15),
    ("llama-3.1-70b-fp8/8xh100", 0.14),
];

#[test]
fn single_steps_are_within_eight_percent_of_the_kernel_table() {
    let mut errors: BTreeMap<_, Errors> = BTreeMap::new();
    for fields in fields(include_str!("../data/kernel_steps_h100.csv")) {
        let hardware = Hardware::find(fields[0]).unwrap();
        let number = |at: usize| fields[at].parse::<u32>().unwrap();
        let mut work = StepWork::default();
        match fields[1] {
            "pre" => work.prefill(number(2), number(3)),
            _ => (0..number(2)).for_each(|_| work.decode(number(3))),
        }
        let measured: f64 = fields[4].parse().unwrap();
        let error = without_host(hardware.costs).step_ms(&work, 0.0) / measured - 1.0;
        errors.entry((fields[1].to_owned(), hardware.name)).or_default().0.push(error);
    }
    assert_eq!(errors.len(), 14);
    for ((phase, name), errors) in errors {
        errors.print(&format!("{phase} {name}"));
        let miss = PREFILL_MISSES.iter().find(|(missing, _)| *missing == name && phase == "pre");
        let most = miss.map_or(0.08, |(_, mean)| *mean);
        assert!(errors.mean() <= most, "{phase} {name}: {:.3}", errors.mean());
    }
}
