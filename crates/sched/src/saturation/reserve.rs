//! What is kept for flows within their part and for higher bands, so that those who come find room.

use types::Standing;

use crate::Candidate;

/// How far a pool is filled by those who are beyond their part. For those within theirs in a lower band it
/// lies halfway between this and what the pool takes from all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reserve {
    /// They wait once a first token is expected to take so many times as long as on idle endpoints, for a
    /// prompt of mean length, in the mean over the pool. Above 1. Default 2.
    pub stretch: f32,
    /// Share of an endpoint's KV memory, and of [`Config::in_flight`](super::Config::in_flight), that they
    /// fill. Default 0.85.
    pub share: f32,
}

/// By so much more than the pool's mean the stretch of one endpoint may be.
const UNEVEN: f32 = 1.5;

impl Default for Reserve {
    fn default() -> Self {
        Self { stretch: 2.0, share: 0.85 }
    }
}

impl Reserve {
    /// Stretch of the pool at which those of this standing wait; `None`: they do not for that.
    pub fn stretch_max(&self, standing: Standing) -> Option<f32> {
        match standing {
            Standing::Within => None,
            Standing::Lower => Some(1.0 + 1.5 * (self.stretch - 1.0)),
            Standing::Beyond => Some(self.stretch),
        }
    }

    fn share_max(&self, standing: Standing) -> f32 {
        match standing {
            Standing::Within => 1.0,
            Standing::Lower => 0.5 * (1.0 + self.share),
            Standing::Beyond => self.share,
        }
    }

    /// Whether an endpoint that has room takes requests of this standing too.
    ///
    /// * `in_flight_max`: [`Config::in_flight`](super::Config::in_flight).
    pub(super) fn is_open(
        &self,
        candidate: &Candidate,
        in_flight_max: Option<u32>,
        standing: Standing,
    ) -> bool {
        let Some(stretch_max) = self.stretch_max(standing) else { return true };
        let share = self.share_max(standing);
        let in_flight = candidate.in_flight as f32;
        candidate.stretch() < UNEVEN * stretch_max
            && candidate.memory_share() < share
            && in_flight_max.is_none_or(|max| in_flight < share * max as f32)
    }
}

impl Candidate {
    /// How many times as long as on an idle endpoint the first token of a prompt of mean length is expected
    /// to take here. At least 1; 1 where nothing is learned of the speed.
    ///
    /// Answers that come whole do not tell when their prompts were computed: they count as being written.
    pub fn stretch(&self) -> f32 {
        let speed = &self.speed;
        if speed.prefill_trust() <= 0.0 {
            return 1.0;
        }
        let own = speed.prompt_tokens;
        let idle_ms = speed.base_ms + own * speed.prefill_ms_per_token;
        let ahead = (self.tokens_ahead - self.whole_tokens as f32).max(0.0);
        let writing = self.decoding + self.whole as f32;
        let ms = ahead * speed.prefill_ms_per_token
            + speed.interference_ms(writing, ahead + own)
            + self.loading as f32 * speed.adapter_load_ms;
        let stretch = 1.0 + ms / idle_ms.max(f32::MIN_POSITIVE);
        if stretch.is_nan() { 1.0 } else { stretch }
    }

    /// What one more prompt of mean length adds to [`Self::stretch`].
    pub(super) fn stretch_of_one(&self) -> f32 {
        let own_ms = self.speed.prompt_tokens * self.speed.prefill_ms_per_token;
        (own_ms / (self.speed.base_ms + own_ms).max(f32::MIN_POSITIVE)).max(0.01)
    }

    /// Share of the KV memory in use once what was sent and one more request have their place; 0 where the
    /// endpoint does not say.
    pub(super) fn memory_share(&self) -> f32 {
        let Some(used) = self.scraped.kv_usage.filter(|_| !self.stale) else { return 0.0 };
        let since = (self.in_flight as f32 - self.scraped.in_flight as f32).max(0.0);
        let each = self.speed.prompt_tokens + 0.5 * self.speed.output_tokens;
        // Prompts that are not computed yet have no place, or only a part of it.
        let coming = (since * each).max(self.prefill_tokens as f32) + each;
        used + self.kv_tokens_max.map_or(0.0, |most| coming / most)
    }
}
