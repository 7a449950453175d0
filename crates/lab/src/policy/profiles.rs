//! Policies that are profiles of `sched`: ours as the product ships it, and the field's.

use sched::{Picker, Profile, Signals, Weights};

/// What the product decides by unless told otherwise: the default of `config`'s scheduler.
pub(super) fn wicketgate() -> Profile {
    Profile::from_weights(&Weights::default())
}

/// The field's 2/2/3, spelt out so that no default of ours can change it. It knows no saturation:
/// what is full is sent to all the same.
pub(super) fn reference() -> Profile {
    let weights = Weights {
        queue: 2.0,
        kv_cache: 2.0,
        prefix: 3.0,
        signals: Signals::Scraped,
        ..Weights::ZERO
    };
    Profile { saturation: None, ..Profile::from_weights(&weights) }
}

pub(super) fn random() -> Profile {
    Profile { picker: Picker::Random, ..Profile::round_robin() }
}
