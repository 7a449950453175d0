//! A cluster's gateway, as the document names it.

use std::time::Duration;

use types::{Label, MemberName, Region};

use crate::shaping::PriceSheet;

/// A member's place in the fleet's table; another one after each new document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u16);

/// A set of labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Vec<Label>);

/// A cluster's gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub name: MemberName,
    pub region: Region,
    /// What policies may ask for: residency, contracts.
    pub labels: Labels,
    /// `None`: what its heartbeats say, else nothing is known and the member is the dearest.
    pub prices: Option<PriceSheet>,
    /// Of its power, g CO₂ for each kWh; heartbeats that tell it win.
    pub carbon: Option<f32>,
    /// Multiplies what it can do when requests are dealt by capacity; 1 is usual, 0 is a spare that gets only what
    /// nobody else can take.
    pub weight: f32,
    /// Round trip until one was measured. `None`: 1 ms in the router's region, else 80 ms.
    pub round_trip: Option<Duration>,
}

impl Labels {
    pub const NONE: Self = Self(Vec::new());

    pub fn new(labels: impl IntoIterator<Item = Label>) -> Self {
        let mut labels: Vec<Label> = labels.into_iter().collect();
        labels.sort_unstable();
        labels.dedup();
        Self(labels)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Label> {
        self.0.iter()
    }

    /// Whether all of `wanted` are here.
    pub fn has_all(&self, wanted: &Self) -> bool {
        wanted.0.iter().all(|label| self.0.binary_search(label).is_ok())
    }
}

impl Member {
    /// With the name and region, and nothing known of it else.
    pub fn new(name: &str, region: &str) -> Self {
        Self {
            name: name.into(),
            region: region.into(),
            labels: Labels::default(),
            prices: None,
            carbon: None,
            weight: 1.0,
            round_trip: None,
        }
    }
}
