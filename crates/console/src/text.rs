//! Text for terminals: nothing that steers one, numbers that fit.

use std::borrow::Cow;
use std::time::Duration;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Stands for a character that must not reach a terminal.
const REPLACED: char = '\u{fffd}';

/// A foreign text as a terminal may show it: control characters, and those that turn the direction of
/// writing, are replaced.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().any(steers) {
        Cow::Owned(text.chars().map(|c| if steers(c) { REPLACED } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || matches!(u32::from(c), 0xe0000..=0xe007f)
}

/// At most `width` columns of `text`; what is cut off shows as `…`.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let text = clean(text);
    if text.width() <= width {
        return text.into_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let columns = c.width().unwrap_or(0);
        if used + columns + 1 > width {
            break;
        }
        used += columns;
        out.push(c);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// A count or rate in at most five columns: `7`, `0.4`, `42`, `1.2k`, `35k`, `1.4M`.
pub(crate) fn short(number: f64) -> String {
    let number = if number.is_finite() { number.max(0.0) } else { 0.0 };
    for (unit, size) in [("G", 1e9), ("M", 1e6), ("k", 1e3)] {
        if number >= size * 0.9995 {
            let scaled = number / size;
            return if scaled < 9.95 {
                format!("{scaled:.1}{unit}")
            } else {
                format!("{scaled:.0}{unit}")
            };
        }
    }
    if number == 0.0 || number >= 9.95 { format!("{number:.0}") } else { format!("{number:.1}") }
}

/// A number of things: exact up to 999, then [`short`].
pub(crate) fn count(number: u64) -> String {
    if number < 1000 { number.to_string() } else { short(number as f64) }
}

/// A time as people read it: `850 µs`, `42 ms`, `1.3 s`, `2 m`.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() || s <= 0.0 => "0 ms".to_owned(),
        s if s < 0.000_009_95 => format!("{:.1} µs", s * 1e6),
        s if s < 0.000_999_5 => format!("{:.0} µs", s * 1e6),
        s if s < 0.009_95 => format!("{:.1} ms", s * 1e3),
        s if s < 0.999_5 => format!("{:.0} ms", s * 1e3),
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 99.5 => format!("{s:.0} s"),
        s if s < 5_970.0 => format!("{:.0} m", s / 60.0),
        s => format!("{:.0} h", s / 3600.0),
    }
}

/// [`time`] of a duration.
pub(crate) fn duration(time: Duration) -> String {
    self::time(time.as_secs_f64())
}

/// `0..=1` in per cent.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", share.clamp(0.0, 9.99) * 100.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_hostile_name_cannot_steer_the_terminal() {
        assert_eq!(
            clean("a\x1b[2Jb\x07\r\n\u{202e}c"),
            "a\u{fffd}[2Jb\u{fffd}\u{fffd}\u{fffd}\u{fffd}c"
        );
        assert_eq!(clean("übergröße-模型"), "übergröße-模型");
    }

    #[test]
    fn numbers_stay_short() {
        let cases = [
            (0.0, "0"),
            (0.44, "0.4"),
            (9.97, "10"),
            (999.4, "999"),
            (999.6, "1.0k"),
            (12_345.0, "12k"),
            (1.44e6, "1.4M"),
            (f64::NAN, "0"),
        ];
        for (number, text) in cases {
            assert_eq!(short(number), text);
        }
        let cases = [
            (0.0, "0 ms"),
            (0.000_85, "850 µs"),
            (0.0042, "4.2 ms"),
            (0.042, "42 ms"),
            (1.31, "1.3 s"),
            (75.0, "75 s"),
            (120.0, "2 m"),
            (7200.0, "2 h"),
        ];
        for (seconds, text) in cases {
            assert_eq!(time(seconds), text);
        }
    }

    proptest! {
        #[test]
        fn a_fitted_text_is_never_wider_than_asked_and_holds_no_control(text in any::<String>(), width in 0_usize..40) {
            let fitted = fit(&text, width);
            prop_assert!(fitted.width() <= width);
            prop_assert!(!fitted.chars().any(char::is_control));
        }

        #[test]
        fn short_numbers_fit_five_columns(number in 0.0..9e11_f64) {
            prop_assert!(short(number).len() <= 5, "{}", short(number));
        }
    }
}
