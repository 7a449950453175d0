use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

use super::{Opener, SEAL_BYTES, Sealer};
use crate::Key;

fn key(name: &str, secret: &str) -> Key {
    Key::new(name, Some(secret.as_bytes()))
}

fn opened(by: Key, datagram: &[u8]) -> Option<Vec<u8>> {
    Opener::new(by).open(&mut datagram.to_vec()).map(|(_, message)| message.to_vec())
}

#[test]
fn a_peer_reads_what_a_peer_sealed() {
    let sealer = Sealer::new(&key("a", "s"), 7);
    let mut opener = Opener::new(key("a", "s"));
    for counter in 1..=3 {
        let mut datagram = sealer.seal(b"hello");
        assert_eq!(datagram.len(), 5 + SEAL_BYTES);
        let (origin, message) = opener.open(&mut datagram).unwrap();
        assert_eq!((origin.sender, origin.counter, message), (7, counter, b"hello".as_slice()));
    }
}

#[test]
fn another_deployment_or_another_key_reads_nothing() {
    let datagram = Sealer::new(&key("a", "s"), 7).seal(b"hello");
    assert!(opened(key("a", "s"), &datagram).is_some());
    assert!(opened(key("b", "s"), &datagram).is_none());
    assert!(opened(key("a", "t"), &datagram).is_none());
    assert!(opened(Key::new("a", None), &datagram).is_none());
}

#[test]
fn prompts_are_hashed_alike_under_the_same_key_only() {
    assert_eq!(key("a", "s").hashes(), key("a", "s").hashes());
    assert_ne!(key("a", "s").hashes(), key("a", "t").hashes());
    assert_ne!(key("a", "s").hashes(), key("b", "s").hashes());
}

#[test]
fn a_key_does_not_show_in_logs() {
    assert_eq!(format!("{:?}", key("a", "hush")), "Key { is_secret: true, .. }");
}

proptest! {
    #[test]
    fn no_bytes_from_outside_open_or_panic(mut bytes in vec(any::<u8>(), 0..200)) {
        prop_assert!(Opener::new(key("a", "s")).open(&mut bytes).is_none());
        if let Some(first) = bytes.first_mut() {
            *first = super::VERSION;
        }
        prop_assert!(Opener::new(key("a", "s")).open(&mut bytes).is_none());
    }

    #[test]
    fn a_datagram_with_one_bit_changed_does_not_open(message in vec(any::<u8>(), 0..60), bit in any::<u16>()) {
        let mut datagram = Sealer::new(&key("a", "s"), 7).seal(&message);
        prop_assert_eq!(opened(key("a", "s"), &datagram), Some(message));
        let bit = usize::from(bit) % (datagram.len() * 8);
        datagram[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(opened(key("a", "s"), &datagram).is_none());
    }
}
