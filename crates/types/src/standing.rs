//! Who has more than an equal part of what is in flight, and how full a pool is for whom.
//!
//! What was dispatched cannot be taken back: a flow that fills a pool because nobody else asks just then
//! fills it for whoever asks next. So it may use the others' parts, but not all of them: a pool can be full
//! for those beyond their part while those within theirs still find room.

/// A flow (what fairness is between) against an equal part of what its band has in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Standing {
    /// It has no more than that, or nobody else asked lately.
    #[default]
    Within,
    /// The same in a band above which another one asked lately.
    Lower,
    /// It has more, and somebody else asked lately.
    Beyond,
}

/// Share of a pool's capacity in use, by who asks: 0 idle, 1 and more full; what is no number counts as full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saturation {
    pub within: f32,
    pub lower: f32,
    pub beyond: f32,
}

impl Saturation {
    pub const FULL: Self = Self { within: 1.0, lower: 1.0, beyond: 1.0 };

    pub fn of(&self, standing: Standing) -> f32 {
        match standing {
            Standing::Within => self.within,
            Standing::Lower => self.lower,
            Standing::Beyond => self.beyond,
        }
    }

    /// Of whoever finds most room.
    pub fn least(&self) -> f32 {
        self.within.min(self.lower).min(self.beyond)
    }
}

/// The same for all.
impl From<f32> for Saturation {
    fn from(saturation: f32) -> Self {
        Self { within: saturation, lower: saturation, beyond: saturation }
    }
}
