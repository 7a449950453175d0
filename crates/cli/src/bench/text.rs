//! Numbers as people read them.

use lab::Change;

/// `-97 % (-98 to -96)`.
pub(crate) fn change(change: Option<Change>) -> String {
    let Some(change) = change else { return "-".to_owned() };
    match change.interval {
        None => format!("{} %", percent(change.mean)),
        Some((low, high)) => {
            format!("{} % ({} to {})", percent(change.mean), percent(low), percent(high))
        }
    }
}

/// A relative change in per cent, with its sign: `-97`, `+1.2`.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    // One digit more where rounding would say that nothing, or everything, is left.
    let is_fine = percent.abs() < 9.95 || percent <= -98.95;
    if is_fine { format!("{percent:+.1}") } else { format!("{percent:+.0}") }
}

/// * `ms`: milliseconds, not negative.
pub(crate) fn time(ms: f64) -> String {
    match ms {
        ..9.95 => format!("{ms:.1} ms"),
        ..999.5 => format!("{ms:.0} ms"),
        ..99_950.0 => format!("{:.2} s", ms / 1e3),
        _ => format!("{:.0} s", ms / 1e3),
    }
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_its_sign_and_interval() {
        assert_eq!(change(Some(Change { mean: -0.9971, interval: None })), "-99.7 %");
        let whole = Change { mean: -0.974, interval: Some((-0.98, -0.021)) };
        assert_eq!(change(Some(whole)), "-97 % (-98 to -2.1)");
        assert_eq!(change(Some(Change { mean: 0.5, interval: None })), "+50 %");
        assert_eq!(change(None), "-");
    }

    #[test]
    fn times_are_shown_in_a_unit_that_fits() {
        let shown = [8.42, 125.0, 1250.0, 125_000.0].map(time);
        assert_eq!(shown, ["8.4 ms", "125 ms", "1.25 s", "125 s"]);
    }
}
