//! Labels side by side that must not cover each other.

/// Places as near to the wanted ones as can be (least squares), `gap` apart and between `from` and
/// `to`; nearer together where there is no room. Same order as `wanted`.
pub(super) fn spread(wanted: &[f64], gap: f64, from: f64, to: f64) -> Vec<f64> {
    let count = wanted.len();
    if count == 0 {
        return Vec::new();
    }
    let gap = gap.min((to - from) / (count.max(2) - 1) as f64);
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    // With each moved up by the gaps below it, they must only not fall: pool adjacent violators.
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for (rank, at) in order.iter().enumerate() {
        pools.push((wanted[*at] - rank as f64 * gap, 1));
        while let [.., (before, many), (last, few)] = pools[..]
            && before / many as f64 >= last / few as f64
        {
            pools.truncate(pools.len() - 2);
            pools.push((before + last, many + few));
        }
    }
    let highest = to - (count - 1) as f64 * gap;
    let flat = pools.iter().flat_map(|(sum, many)| std::iter::repeat_n(sum / *many as f64, *many));
    let mut places = vec![0.0; count];
    for (rank, (at, place)) in order.into_iter().zip(flat).enumerate() {
        places[at] = place.clamp(from, highest.max(from)) + rank as f64 * gap;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn labels_that_fit_stay_where_they_are() {
        assert_eq!(spread(&[50.0, 10.0, 30.0], 15.0, 0.0, 100.0), [50.0, 10.0, 30.0]);
    }

    #[test]
    fn labels_that_meet_part_evenly_and_keep_their_order() {
        assert_eq!(spread(&[50.0, 50.0], 10.0, 0.0, 100.0), [45.0, 55.0]);
        assert_eq!(spread(&[3.0, 0.0, 90.0], 10.0, 0.0, 100.0), [10.0, 0.0, 90.0]);
    }

    #[test]
    fn labels_without_room_move_together_but_not_out() {
        let places = spread(&[10.0; 6], 10.0, 0.0, 30.0);
        assert!(places.windows(2).all(|pair| (pair[1] - pair[0] - 6.0).abs() < 1e-9));
        assert!(places.iter().all(|place| (0.0..=30.0 + 1e-9).contains(place)));
    }
}
