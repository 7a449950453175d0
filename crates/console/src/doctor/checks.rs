//! From facts to findings. Each function judges one kind of thing and knows nothing of the others.

pub(super) mod adapters;
pub(super) mod endpoint;
pub(super) mod gateway;
pub(super) mod pool;
pub(super) mod process;
pub(super) mod signals;
pub(super) mod traffic;

/// Some names, so that a finding about a thousand endpoints stays a line.
fn some(names: impl Iterator<Item = String>) -> String {
    const SHOWN: usize = 4;
    let names: Vec<String> = names.collect();
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
