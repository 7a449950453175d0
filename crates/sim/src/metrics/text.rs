//! The text exposition format as the Python client writes it.

use std::fmt::Write;

use super::histogram::Histogram;

/// A page being written. Every series bears `labels` in addition to its own, sorted by name.
pub(super) struct Page {
    out: String,
    labels: Vec<(&'static str, String)>,
    /// Unix time of the `_created` series; `None`: the client writes none.
    created: Option<f64>,
}

pub(super) type Labels<'a> = &'a [(&'static str, &'a str)];

impl Page {
    pub(super) fn new(labels: &[(&'static str, &str)], created: Option<f64>) -> Self {
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self { out: String::with_capacity(64 * 1024), labels, created }
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    /// The labels that every series of the family has from here on.
    pub(super) fn relabel(&mut self, labels: &[(&'static str, &str)]) {
        self.labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    }

    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    pub(super) fn sample(&mut self, name: &str, labels: Labels<'_>, value: f64) {
        self.out.push_str(name);
        let mut all: Vec<(&str, &str)> =
            self.labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
        all.extend(labels);
        all.sort_unstable();
        for (at, (label, value)) in all.iter().enumerate() {
            self.out.push(if at == 0 { '{' } else { ',' });
            self.out.push_str(label);
            self.out.push_str("=\"");
            for c in value.chars() {
                match c {
                    '\\' => self.out.push_str("\\\\"),
                    '"' => self.out.push_str("\\\""),
                    '\n' => self.out.push_str("\\n"),
                    c => self.out.push(c),
                }
            }
            self.out.push('"');
        }
        if !all.is_empty() {
            self.out.push('}');
        }
        let _ = writeln!(self.out, " {}", float(value));
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }

    /// `name` without `_total`.
    pub(super) fn counter(&mut self, name: &str, help: &str, values: &[(Labels<'_>, f64)]) {
        let total = format!("{name}_total");
        self.family(&total, "counter", help);
        for (labels, value) in values {
            self.sample(&total, labels, *value);
        }
        if let Some(created) = self.created {
            let name = format!("{name}_created");
            self.family(&name, "gauge", help);
            for (labels, _) in values {
                self.sample(&name, labels, created);
            }
        }
    }

    pub(super) fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.family(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        for (bound, count) in histogram.cumulative() {
            self.sample(&bucket, &[("le", &float(bound))], count as f64);
        }
        self.sample(&format!("{name}_count"), &[], histogram.count() as f64);
        self.sample(&format!("{name}_sum"), &[], histogram.sum());
        if let Some(created) = self.created {
            let name = format!("{name}_created");
            self.family(&name, "gauge", help);
            self.sample(&name, &[], created);
        }
    }
}

/// A float as `prometheus_client` for Python writes it: `16.0`, `0.25`, `1.7959571e+09`, `+Inf`.
pub(super) fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if value != 0.0 && value.abs() < 1e-4 {
        let text = format!("{value:e}");
        let (mantissa, exponent) = text.split_once("e-").unwrap_or((&text, "0"));
        return format!("{mantissa}e-{exponent:0>2}");
    }
    let mut text = format!("{value}");
    if !text.contains('.') {
        text.push_str(".0");
    }
    match text.find('.') {
        Some(dot) if dot > 6 && value > 0.0 => {
            let digits = format!("{}.{}{}", &text[..1], &text[1..dot], &text[dot + 1..]);
            format!("{}e+{:02}", digits.trim_end_matches(['0', '.']), dot - 1)
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_the_python_client_does() {
        for (value, text) in [
            (0.0, "0.0"),
            (16.0, "16.0"),
            (0.017094017094017144, "0.017094017094017144"),
            (25298.0, "25298.0"),
            (999_999.0, "999999.0"),
            (1_000_000.0, "1e+06"),
            (1_073_741_824.0, "1.073741824e+09"),
            (1_795_958_453.165_397_2, "1.7959584531653972e+09"),
            (0.00001, "1e-05"),
            (f64::INFINITY, "+Inf"),
        ] {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn labels_are_sorted_and_escaped() {
        let mut page = Page::new(&[("model_name", "a\"b")], None);
        page.sample("x", &[("engine", "0")], 1.0);
        assert_eq!(page.finish(), "x{engine=\"0\",model_name=\"a\\\"b\"} 1.0\n");
    }
}
