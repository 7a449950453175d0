//! From values to places.

/// A scale: logarithmic for times, linear for shares and loads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    is_log: bool,
    /// Values at its two ends.
    domain: (f64, f64),
    /// Places of its two ends.
    range: (f64, f64),
}

impl Axis {
    pub(super) fn linear(domain: (f64, f64), range: (f64, f64)) -> Self {
        Self { is_log: false, domain, range }
    }

    /// Wide enough for all values, of which those that are not positive do not count.
    pub(super) fn log(values: impl Iterator<Item = f64>, range: (f64, f64)) -> Self {
        let positive = values.filter(|value| *value > 0.0 && value.is_finite());
        let bounds = positive.fold(None, |bounds: Option<(f64, f64)>, value| {
            let (low, high) = bounds.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        });
        let (low, high) = bounds.unwrap_or((1.0, 10.0));
        // At least a factor of two, so that equal values do not look far apart.
        let margin = (2.0 * low / high).max(1.0).sqrt().max(1.12);
        Self { is_log: true, domain: (low / margin, high * margin), range }
    }

    pub(super) fn at(&self, value: f64) -> f64 {
        let (low, high) = self.domain;
        let share = if self.is_log {
            (value.max(low) / low).ln() / (high / low).ln()
        } else {
            (value - low) / (high - low)
        };
        self.range.0 + share * (self.range.1 - self.range.0)
    }

    /// Values to mark. On a logarithmic axis 1, 2 and 5 of each decade, fewer where there are many
    /// decades and more within one.
    pub(super) fn ticks(&self) -> Vec<f64> {
        const TICKS_MAX: usize = 9;
        let (low, high) = self.domain;
        if !self.is_log {
            let step = [0.1, 0.2, 0.25, 0.5, 1.0, 2.0];
            let step = step.into_iter().find(|step| (high - low) / step <= 7.0).unwrap_or(5.0);
            let first = (low / step).ceil() as i64;
            let ticks = (first..).map(|place| place as f64 * step);
            return ticks.take_while(|tick| *tick <= high + 1e-9).collect();
        }
        const FINE: [f64; 10] = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        // The finest only where the next would leave an axis of one or two marks.
        let choices = [&FINE[..], &[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
        for marks in &choices[usize::from(high / low > 6.0)..] {
            let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
            let ticks =
                decades.flat_map(|decade| marks.iter().map(move |mark| mark * 10_f64.powi(decade)));
            let ticks: Vec<f64> = ticks.filter(|tick| (low..=high).contains(tick)).collect();
            if ticks.len() <= TICKS_MAX {
                return ticks;
            }
        }
        Vec::new()
    }
}

/// `200 ms`, `10 s`, as short as can be.
pub(super) fn time(ms: f64) -> String {
    if ms < 1000.0 { format!("{ms} ms") } else { format!("{} s", ms / 1000.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decade_takes_the_same_room_everywhere() {
        let axis = Axis::log([10.0, 1000.0].into_iter(), (300.0, 0.0));
        let (low, middle, high) = (axis.at(10.0), axis.at(100.0), axis.at(1000.0));
        assert!((low - middle - (middle - high)).abs() < 1e-9 && low > high);
        assert_eq!(axis.ticks(), [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]);
    }

    #[test]
    fn many_decades_get_fewer_marks_and_one_value_gets_some() {
        let wide = Axis::log([1.0, 1e6].into_iter(), (0.0, 1.0)).ticks();
        assert!(wide.len() <= 9 && wide.contains(&1e3), "{wide:?}");
        assert!(!Axis::log([130.0].into_iter(), (0.0, 1.0)).ticks().is_empty());
        assert!(!Axis::log(std::iter::empty(), (0.0, 1.0)).ticks().is_empty());
    }

    #[test]
    fn a_share_is_marked_in_round_steps() {
        let ticks = Axis::linear((0.0, 1.0), (0.0, 1.0)).ticks();
        assert_eq!(ticks.len(), 6);
        assert!(
            ticks.iter().zip([0.0, 0.2, 0.4, 0.6, 0.8, 1.0]).all(|(a, b)| (a - b).abs() < 1e-9)
        );
    }
}
