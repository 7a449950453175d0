//! How a server differs from its neighbours in ways that only a look at its pages shows.

/// Settings and facts that operators get wrong; the default is a server as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// vLLM's `--enable-prefix-caching`.
    pub prefix_caching: bool,
    /// Tokens in one KV block. `None`: the engine's own.
    pub block_size: Option<u32>,
    /// What `GET /version` says. `None`: the version that is simulated.
    pub version: Option<String>,
    /// Seconds that its clock is ahead of ours, in the `Date` of its metrics page. `None`: no `Date`.
    pub clock_ahead_s: Option<i64>,
    /// Metric families that are not on its page, by the start of their names.
    pub silent: Vec<String>,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            prefix_caching: true,
            block_size: None,
            version: None,
            clock_ahead_s: None,
            silent: Vec::new(),
        }
    }
}

impl Quirks {
    /// The page without the families that shall be missing.
    pub(crate) fn silence(&self, page: String) -> String {
        if self.silent.is_empty() {
            return page;
        }
        let is_silent = |line: &str| {
            let name = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE "));
            let name = name.unwrap_or(line);
            self.silent.iter().any(|silent| name.starts_with(silent.as_str()))
        };
        page.split_inclusive('\n').filter(|line| !is_silent(line)).collect()
    }

    /// The `Date` of an answer; `wall` in seconds since 1970.
    pub(crate) fn date(&self, wall: f64) -> Option<String> {
        let seconds = (wall as i64).saturating_add(self.clock_ahead_s?);
        let since = std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        Some(httpdate::fmt_http_date(std::time::UNIX_EPOCH + since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_family_leaves_neither_help_nor_series() {
        let page = "# HELP a_b x\n# TYPE a_b gauge\na_b{x=\"1\"} 2\n# HELP c y\nc 1\n".to_owned();
        let quirks = Quirks { silent: vec!["a_".to_owned()], ..Quirks::default() };
        assert_eq!(quirks.silence(page), "# HELP c y\nc 1\n");
    }
}
