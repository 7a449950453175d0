use prefix::BlockHash;
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};
use sched::Credit;

use super::{BLOCKS_MAX, CreditEntry, Kind, MESSAGE_BYTES_MAX, PromptEntry, Reader, Writer};

fn credits(messages: &[Vec<u8>]) -> Vec<CreditEntry> {
    let mut entries = Vec::new();
    for message in messages {
        assert_eq!(Kind::of(message[0]), Some(Kind::Credits));
        let mut reader = Reader::new(&message[1..]);
        assert_eq!(reader.number(), Some(50));
        while !reader.is_empty() {
            entries.push(reader.credit().unwrap());
        }
    }
    entries
}

fn prompts(messages: &[Vec<u8>]) -> Vec<PromptEntry> {
    let mut entries = Vec::new();
    for message in messages {
        assert_eq!(Kind::of(message[0]), Some(Kind::Prompts));
        let mut reader = Reader::new(&message[1..]);
        assert_eq!(reader.number(), Some(64));
        while !reader.is_empty() {
            entries.push(reader.prompt().unwrap());
        }
    }
    entries
}

fn entry() -> impl Strategy<Value = CreditEntry> {
    (any::<u64>(), any::<u32>(), any::<u32>(), any::<u64>(), any::<u64>()).prop_map(
        |(endpoint, requests, prefilling, prefill_tokens, tokens_ahead)| CreditEntry {
            endpoint,
            credit: Credit { requests, prefilling, prefill_tokens, tokens_ahead },
        },
    )
}

proptest! {
    #[test]
    fn credits_read_back_as_written_in_messages_that_fit(entries in vec(entry(), 0..200)) {
        let mut writer = Writer::credits(50, usize::MAX);
        for entry in &entries {
            prop_assert!(writer.credit(entry));
        }
        let messages = writer.finish();
        prop_assert!(messages.iter().all(|message| message.len() <= MESSAGE_BYTES_MAX));
        prop_assert_eq!(credits(&messages), entries);
    }

    #[test]
    fn prompts_read_back_as_written_in_messages_that_fit(
        entries in vec((any::<u64>(), any::<bool>(), vec(any::<u64>(), 1..BLOCKS_MAX)), 0..20),
    ) {
        let entries: Vec<_> = entries
            .into_iter()
            .map(|(endpoint, continues, hashes)| PromptEntry {
                endpoint,
                continues,
                hashes: hashes.into_iter().map(BlockHash).collect(),
            })
            .collect();
        let mut writer = Writer::prompts(64, usize::MAX);
        for entry in &entries {
            prop_assert!(writer.prompt(entry.endpoint, entry.continues, &entry.hashes));
        }
        let messages = writer.finish();
        prop_assert!(messages.iter().all(|message| message.len() <= MESSAGE_BYTES_MAX));
        prop_assert_eq!(prompts(&messages), entries);
    }

    #[test]
    fn nothing_that_a_message_may_hold_makes_reading_panic(bytes in vec(any::<u8>(), 0..300)) {
        let mut reader = Reader::new(&bytes);
        while !reader.is_empty() && reader.credit().is_some() {}
        let mut reader = Reader::new(&bytes);
        while !reader.is_empty() && reader.prompt().is_some() {}
    }
}

#[test]
fn a_full_flush_takes_no_more() {
    let mut writer = Writer::prompts(64, 2);
    let hashes = vec![BlockHash(1); BLOCKS_MAX];
    assert!(writer.prompt(1, false, &hashes));
    assert!(writer.prompt(1, false, &hashes));
    assert!(!writer.prompt(1, false, &hashes));
    assert_eq!(writer.finish().len(), 2);
}

#[test]
fn a_number_that_does_not_fit_is_refused() {
    let too_large = [0xff; 10];
    assert_eq!(Reader::new(&too_large).number(), None);
    let endless = [0x80; 20];
    assert_eq!(Reader::new(&endless).number(), None);
    let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    assert_eq!(Reader::new(&most).number(), Some(u64::MAX));
}

#[test]
fn a_prompt_shorter_than_it_says_is_refused() {
    let mut writer = Writer::prompts(64, 1);
    writer.prompt(1, false, &[BlockHash(1), BlockHash(2)]);
    let message = writer.finish().remove(0);
    let mut reader = Reader::new(&message[1..message.len() - 1]);
    reader.number();
    assert_eq!(reader.prompt(), None);
}
