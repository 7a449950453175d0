//! What one request holds of the limits, from its head to its end.

use std::sync::Arc;

use crate::bucket::{Bucket, Part};
use crate::moment::Moment;
use crate::standing::Standing;
use crate::terms::Cost;

/// What a request has taken. Dropped without [`Self::settle`], its places are free again and its
/// reservation stands as what it used.
#[derive(Debug, Default)]
pub struct Permit {
    pub(crate) holds: Vec<Hold>,
    pub(crate) arrived: Moment,
    pub(crate) reserved: Moment,
    pub(crate) cost: Cost,
}

/// A bucket that the request is under, and what it has of it.
#[derive(Debug)]
pub(crate) struct Hold {
    /// Position of its rule.
    pub(crate) rule: usize,
    pub(crate) is_shadow: bool,
    pub(crate) bucket: Arc<Bucket>,
    /// Counted as a request, in a place.
    pub(crate) has_count: bool,
    pub(crate) has_tokens: bool,
    /// A shadow rule would have refused it: in earnest it would take nothing.
    pub(crate) is_passed_over: bool,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// `false`: no endpoint ever saw it through our fault, so it does not count as a request.
    pub counts: bool,
    /// `None`: nobody knows; then the reservation stands.
    pub tokens: Option<Cost>,
}

/// What was booked on a rule, by [`Permit::settle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Booked {
    pub rule: usize,
    pub reserved: Cost,
    pub used: Cost,
}

impl Permit {
    /// What the request is expected to use.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Whether any rule that refuses is for this request.
    pub fn is_limited(&self) -> bool {
        self.holds.iter().any(|hold| !hold.is_shadow)
    }

    /// The tightest limits, shadow rules aside.
    pub fn standing(&self, moment: Moment) -> Standing {
        let mut standing = Standing::default();
        for hold in self.holds.iter().filter(|hold| !hold.is_shadow) {
            hold.bucket.gauges(moment, |gauge| standing.note(gauge));
        }
        standing
    }

    /// Ends the request: corrects what was reserved, frees its places. Only the first call does anything.
    ///
    /// * `book`: told of each rule with tokens.
    pub fn settle(&mut self, spent: Spent, moment: Moment, mut book: impl FnMut(Booked)) {
        let used = spent.tokens.unwrap_or(self.cost);
        for hold in &mut self.holds {
            if std::mem::take(&mut hold.has_tokens) {
                hold.bucket.settle(self.cost, used, self.reserved, moment);
                book(Booked { rule: hold.rule, reserved: self.cost, used });
            }
            if std::mem::take(&mut hold.has_count) {
                if !spent.counts {
                    hold.bucket.uncount(self.arrived);
                }
                let took = moment.now.since(self.arrived.now);
                hold.bucket.leave(spent.counts.then_some(took));
            }
        }
    }

    /// Gives back what was taken in this step, after another rule refused.
    pub(crate) fn undo(&mut self, part: Part, moment: Moment) {
        for hold in &mut self.holds {
            if part != Part::Count && std::mem::take(&mut hold.has_tokens) {
                hold.bucket.settle(self.cost, Cost::default(), self.reserved, moment);
            }
            // A request that is refused takes none of any rule's.
            if std::mem::take(&mut hold.has_count) {
                hold.bucket.uncount(self.arrived);
                hold.bucket.leave(None);
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        for hold in self.holds.iter().filter(|hold| hold.has_count) {
            hold.bucket.leave(None);
        }
    }
}
