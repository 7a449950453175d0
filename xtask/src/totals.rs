//! Reads how many tests ran from what the test runners print.

use crate::report::Tally;

/// Adds up libtest's lines: `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
pub(crate) fn libtest(output: &str) -> Tally {
    let mut tally = Tally::default();
    for line in output.lines() {
        let Some(counts) = line.trim().strip_prefix("test result: ") else { continue };
        tally += Tally {
            passed: before(counts, " passed"),
            failed: before(counts, " failed"),
            skipped: before(counts, " ignored"),
        };
    }
    tally
}

/// Reads pytest's last summary: `== 1 failed, 10 passed, 1 skipped in 3.21s ==`.
pub(crate) fn pytest(output: &str) -> Tally {
    let summary = output.lines().rev().find(|line| {
        line.contains(" in ")
            && [" passed", " failed", " error", " skipped"].iter().any(|word| line.contains(word))
    });
    let Some(summary) = summary else { return Tally::default() };
    Tally {
        passed: before(summary, " passed"),
        failed: before(summary, " failed") + before(summary, " error"),
        skipped: before(summary, " skipped") + before(summary, " deselected"),
    }
}

/// Reads the closing counts of Node's test runner: `# pass 12` or `ℹ pass 12`.
pub(crate) fn node(output: &str) -> Tally {
    let mut tally = Tally::default();
    for line in output.lines() {
        let Some(rest) = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ ")) else {
            continue;
        };
        let Some((word, count)) = rest.split_once(' ') else { continue };
        let Ok(count) = count.trim().parse::<u64>() else { continue };
        match word {
            "pass" => tally.passed += count,
            "fail" | "cancelled" => tally.failed += count,
            "skipped" | "todo" => tally.skipped += count,
            _ => {}
        }
    }
    tally
}

/// The number that stands right before `word`, else 0.
fn before(text: &str, word: &str) -> u64 {
    let Some(end) = text.find(word) else { return 0 };
    let digits = text[..end].rsplit(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_binary_of_a_cargo_test_run_is_counted() {
        let output = "\
running 3 tests
test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
   Doc-tests wicketgate-types
test result: FAILED. 12 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s
";
        assert_eq!(libtest(output), Tally { passed: 15, failed: 2, skipped: 1 });
    }

    #[test]
    fn errors_while_a_python_test_is_set_up_count_as_failed() {
        let output =
            "tests/x.py ..F [100%]\n===== 1 failed, 10 passed, 2 skipped, 1 error in 3.21s =====\n";
        assert_eq!(pytest(output), Tally { passed: 10, failed: 2, skipped: 2 });
        assert_eq!(pytest("10 passed in 3.21s\n"), Tally { passed: 10, failed: 0, skipped: 0 });
        assert_eq!(pytest("no tests ran in 0.01s\n"), Tally::default());
    }

    #[test]
    fn both_reporters_of_node_are_understood() {
        let expected = Tally { passed: 12, failed: 1, skipped: 3 };
        assert_eq!(
            node("# tests 16\n# pass 12\n# fail 1\n# cancelled 0\n# skipped 3\n# todo 0\n"),
            expected
        );
        assert_eq!(
            node("ℹ tests 16\nℹ pass 12\nℹ fail 1\nℹ cancelled 0\nℹ skipped 3\nℹ todo 0\n"),
            expected
        );
    }
}
