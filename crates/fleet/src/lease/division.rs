//! How a limit is divided by demand.

/// Whoever asks at all gets this part of an equal share at least.
const FLOOR: f64 = 0.25;

/// Max–min fair: nobody gets less than an equal part unless it asks for less, and what is left over goes to all in
/// proportion. The shares sum to `whole`, unless nobody asks.
///
/// * `demands`: parts of the limit, above 1 if more than all is asked for.
/// * `shares`: as long; overwritten.
pub(crate) fn divide(demands: &[f64], whole: f64, shares: &mut Vec<f64>) {
    shares.clear();
    let asking = demands.iter().filter(|demand| **demand > 0.0).count();
    let equal = whole / asking.max(1) as f64;
    let wish = |demand: f64| if demand > 0.0 { demand.max(FLOOR * equal) } else { 0.0 };
    shares.extend(demands.iter().map(|demand| wish(*demand)));
    let sum: f64 = shares.iter().sum();
    if sum <= 0.0 {
        return;
    }
    if sum <= whole {
        shares.iter_mut().for_each(|share| *share *= whole / sum);
        return;
    }
    let level = level(shares, whole);
    shares.iter_mut().for_each(|share| *share = share.min(level));
}

/// The level to which water rises: what is cut off there sums to `whole`.
fn level(wishes: &[f64], whole: f64) -> f64 {
    let mut sorted: Vec<f64> = wishes.iter().copied().filter(|wish| *wish > 0.0).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut left = whole;
    for (at, wish) in sorted.iter().enumerate() {
        let equal = left / (sorted.len() - at) as f64;
        if *wish > equal {
            return equal;
        }
        left -= wish;
    }
    f64::INFINITY
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn divided(demands: &[f64], whole: f64) -> Vec<f64> {
        let mut shares = Vec::new();
        divide(demands, whole, &mut shares);
        shares
    }

    #[test]
    fn who_asks_for_little_gets_it_and_the_others_the_same() {
        let shares = divided(&[0.1, 3.0, 2.0, 0.0], 1.0);
        assert!((shares[0] - 0.1).abs() < 1e-9);
        assert!((shares[1] - 0.45).abs() < 1e-9);
        assert_eq!(shares[1], shares[2]);
        assert_eq!(shares[3], 0.0);
    }

    #[test]
    fn who_alone_asks_gets_all() {
        assert_eq!(divided(&[0.0, 0.01, 0.0], 1.0), [0.0, 1.0, 0.0]);
        assert_eq!(divided(&[0.0, 0.0], 1.0), [0.0, 0.0]);
    }

    proptest! {
        #[test]
        fn shares_sum_to_the_whole_and_no_one_who_asks_starves(
            demands in prop::collection::vec(prop_oneof![Just(0.0), 0.0001..5.0_f64], 1..30),
            whole in 0.1..1.0_f64,
        ) {
            let shares = divided(&demands, whole);
            let asking = demands.iter().filter(|demand| **demand > 0.0).count();
            let sum: f64 = shares.iter().sum();
            if asking > 0 {
                prop_assert!((sum - whole).abs() < 1e-9, "{sum} of {whole}");
            }
            let equal = whole / asking.max(1) as f64;
            for (demand, share) in demands.iter().zip(&shares) {
                let floor = if *demand > 0.0 { demand.min(FLOOR * equal) } else { 0.0 };
                prop_assert!(*share >= floor - 1e-9, "{share} for {demand}");
            }
        }
    }
}
