//! From requests to the file, by way of a queue and a thread.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use types::{ModelName, Timestamp};

use super::blocks::Numbers;
use super::files::Files;
use super::queue::{Event, Queue};
use super::{Header, PoolState, RecordingLine, Request, State, VERSION};
use crate::clock;
use crate::metrics::Counter;

/// What waits for the writer, in bytes: 4,000 requests with prompts of 100,000 tokens.
const QUEUE_BYTES_MAX: usize = 64 << 20;
/// Longest wait for the last lines when the recorder is dropped while the disk is stuck.
const CLOSE_WAIT: Duration = Duration::from_secs(1);
/// Bytes that are written at once.
const WRITE_BYTES: usize = 256 << 10;

/// Where to record, and how much.
#[derive(Clone, Debug)]
pub struct Settings {
    pub path: PathBuf,
    /// Size at which the next file begins.
    pub rotate_bytes: u64,
    /// Files in all, at least 1: the newest, `.1`, `.2`, …; the oldest is deleted.
    pub files_max: u32,
    /// See [`Header::block_tokens`].
    pub block_tokens: u32,
    /// See [`Header::software`].
    pub software: String,
}

/// A request as the gateway knows it; the writer puts numbers in place of hashes and names.
#[derive(Debug)]
pub struct Sample {
    /// Without `model` and `blocks`.
    pub request: Request,
    /// Hashes of the prompt's full blocks under a key that no client knows.
    pub block_hashes: Vec<u64>,
    /// The adapter that it names; `None` for the base model.
    pub adapter: Option<ModelName>,
}

/// Writes a recording. Dropping it writes what is queued.
#[derive(Debug)]
pub struct Recorder {
    started: Timestamp,
    queue: Arc<Queue>,
}

impl Recorder {
    /// Begins a recording at `settings.path`, readable by its owner alone, and starts the writer
    /// thread. A file that is there already is kept as `.1`. Lines that are lost are counted in
    /// `dropped` ([`crate::GatewayMetrics::recording_dropped_lines`]).
    ///
    /// # Errors
    /// When the file cannot be created or the thread not started.
    pub fn open(settings: Settings, dropped: Arc<Counter>) -> io::Result<Self> {
        let Settings { path, rotate_bytes, files_max, block_tokens, software } = settings;
        let header = Header {
            version: VERSION,
            recording: random_id(),
            part: 0,
            started: clock::rfc3339(clock::wall()),
            block_tokens,
            software,
        };
        let started = clock::now();
        let files = Files::create(path, rotate_bytes, files_max)?;
        let queue = Arc::new(Queue::new(QUEUE_BYTES_MAX, Arc::clone(&dropped)));
        let mut writer = Writer::begin(header, files)?;
        let source = Arc::clone(&queue);
        std::thread::Builder::new()
            .name("recording".into())
            .spawn(move || source.drain(|events| writer.write(events, &dropped)))?;
        Ok(Self { started, queue })
    }

    /// Microseconds since the recording's start; 0 for what was before.
    pub fn at_us(&self, at: Timestamp) -> u64 {
        u64::try_from(at.since(self.started).as_micros()).unwrap_or(u64::MAX)
    }

    /// Queues a request that has ended. Never waits.
    pub fn request(&self, sample: Sample) {
        self.queue.push(Event::Request(Box::new(sample)));
    }

    /// Queues how the pools stand. Never waits.
    pub fn state(&self, pools: Vec<PoolState>, now: Timestamp) {
        let state = State { at_us: self.at_us(now), dropped: 0, pools };
        self.queue.push(Event::State(state));
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.queue.close(CLOSE_WAIT);
    }
}

/// 64 random bits as hexadecimal digits, from the standard library's seeds of hash maps: they need
/// only differ from recording to recording.
fn random_id() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// Makes lines of events and puts them into files.
struct Writer {
    header: Header,
    files: Files,
    numbers: Numbers,
    /// By pool.
    adapters: HashMap<String, Vec<ModelName>>,
    /// Stands again at the beginning of each file.
    state: Option<State>,
    lines: Vec<u8>,
    lines_count: u64,
}

impl Writer {
    fn begin(header: Header, mut files: Files) -> io::Result<Self> {
        let mut lines = Vec::new();
        RecordingLine::Header(header.clone()).format(&mut lines);
        files.write(&lines)?;
        lines.clear();
        Ok(Self {
            header,
            files,
            numbers: Numbers::default(),
            adapters: HashMap::new(),
            state: None,
            lines,
            lines_count: 0,
        })
    }

    fn write(&mut self, events: &mut Vec<Event>, dropped: &Counter) {
        for event in events.drain(..) {
            let line = match event {
                Event::Request(sample) => RecordingLine::Request(self.request(*sample)),
                Event::State(state) => {
                    let state = State { dropped: dropped.get(), ..state };
                    self.state = Some(state.clone());
                    RecordingLine::State(state)
                }
            };
            line.format(&mut self.lines);
            self.lines_count += 1;
            if self.lines.len() >= WRITE_BYTES {
                self.flush(dropped);
            }
        }
        self.flush(dropped);
    }

    fn request(&mut self, sample: Sample) -> Request {
        let Sample { mut request, block_hashes, adapter } = sample;
        request.blocks = self.numbers.runs(&block_hashes);
        request.model = adapter.map_or(0, |name| {
            let known = self.adapters.entry(request.pool.clone()).or_default();
            let at = known.iter().position(|other| *other == name).unwrap_or_else(|| {
                known.push(name);
                known.len() - 1
            });
            u32::try_from(at + 1).unwrap_or(u32::MAX)
        });
        request
    }

    /// Writes the lines that have gathered; what cannot be written is dropped and counted.
    fn flush(&mut self, dropped: &Counter) {
        if self.lines.is_empty() {
            return;
        }
        let written = self.make_room().and_then(|()| self.files.write(&self.lines));
        if written.is_err() {
            dropped.add(self.lines_count);
        }
        self.lines.clear();
        self.lines_count = 0;
    }

    fn make_room(&mut self) -> io::Result<()> {
        if !self.files.is_full_for(self.lines.len()) {
            return Ok(());
        }
        self.files.rotate()?;
        self.header.part += 1;
        let mut beginning = Vec::new();
        RecordingLine::Header(self.header.clone()).format(&mut beginning);
        if let Some(state) = &self.state {
            RecordingLine::State(state.clone()).format(&mut beginning);
        }
        self.files.write(&beginning)
    }
}
