//! Values as people read them.

use monitoring::dashboards::Unit;

/// One value by itself.
pub(super) fn show(value: f64, unit: Unit) -> String {
    within(value, value, unit)
}

/// A value on an axis that ends at `most`, which decides how it is written.
pub(super) fn within(value: f64, most: f64, unit: Unit) -> String {
    match unit {
        Unit::Count => plain(value, most),
        Unit::Seconds if most < 1.0 => format!("{} ms", plain(value * 1000.0, most * 1000.0)),
        Unit::Seconds if most >= 120.0 => format!("{} min", plain(value / 60.0, most / 60.0)),
        Unit::Seconds => format!("{} s", plain(value, most)),
        Unit::Share => format!("{} %", plain(value * 100.0, most * 100.0)),
        Unit::RequestsPerSecond => format!("{} req/s", plain(value, most)),
        Unit::TokensPerSecond => format!("{} tok/s", plain(value, most)),
        Unit::PerSecond => format!("{} /s", plain(value, most)),
    }
}

fn plain(value: f64, most: f64) -> String {
    match most.abs() {
        large if large >= 1e6 => trimmed(value / 1e6, 2) + "M",
        large if large >= 1e4 => trimmed(value / 1e3, 1) + "k",
        large if large >= 100.0 => trimmed(value, 0),
        large if large >= 10.0 => trimmed(value, 1),
        small if small > 0.0 && small < 0.1 => {
            trimmed(value, (1.0 - small.log10().floor()).min(9.0) as usize)
        }
        _ => trimmed(value, 2),
    }
}

/// Without zeros that say nothing.
fn trimmed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => match text.trim_end_matches('0').trim_end_matches('.') {
            "-0" => "0".to_owned(),
            short => short.to_owned(),
        },
        false => text,
    }
}

/// The end of an axis: the next of 1, 2, 4, 6, 8 times a power of ten; 1 for nothing.
pub(super) fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0];
    steps.iter().map(|step| step * power).find(|step| *step >= value * 0.999).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_a_round_number_above_its_values() {
        for (value, end) in
            [(0.9, 1.0), (1.2, 2.0), (26.0, 40.0), (1.0, 1.0), (810.0, 1000.0), (0.0, 1.0)]
        {
            assert!((round_up(value) - end).abs() < 1e-9, "{value}: {}", round_up(value));
        }
    }

    #[test]
    fn values_are_written_with_the_digits_that_say_something() {
        for (value, unit, text) in [
            (0.0125, Unit::Seconds, "12.5 ms"),
            (180.0, Unit::Seconds, "3 min"),
            (0.5, Unit::Share, "50 %"),
            (12_340.0, Unit::TokensPerSecond, "12.3k tok/s"),
            (200.0, Unit::Count, "200"),
            (0.0042, Unit::Count, "0.0042"),
        ] {
            assert_eq!(show(value, unit), text);
        }
    }
}
