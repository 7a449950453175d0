use super::*;
use crate::demo::fleet::Limits;
use crate::demo::load::Timetable;

fn plan(load: f64) -> Plan {
    Plan {
        load,
        seed: 1,
        limits: Limits { fleet: 100.0, knee: 25.0 },
        rate: load * 100.0,
        timetable: Timetable {
            warm_up: Duration::from_secs(4),
            measured: Duration::from_secs(12),
            drain: Duration::from_secs(2),
            time_scale: 1.0,
        },
        asks: Vec::new(),
    }
}

fn row(title: &'static str, millis: [u64; 3], tokens_per_second: f64) -> Row {
    let [p50, p95, p99] =
        millis.map(|ms| Percentile { value: Duration::from_millis(ms), at_least: false });
    Row {
        policy: "policy",
        title,
        measured: Measured {
            requests: 600,
            errors: 0,
            first_error: None,
            unanswered: 0,
            p50,
            p95,
            p99,
            tokens_per_second,
            send_late_p99: Duration::from_millis(1),
        },
        shares: [0.75, 0.25],
        cached: 0.5,
        step_late_p99: Duration::from_millis(1),
    }
}

fn line<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines().find(|line| line.contains(name)).unwrap_or_default()
}

#[test]
fn the_table_tells_the_change_against_the_first_policy() {
    let rows = [row("round robin", [100, 1000, 2000], 1000.0), row("ours", [50, 100, 200], 1500.0)];
    let table = table(&rows);
    assert!(line(&table, "TTFT P95").contains("100 ms    −90 %"), "{table}");
    assert!(line(&table, "output tokens/s").contains("+50 %"), "{table}");
    assert!(line(&table, "went to 2 × H100").contains("75 %"), "{table}");
    assert_eq!(line(&table, "no token by the end"), "");
}

#[test]
fn a_lower_bound_is_marked_and_compared_with_nothing() {
    let mut rows = [row("round robin", [100, 1000, 2000], 1.0), row("ours", [50, 100, 200], 1.0)];
    rows[1].measured.p99.at_least = true;
    rows[1].measured.unanswered = 7;
    let table = table(&rows);
    assert!(line(&table, "TTFT P99").contains("≥ 200 ms"), "{table}");
    assert!(!line(&table, "TTFT P99").contains('%'), "{table}");
    assert!(line(&table, "no token by the end").contains('7'), "{table}");
}

#[test]
fn a_rival_that_wins_is_named() {
    let others =
        [row("round robin", [100, 1000, 2000], 1000.0), row("least request", [50, 90, 99], 900.0)];
    let beaten =
        others.into_iter().chain([row("ours", [50, 100, 100], 1010.0)]).collect::<Vec<_>>();
    let remarks = remarks(&plan(0.5), &beaten).unwrap();
    assert!(remarks.contains("least request wins TTFT P95."), "{remarks}");
    let best = [row("round robin", [100, 100, 100], 1.0), row("ours", [100, 100, 100], 1.0)];
    assert_eq!(lost(&best), None);
}

#[test]
fn the_remarks_say_whether_the_rate_lies_beyond_round_robins_knee() {
    let rows = [row("round robin", [1, 1, 1], 1.0)];
    let over = remarks(&plan(0.5), &rows).unwrap();
    assert!(over.contains("overloaded beyond 25.0/s") && over.contains("±15 %"), "{over}");
    assert!(remarks(&plan(0.2), &rows).unwrap().contains("keeps up until 25.0/s"));
}

#[test]
fn a_run_that_could_not_keep_time_is_not_valid() {
    let mut late = row("ours", [1, 1, 1], 1.0);
    assert!(valid(&plan(0.5), &late));
    late.step_late_p99 = Duration::from_millis(9);
    assert_eq!(json(&plan(0.5), &late)["valid"], false);
    assert!(remarks(&plan(0.5), &[late]).unwrap().contains("NOT VALID"));
    let mut late = row("ours", [1, 1, 1], 1.0);
    late.measured.send_late_p99 = Duration::from_millis(9);
    assert!(!valid(&plan(0.5), &late));
}

#[test]
fn an_error_is_told_with_its_policy() {
    let mut failed = row("ours", [1, 1, 1], 1.0);
    failed.measured.first_error = Some("status 503".to_owned());
    let remarks = remarks(&plan(0.5), &[failed]).unwrap();
    assert!(remarks.contains("Errors with ours: the first was: status 503."), "{remarks}");
}
