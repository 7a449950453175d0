//! Buckets as people look at them.

use crate::limiter::Refused;
use crate::name::BucketName;
use crate::standing::Gauge;

/// One bucket.
#[derive(Clone, Debug)]
pub struct BucketView {
    pub name: BucketName,
    pub in_flight: u32,
    /// The fullest first.
    pub meters: Vec<MeterView>,
}

/// One measure of it.
pub type MeterView = Gauge;

impl BucketView {
    /// Share of its fullest measure that is used, 0 to 1.
    pub fn used(&self) -> f64 {
        self.meters.first().map_or(0.0, Gauge::used)
    }
}

/// A rule that a request would come under.
#[derive(Clone, Debug)]
pub struct RulePreview {
    /// Position of the rule.
    pub rule: usize,
    pub bucket: BucketView,
    /// Why it would refuse the request, or would if it were no shadow.
    pub refused: Option<Refused>,
}

/// The buckets of which the largest share is used.
pub(crate) struct Fullest {
    views: Vec<BucketView>,
    most: usize,
}

impl Fullest {
    pub(crate) fn of(most: usize) -> Self {
        Self { views: Vec::new(), most }
    }

    pub(crate) fn note(&mut self, name: &BucketName, in_flight: u32, mut meters: Vec<MeterView>) {
        meters.sort_by(|a, b| b.used().total_cmp(&a.used()));
        self.views.push(BucketView { name: name.clone(), in_flight, meters });
        if self.views.len() >= 2 * self.most.max(32) {
            self.cut();
        }
    }

    pub(crate) fn take(mut self) -> Vec<BucketView> {
        self.cut();
        self.views
    }

    fn cut(&mut self) {
        self.views.sort_by(|a, b| b.used().total_cmp(&a.used()));
        self.views.truncate(self.most);
    }
}
