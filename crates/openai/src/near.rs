//! Finds the names that somebody may have meant.

/// Up to `most` of `candidates` that are near `name`, nearest first.
///
/// Near: equal but for letter case and punctuation; the same after the last `/`; one contains the
/// other; or at most a third of the letters differ (edits, with neighbours swapped counting once).
pub fn near_names<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    let wanted = Spelling::of(name);
    let mut near: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter_map(|candidate| Some((wanted.distance(&Spelling::of(candidate))?, candidate)))
        .collect();
    near.sort_unstable();
    near.dedup();
    near.truncate(most);
    near.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Letters and digits of a name, in lower case; longer names are compared by their beginning.
struct Spelling {
    whole: Vec<u8>,
    /// Where the part after the last `/` begins.
    base: usize,
}

const COMPARED_BYTES_MAX: usize = 256;
/// A name shorter than this is not searched for inside others.
const CONTAINED_BYTES_MIN: usize = 3;

impl Spelling {
    fn of(name: &str) -> Self {
        let slash = name.rfind('/').unwrap_or(0);
        let (mut whole, mut base) = (Vec::with_capacity(name.len()), 0);
        for (at, byte) in name.bytes().enumerate().take(COMPARED_BYTES_MAX) {
            if at == slash {
                base = whole.len();
            }
            if byte.is_ascii_alphanumeric() || byte >= 0x80 {
                whole.push(byte.to_ascii_lowercase());
            }
        }
        Self { whole, base }
    }

    fn base(&self) -> &[u8] {
        self.whole.get(self.base..).unwrap_or_default()
    }

    /// Lower is nearer; `None`: not near.
    fn distance(&self, other: &Self) -> Option<usize> {
        let (base, other_base) = (self.base(), other.base());
        if base.is_empty() || other_base.is_empty() {
            return None;
        }
        if self.whole == other.whole {
            return Some(0);
        }
        if base == other_base {
            return Some(1);
        }
        let edits = edits(base, other_base).min(edits(&self.whole, &other.whole));
        if edits <= base.len().max(other_base.len()) / 3 {
            return Some(1 + edits);
        }
        let (short, long) =
            if base.len() < other_base.len() { (base, other_base) } else { (other_base, base) };
        let contained =
            short.len() >= CONTAINED_BYTES_MIN && memchr::memmem::find(long, short).is_some();
        contained.then_some(COMPARED_BYTES_MAX + edits)
    }
}

/// Optimal string alignment distance, three rows at a time.
fn edits(left: &[u8], right: &[u8]) -> usize {
    let mut before: Vec<usize> = vec![0; right.len() + 1];
    let mut above: Vec<usize> = (0..=right.len()).collect();
    let mut row = before.clone();
    for (i, l) in left.iter().enumerate() {
        row[0] = i + 1;
        for (j, r) in right.iter().enumerate() {
            let mut least = (above[j] + usize::from(l != r)).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *l == right[j - 1] && left[i - 1] == *r {
                least = least.min(before[j - 1] + 1);
            }
            row[j + 1] = least;
        }
        (before, above, row) = (above, row, before);
    }
    above[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = [
        "meta-llama/Llama-3.1-8B-Instruct",
        "meta-llama/Llama-3.1-70B-Instruct",
        "Qwen/Qwen3-32B",
        "sql-adapter",
        "mistral",
    ];

    fn near(name: &str) -> Vec<&'static str> {
        near_names(name, NAMES, 3)
    }

    #[test]
    fn a_slip_of_the_pen_finds_the_name() {
        assert_eq!(near("mistarl"), ["mistral"]);
        assert_eq!(near("sql_adaptor"), ["sql-adapter"]);
        assert_eq!(near("qwen/qwen3-32b"), ["Qwen/Qwen3-32B"]);
        assert_eq!(near("Qwen3-32B")[0], "Qwen/Qwen3-32B");
    }

    #[test]
    fn the_nearest_comes_first_and_no_more_than_asked_for() {
        assert_eq!(near("llama-3.1-8b-instruct"), [NAMES[0], NAMES[1]]);
        assert_eq!(near_names("llama-3.1-8b-instruct", NAMES, 1), [NAMES[0]]);
        assert_eq!(near_names("mistral", ["mistral", "mistral"], 3), ["mistral"]);
    }

    #[test]
    fn part_of_a_name_finds_it() {
        assert_eq!(near("qwen3"), ["Qwen/Qwen3-32B"]);
    }

    #[test]
    fn a_stranger_finds_nothing() {
        for name in ["gpt-4o", "", "/", "---", "x"] {
            assert!(near(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn swapped_neighbours_count_once() {
        assert_eq!(edits(b"abcd", b"acbd"), 1);
        assert_eq!(edits(b"", b"abc"), 3);
        assert_eq!(edits(b"kitten", b"sitting"), 3);
    }
}
