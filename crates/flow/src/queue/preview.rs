//! What a request would meet, without offering it.

use types::{Saturation, Timestamp};

use super::{Forecast, Queue};
use crate::held::Held;
use crate::outcome::{Reason, Refused};
use crate::promises::Return;
use crate::work::Work;

/// What would become of a request that came now.
#[derive(Clone, Debug, PartialEq)]
pub enum Preview {
    /// It would be sent at once.
    Goes,
    /// * `makes_room`: another request would have to give way to it.
    Waits {
        forecast: Forecast,
        makes_room: bool,
    },
    Refused(Refused),
}

impl<T> Queue<T> {
    /// What [`pass`](Self::pass) and then [`offer`](Self::offer) would say. Nothing changes, and nothing is
    /// promised: [`Refused::retry_after`] is the wait that is expected, not spread as it is when it is told.
    pub fn preview(
        &self,
        work: &Work,
        saturation: impl Into<Saturation>,
        now: Timestamp,
    ) -> Preview {
        let now = now.max(self.now);
        let saturation = saturation.into().of(self.standing(&work.flow, now));
        let priority = work.flow.priority;
        if self.is_free(priority, saturation) {
            return Preview::Goes;
        }
        let config = self.config.band(priority);
        let held = Held::one(work.bytes, self.counted(config, work));
        let room = self
            .too_large(config, held)
            .or_else(|| self.hopeless(work, config, saturation, &Return::Fresh, now))
            .map_or_else(|| self.who_gives_way(work, config, held, false), Err);
        match room {
            Err(reason) => {
                let retry_after = match reason {
                    Reason::TooLarge { .. } => None,
                    _ => Some(self.told(work, now)),
                };
                let ahead = self.position(&work.flow);
                Preview::Refused(Refused { reason, retry_after, ahead })
            }
            Ok(one_of_its_band) => {
                let forecast = self.forecast(&work.flow, work.tokens, now);
                let whole = self.held.plus(held);
                let makes_room =
                    one_of_its_band.is_some() || self.config.limits.exceeded_by(whole).is_some();
                Preview::Waits { forecast, makes_room }
            }
        }
    }
}
