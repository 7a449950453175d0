//! Student's distribution.

/// The chance that a value of Student's distribution lies above `t`.
///
/// * `freedom`: degrees of freedom, at least 1.
pub(super) fn above(t: f64, freedom: f64) -> f64 {
    let share = freedom / (freedom + t * t);
    let tail = 0.5 * incomplete_beta(0.5 * freedom, 0.5, share);
    if t >= 0.0 { tail } else { 1.0 - tail }
}

/// The regularised incomplete beta function `I_x(a, b)`, by its continued fraction (Lentz), right to
/// about ten digits. Source: Abramowitz and Stegun 26.5.8.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // Beyond the mean the fraction converges from the other side.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let log_beta = log_gamma(a) + log_gamma(b) - log_gamma(a + b);
    let front = (a * x.ln() + b * (1.0 - x).ln() - log_beta).exp() / a;
    front / fraction(a, b, x)
}

fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TERMS_MAX: u32 = 500;
    let away_from_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let (mut value, mut c, mut d) = (1.0, 1.0, 0.0);
    for term in 1..=TERMS_MAX {
        let half = f64::from(term / 2);
        let numerator = if term % 2 == 0 {
            half * (b - half) * x / ((a + 2.0 * half - 1.0) * (a + 2.0 * half))
        } else {
            -(a + half) * (a + b + half) * x / ((a + 2.0 * half) * (a + 2.0 * half + 1.0))
        };
        d = 1.0 / away_from_zero(1.0 + numerator * d);
        c = away_from_zero(1.0 + numerator / c);
        value *= c * d;
        if (c * d - 1.0).abs() < 1e-12 {
            break;
        }
    }
    value
}

/// Logarithm of the gamma function of a positive number: Lanczos, g = 7, nine terms.
fn log_gamma(x: f64) -> f64 {
    const TERMS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let series = TERMS
        .iter()
        .zip(1_u32..)
        .fold(0.999_999_999_999_809_9, |sum, (term, at)| sum + term / (x + f64::from(at)));
    let base = x + 7.5;
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * base.ln() - base + series.ln()
}

#[cfg(test)]
mod tests {
    use super::above;

    #[test]
    fn the_tails_are_those_of_the_printed_table() {
        // Two-sided 95 % points of Student's distribution.
        for (freedom, t) in [
            (1.0, 12.706_205),
            (2.0, 4.302_653),
            (4.0, 2.776_445),
            (9.0, 2.262_157),
            (19.0, 2.093_024),
        ] {
            let tail = above(t, freedom);
            assert!((tail - 0.025).abs() < 1e-7, "{freedom}: {tail}");
            assert!((above(-t, freedom) - 0.975).abs() < 1e-7, "{freedom}");
        }
        assert!((above(0.0, 5.0) - 0.5).abs() < 1e-12);
        assert_eq!((above(f64::INFINITY, 5.0), above(f64::NEG_INFINITY, 5.0)), (0.0, 1.0));
    }
}
