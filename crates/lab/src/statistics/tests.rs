//! Known cases.

use super::{Better, Paired, Word, bootstrap_mean, holm};

fn paired(ratios: &[f64]) -> Paired {
    Paired::of(ratios, &vec![1.0; ratios.len()]).unwrap()
}

#[test]
fn parity_is_claimed_only_where_the_whole_interval_lies_inside_the_margin() {
    let narrow = paired(&[1.010, 0.995, 1.005, 0.990, 1.002]);
    assert!(narrow.is_parity(0.05) && narrow.is_parity(0.02));
    // The same mean, but too wide to be sure.
    let wide = paired(&[1.09, 0.92, 1.06, 0.93, 1.01]);
    assert!(!wide.is_parity(0.05));
    // Narrow, but outside.
    let off = paired(&[1.060, 1.061, 1.062, 1.059, 1.060]);
    assert!(!off.is_parity(0.05) && off.is_parity(0.07));
    assert!(!paired(&[1.0, 1.0]).is_parity(0.05), "two seeds show nothing");
    assert!(paired(&[1.0; 3]).is_parity(0.02), "three that agree to the last digit do");
}

#[test]
fn a_change_is_called_by_its_size_in_every_seed() {
    assert_eq!(paired(&[1.0, 1.001, 0.999]).word(0.05), Some(Word::Parity));
    assert_eq!(paired(&[1.2, 0.9, 0.95]).word(0.05), Some(Word::Equal));
    assert_eq!(paired(&[0.7, 0.6, 0.79]).word(0.05), Some(Word::Clear));
    assert_eq!(paired(&[1.3, 1.21, 2.0]).word(0.05), Some(Word::Clear));
    assert_eq!(paired(&[0.7, 0.6, 0.81]).word(0.05), None, "one seed is below a fifth");
    assert_eq!(paired(&[0.5, 3.0, 0.5]).word(0.05), None, "one seed goes the other way");
}

#[test]
fn not_worse_is_a_one_sided_test_that_knows_which_way_is_better() {
    let p = |ratios: &[f64], better| paired(ratios).p_not_worse(better, 0.05).unwrap();
    let better = [0.90, 0.93, 0.91, 0.92];
    assert!(p(&better, Better::Lower) < 0.01);
    assert!(p(&better, Better::Higher) > 0.95);
    // Mean log 0, standard error 0.0577: t = -ln(1.05) / 0.0577 = -0.845, two degrees of freedom.
    let spread = [(0.1_f64).exp(), 1.0, (-0.1_f64).exp()];
    assert!((p(&spread, Better::Lower) - 0.2436).abs() < 5e-4, "{}", p(&spread, Better::Lower));
    assert_eq!(paired(&[0.5, 0.5]).p_not_worse(Better::Lower, 0.05), None);
}

#[test]
fn holm_multiplies_by_what_is_left_and_never_goes_down() {
    let close = |found: Vec<f64>, expected: &[f64]| {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
        }
    };
    close(holm(&[0.01, 0.04, 0.03]), &[0.03, 0.06, 0.06]);
    close(holm(&[0.005, 0.5, 0.01, 0.9]), &[0.02, 1.0, 0.03, 1.0]);
    close(holm(&[]), &[]);
}

#[test]
fn values_that_have_no_ratio_are_not_compared() {
    assert_eq!(Paired::of(&[1.0, 0.0], &[1.0, 1.0]), None);
    assert_eq!(Paired::of(&[1.0], &[0.0]), None);
    assert_eq!(Paired::of(&[], &[]), None);
}

#[test]
fn the_bootstrap_interval_of_a_mean_holds_it() {
    let (low, high) = bootstrap_mean(&[10.0, 12.0, 14.0, 11.0, 13.0]).unwrap();
    assert!(low > 10.0 && low < 12.0 && high > 12.0 && high < 14.0, "{low} {high}");
    assert_eq!(bootstrap_mean(&[1.0, 2.0]), None);
}
