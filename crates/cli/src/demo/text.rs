//! Numbers as people read them.

use std::time::Duration;

/// `45 ms`, `3.21 s`, `12.4 s`.
pub(super) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 0.9995 {
        format!("{:.0} ms", seconds * 1e3)
    } else if seconds < 9.995 {
        format!("{seconds:.2} s")
    } else {
        format!("{seconds:.1} s")
    }
}

/// `1.3 ms`: small times, where fractions matter.
pub(super) fn late(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// `4 321`.
pub(super) fn count(count: f64) -> String {
    let digits = format!("{count:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// `37 %` of a share of 0.37.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// `−97 %`: how far `value` lies from `base`. Empty without a base.
pub(super) fn change(base: f64, value: f64) -> String {
    if base <= 0.0 {
        return String::new();
    }
    let percent = (value / base - 1.0) * 100.0;
    // One digit more where rounding would say that nothing is left.
    let digits = usize::from(percent <= -99.5);
    let sign = if percent < 0.0 { '−' } else { '+' };
    format!("{sign}{:.digits$} %", percent.abs())
}

/// Breaks a paragraph at spaces into lines of at most `width` characters; all but the first are
/// indented. A longer word keeps a line of its own.
pub(super) fn wrapped(paragraph: &str, width: usize) -> String {
    let (mut text, mut column) = (String::new(), 0);
    for word in paragraph.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            text.push_str("\n  ");
            column = 2;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_at_most() {
        let text = |millis| time(Duration::from_millis(millis));
        assert_eq!(text(45), "45 ms");
        assert_eq!(text(999), "999 ms");
        assert_eq!(text(3214), "3.21 s");
        assert_eq!(text(12_440), "12.4 s");
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!([count(7.4), count(4321.0), count(1_234_567.0)], ["7", "4 321", "1 234 567"]);
    }

    #[test]
    fn changes_carry_their_sign() {
        assert_eq!(change(200.0, 150.0), "−25 %");
        assert_eq!(change(200.0, 262.0), "+31 %");
        assert_eq!(change(10_000.0, 20.0), "−99.8 %");
        assert_eq!(change(0.0, 20.0), "");
    }

    #[test]
    fn lines_are_broken_at_spaces_before_they_are_too_long() {
        assert_eq!(wrapped("one two three", 7), "one two\n  three");
        assert_eq!(wrapped("overlong a", 5), "overlong\n  a");
    }
}
