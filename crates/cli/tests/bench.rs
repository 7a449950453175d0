//! `wicketgate bench routing` from outside: what scripts and people rely on.

use std::process::{Command, Output};

use serde_json::Value;

fn routing(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wicketgate"));
    command.args(["bench", "routing"]).args(args).output().expect("the binary runs")
}

fn text(args: &[&str]) -> String {
    let output = routing(args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a table or JSON is text")
}

const SMALL: [&str; 8] = [
    "--scenario",
    "mixed-8b,uniform",
    "--load",
    "0.2,0.4",
    "--duration",
    "4s",
    "--policy",
    "wicketgate,random,least-request",
];

#[test]
fn json_has_a_line_for_each_scenario_load_policy_and_seed_with_every_field() {
    let out = text(&[&SMALL[..], &["--seeds", "2", "--json"]].concat());
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2 * 2 * 3 * 2);
    let numbers = [
        "load",
        "seed",
        "ttft_p50_ms",
        "ttft_p95_ms",
        "ttft_p99_ms",
        "itl_p99_ms",
        "e2e_p99_ms",
        "goodput",
        "output_tokens_per_second",
        "prefix_hit_ratio",
        "max_over_mean_load",
        "failed",
    ];
    for line in &lines {
        assert!(line["scenario"].is_string() && line["policy"].is_string(), "{line}");
        for field in numbers {
            assert!(line[field].is_number(), "`{field}` in {line}");
        }
    }
    assert_eq!(
        (&lines[0]["policy"], &lines[0]["seed"], &lines[1]["seed"]),
        (&"wicketgate".into(), &1.into(), &2.into())
    );
}

#[test]
fn the_same_command_prints_the_same_bytes() {
    let args = [&SMALL[..], &["--seeds", "1", "--json"]].concat();
    assert_eq!(text(&args), text(&args));
}

#[test]
fn the_table_prints_capacity_knee_and_the_change_against_each_policy() {
    let out = text(&[&SMALL[..], &["--seeds", "3", "--endpoints", "3"]].concat());
    for expected in ["fleet capacity", "round robin's knee", "load 0.4:", "change P95", " to "] {
        assert!(out.contains(expected), "no `{expected}` in\n{out}");
    }
    assert!(out.contains("3 endpoints"), "{out}");
}

#[test]
fn a_name_that_does_not_exist_is_refused_and_help_lists_those_that_do() {
    for (flag, name) in [("--scenario", "mixed-9b"), ("--policy", "fastest"), ("--load", "0")] {
        let output = routing(&[flag, name]);
        assert_eq!(output.status.code(), Some(2), "{flag} {name}");
    }
    let help = text(&["--help"]);
    for name in ["mixed-8b", "burst-70b", "hot-prefix", "connection-sticky", "oracle-ttft"] {
        assert!(help.contains(name), "no `{name}` in\n{help}");
    }
}
