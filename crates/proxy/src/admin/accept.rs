//! In which form a client wants `/metrics`.

use crate::head::RequestHead;

/// Whether OpenMetrics text, which has exemplars, is wanted at least as much as plain text.
///
/// Source: RFC 9110, section 12.5.1. Prometheus asks for both, for OpenMetrics with the higher quality.
pub(super) fn wants_open_metrics(head: &RequestHead) -> bool {
    let fields = head.fields.iter();
    let accepted = fields
        .filter(|field| head.fields.name(field).eq_ignore_ascii_case(b"accept"))
        .filter_map(|field| std::str::from_utf8(head.fields.value(field)).ok());
    prefers_open_metrics(accepted)
}

fn prefers_open_metrics<'a>(accepted: impl Iterator<Item = &'a str>) -> bool {
    let (mut open, mut plain, mut others) = (None, None, None);
    for range in accepted.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let quality = parts.find_map(quality).unwrap_or(1.0);
        let place = match &*kind {
            "application/openmetrics-text" => &mut open,
            "text/plain" | "text/*" => &mut plain,
            "*/*" => &mut others,
            _ => continue,
        };
        *place = Some(place.map_or(quality, |so_far: f32| so_far.max(quality)));
    }
    let plain = plain.or(others).unwrap_or(0.0);
    open.is_some_and(|open| open > 0.0 && open >= plain)
}

fn quality(parameter: &str) -> Option<f32> {
    let (name, value) = parameter.split_once('=')?;
    let value = name.trim().eq_ignore_ascii_case("q").then_some(value)?;
    // What is no number is no wish.
    Some(value.trim().parse().ok().filter(|of| (0.0..=1.0).contains(of)).unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::prefers_open_metrics;

    #[test]
    fn open_metrics_are_for_those_who_want_them_most() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
            application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for accepted in
            [prometheus, "application/openmetrics-text", "Application/OpenMetrics-Text; Q=1, */*"]
        {
            assert!(prefers_open_metrics([accepted].into_iter()), "{accepted}");
        }
    }

    #[test]
    fn everybody_else_gets_plain_text() {
        for accepted in [
            "",
            "*/*",
            "text/plain",
            "text/plain, application/openmetrics-text;q=0.5",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=nan",
            "application/openmetrics-text;q=,text/html",
            "application/openmetrics-textual",
        ] {
            assert!(!prefers_open_metrics([accepted].into_iter()), "{accepted}");
        }
        assert!(!prefers_open_metrics(std::iter::empty()));
    }
}
