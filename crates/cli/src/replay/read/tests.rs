//! Files that are right, cut off, and wrong.

use std::path::Path;

use telemetry::recording::{Header, RecordingLine, Request, State, VERSION};

use super::{ReadError, Recording, read_part};

fn bytes(lines: &[RecordingLine]) -> Vec<u8> {
    let mut out = Vec::new();
    lines.iter().for_each(|line| line.format(&mut out));
    out
}

fn header(version: u32) -> RecordingLine {
    RecordingLine::Header(Header {
        version,
        recording: "a1".to_owned(),
        part: 0,
        started: "2026-11-29T12:00:00Z".to_owned(),
        block_tokens: 64,
        software: "wicketgate".to_owned(),
    })
}

fn request(at_us: u64) -> RecordingLine {
    RecordingLine::Request(Request { at_us, prompt_tokens: 100, ..Request::default() })
}

fn read(bytes: &[u8]) -> Result<Recording, ReadError> {
    read_part(Path::new("traffic.jsonl"), bytes)
}

#[test]
fn what_was_written_is_read() {
    let file = bytes(&[header(VERSION), RecordingLine::State(State::default()), request(7)]);
    let recording = read(&file).unwrap();
    assert_eq!((recording.states.len(), recording.requests[0].at_us), (1, 7));
    assert!(recording.notes.is_empty());
}

#[test]
fn a_last_line_that_is_cut_off_is_a_note_and_one_in_the_middle_an_error() {
    let mut file = bytes(&[header(VERSION), request(7), request(8)]);
    file.truncate(file.len() - 9);
    let recording = read(&file).unwrap();
    assert_eq!((recording.requests.len(), recording.notes.len()), (1, 1));
    file.extend_from_slice(b"\n");
    assert!(matches!(read(&file), Err(ReadError::Line { line: 3, .. })));
}

#[test]
fn what_is_no_recording_is_refused() {
    for text in ["", "{\"scenario\":\"uniform\"}\n", "apiVersion: v1\n", "\u{0}\u{1}"] {
        assert!(matches!(read(text.as_bytes()), Err(ReadError::NoRecording(_))), "{text:?}");
    }
    let newer = bytes(&[header(VERSION + 1)]);
    assert!(matches!(read(&newer), Err(ReadError::Version { .. })));
    let huge = RecordingLine::Request(Request { prompt_tokens: u32::MAX, ..Request::default() });
    let huge = bytes(&[header(VERSION), huge]);
    assert!(matches!(read(&huge), Err(ReadError::Tokens { line: 2, .. })));
    let late = bytes(&[header(VERSION), request(u64::MAX)]);
    assert!(matches!(read(&late), Err(ReadError::TooLate { line: 2, .. })));
}
