//! LoRA adapters as integers, so that the request path compares no strings.

/// A LoRA adapter, named by the hash of its name: FNV-1a, 64 bits.
///
/// Two names that collide would only share an affinity hint; names themselves are resolved by
/// string, so a collision can never send a request to a wrong model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AdapterId(pub u64);

impl AdapterId {
    pub fn of(name: &str) -> Self {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name.as_bytes() {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Self(hash)
    }
}
