use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use types::{ModelName, Timestamp};

use super::*;
use crate::metrics::Counter;

fn settings(path: &Path, rotate_bytes: u64, files_max: u32) -> Settings {
    let software = "wicketgate test".to_owned();
    Settings { path: path.to_owned(), rotate_bytes, files_max, block_tokens: 64, software }
}

fn sample(pool: &str, adapter: Option<&str>, block_hashes: &[u64]) -> Sample {
    Sample {
        request: Request {
            pool: pool.to_owned(),
            prompt_tokens: 200,
            ttft_ms: Some(12.5),
            outcome: "ok".to_owned(),
            ..Request::default()
        },
        block_hashes: block_hashes.to_vec(),
        adapter: adapter.map(ModelName::new),
    }
}

fn read(path: &Path) -> Vec<RecordingLine> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| RecordingLine::parse(line.as_bytes()).unwrap()).collect()
}

fn requests(lines: &[RecordingLine]) -> Vec<&Request> {
    lines
        .iter()
        .filter_map(|line| match line {
            RecordingLine::Request(request) => Some(request),
            _ => None,
        })
        .collect()
}

fn pool(name: &str) -> PoolState {
    PoolState { name: name.to_owned(), policy: "weighted".to_owned(), ..PoolState::default() }
}

#[test]
fn a_recording_reads_back_with_numbers_in_place_of_hashes_and_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traffic.jsonl");
    let recorder = Recorder::open(settings(&path, 1 << 20, 4), Arc::default()).unwrap();
    recorder.state(vec![pool("chat")], Timestamp::ZERO);
    recorder.request(sample("chat", None, &[7, 8, 9]));
    recorder.request(sample("chat", Some("sql"), &[7, 8, 100]));
    recorder.request(sample("chat", Some("legal"), &[]));
    recorder.request(sample("other", Some("legal"), &[100]));
    drop(recorder);

    let lines = read(&path);
    let RecordingLine::Header(header) = &lines[0] else { panic!("{lines:?}") };
    assert_eq!((header.version, header.part, header.block_tokens), (VERSION, 0, 64));
    assert!(matches!(&lines[1], RecordingLine::State(state) if state.pools[0].name == "chat"));
    let found: Vec<_> = requests(&lines)
        .iter()
        .map(|request| (request.model, request.block_numbers().collect::<Vec<_>>()))
        .collect();
    assert_eq!(
        found,
        [(0, vec![0, 1, 2]), (1, vec![0, 1, 3]), (2, vec![]), (1, vec![3])],
        "adapters are numbered by pool"
    );
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("sql") && !text.contains("legal"), "{text}");
}

#[test]
fn only_its_owner_may_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traffic.jsonl");
    drop(Recorder::open(settings(&path, 1 << 20, 4), Arc::default()).unwrap());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_file_that_is_there_is_kept_and_the_oldest_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traffic.jsonl");
    let dropped = Arc::new(Counter::default());
    for _ in 0..4 {
        // Each recorder finds the file of the one before it.
        let recorder = Recorder::open(settings(&path, 1000, 3), dropped.clone()).unwrap();
        recorder.state(vec![pool("chat")], Timestamp::ZERO);
        recorder.request(sample("chat", None, &[1]));
    }
    let names = |folder: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names(folder.path()), ["traffic.jsonl", "traffic.jsonl.1", "traffic.jsonl.2"]);
    assert_eq!(dropped.get(), 0);
}

#[test]
fn every_file_of_a_recording_begins_with_header_and_state_and_goes_on_counting() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traffic.jsonl");
    // The writer flushes at 256 KiB, so some thousand requests fill more than one file.
    let recorder = Recorder::open(settings(&path, 300 << 10, 9), Arc::default()).unwrap();
    recorder.state(vec![pool("chat")], Timestamp::ZERO);
    for number in 0..4000 {
        recorder.request(sample("chat", None, &[number]));
    }
    drop(recorder);
    let (newest, older) = (read(&path), read(&folder.path().join("traffic.jsonl.1")));
    for lines in [&newest, &older] {
        assert!(matches!(lines[0], RecordingLine::Header(_)));
        assert!(matches!(lines[1], RecordingLine::State(_)));
    }
    let (RecordingLine::Header(later), RecordingLine::Header(earlier)) = (&newest[0], &older[0])
    else {
        panic!("both begin with a header");
    };
    assert_eq!(later.recording, earlier.recording);
    assert_eq!(later.part, earlier.part + 1);
    assert_eq!(requests(&newest).last().unwrap().blocks, [(3999, 1)]);
    let size = std::fs::metadata(folder.path().join("traffic.jsonl.1")).unwrap().len();
    assert!(size <= 300 << 10, "{size}");
}

#[test]
fn a_recording_does_not_replace_what_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Recorder::open(settings(folder.path(), 1 << 20, 4), Arc::default()).is_err());
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("/nonexistent", &link).unwrap();
    assert!(Recorder::open(settings(&link, 1 << 20, 4), Arc::default()).is_err());
}

#[test]
fn a_reader_accepts_fields_of_later_versions_and_refuses_half_a_line() {
    let line = br#"{"request":{"at_us":5,"pool":"chat","model":0,"route":"chat_completions","stream":true,"prompt_tokens":9,"blocks":[[0,2],[7,1]],"matched_blocks":0,"attempts":1,"duration_ms":3.5,"status":200,"outcome":"ok","later":{"x":1}}}"#;
    let RecordingLine::Request(request) = RecordingLine::parse(line).unwrap() else {
        panic!("a request")
    };
    assert_eq!(request.block_numbers().collect::<Vec<_>>(), [0, 1, 7]);
    assert_eq!(request.endpoint, None);
    assert!(RecordingLine::parse(&line[..line.len() / 2]).is_err());
}
