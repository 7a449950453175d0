//! "Did you mean": the known word that a misspelt one is nearest to.

/// The nearest of `known`, if it is near enough to be what was meant: the same letters in another
/// spelling (`queue_depth`), or one edit for every three letters.
pub(crate) fn closest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if word.chars().count() > 64 {
        return None;
    }
    let plain = |text: &str| text.replace(['_', '-', ' ', '.'], "").to_ascii_lowercase();
    let word = plain(word);
    let distance = |candidate: &str| edits(&word, &plain(candidate));
    let (nearest, edits) =
        known.map(|name| (name, distance(name))).min_by_key(|(_, edits)| *edits)?;
    let most = (word.len().max(nearest.len()) / 3).max(1);
    (edits <= most && edits < word.chars().count()).then_some(nearest)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal
/// string alignment).
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 5] = ["queueDepth", "scheduler", "engineType", "weights", "tls"];

    fn guess(word: &str) -> Option<&'static str> {
        closest(word, KNOWN.into_iter())
    }

    #[test]
    fn a_misspelt_word_finds_the_one_that_was_meant() {
        for (word, meant) in [
            ("queue_depth", "queueDepth"),
            ("QueueDepth", "queueDepth"),
            ("sheduler", "scheduler"),
            ("schedulers", "scheduler"),
            ("engintype", "engineType"),
            ("wieghts", "weights"),
            ("tsl", "tls"),
        ] {
            assert_eq!(guess(word), Some(meant), "{word}");
        }
    }

    #[test]
    fn a_word_that_is_like_none_gets_no_suggestion() {
        for word in ["", "x", "replicas", "completely-different", "ü", &"a".repeat(100_000)] {
            assert_eq!(guess(word), None, "{word}");
        }
    }
}
