//! Who of several controllers acts: an election over one Lease, as Kubernetes' own controllers hold it.
//!
//! Pure: the record and the time go in, what to write comes out. Clocks of machines are never compared: another's
//! lease has ended when its record has not changed for its whole duration by *our* clock.

#[cfg(test)]
mod tests;

use std::time::Duration;

use types::Timestamp;

/// How long what may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// A leader that is not heard of for so long is replaced.
    pub lease: Duration,
    /// A leader that could not renew for so long gives up: less than `lease`, so that two never act at once.
    pub renew_within: Duration,
    /// Pause between two looks.
    pub retry: Duration,
}

impl Timing {
    /// With the usual proportions: 15 s, 10 s, 2 s.
    pub fn of(lease: Duration) -> Self {
        Self { lease, renew_within: lease * 2 / 3, retry: lease * 2 / 15 }
    }
}

/// What a lease says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Empty: it was given back.
    pub holder: String,
    pub seconds: u64,
    /// Only ever compared for equality.
    pub renewed: String,
    pub transitions: u64,
}

/// What a look at the lease asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Write ourselves into it, with this many transitions.
    Write { transitions: u64 },
    /// Another leads.
    Wait,
}

/// One candidate's view.
#[derive(Debug)]
pub(crate) struct Election {
    identity: String,
    timing: Timing,
    /// The record as it was seen last, and since when it has been so.
    seen: Option<(Record, Timestamp)>,
    renewed: Option<Timestamp>,
}

impl Election {
    pub(crate) fn new(identity: String, timing: Timing) -> Self {
        Self { identity, timing, seen: None, renewed: None }
    }

    /// Looks at the lease. `None`: there is none yet.
    pub(crate) fn look(&mut self, record: Option<Record>, now: Timestamp) -> Step {
        let Some(record) = record else { return Step::Write { transitions: 0 } };
        let since = match &self.seen {
            Some((seen, since)) if *seen == record => *since,
            _ => now,
        };
        let is_ours = record.holder == self.identity;
        let lasts = Duration::from_secs(record.seconds);
        let is_over = record.holder.is_empty() || now.since(since) >= lasts;
        let transitions = record.transitions + u64::from(!is_ours);
        self.seen = Some((record, since));
        if is_ours || is_over { Step::Write { transitions } } else { Step::Wait }
    }

    /// What we asked for at `asked` was written. Whether we lead only since then.
    pub(crate) fn wrote(&mut self, asked: Timestamp) -> bool {
        let is_first = !self.leads(asked);
        self.renewed = Some(asked);
        is_first
    }

    /// Whether we may act. A candidate whose name stands in the lease from an earlier life may not before it has
    /// written it once itself.
    pub(crate) fn leads(&self, now: Timestamp) -> bool {
        self.renewed.is_some_and(|renewed| now.since(renewed) < self.timing.renew_within)
    }

    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    pub(crate) fn timing(&self) -> Timing {
        self.timing
    }
}
