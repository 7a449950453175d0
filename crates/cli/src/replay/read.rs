//! Recordings, read: what is wrong with a file is said by line, and a file that was cut off is
//! taken as far as it goes.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use telemetry::recording::{Header, RecordingLine, Request, State, VERSION};

/// Longest line that is read; a request of a million tokens takes a small part of it.
const LINE_BYTES_MAX: u64 = 16 << 20;
/// Longest prompt or answer that is believed, tokens.
const TOKENS_MAX: u64 = 10_000_000;

/// Longest recording that is played.
const LENGTH_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Why files cannot be played.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("cannot read {}", .file.display())]
    Io {
        file: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{} is no recording: its first line is no header", .0.display())]
    NoRecording(PathBuf),
    #[error("{} has version {found}, and this program reads version {VERSION}", .file.display())]
    Version { file: PathBuf, found: u32 },
    #[error("line {line} of {} is no line of a recording", .file.display())]
    Line {
        file: PathBuf,
        line: usize,
        #[source]
        source: serde_json::Error,
    },
    #[error("line {line} of {} is longer than 16 MiB", .file.display())]
    LongLine { file: PathBuf, line: usize },
    #[error("line {line} of {} tells of more than ten million tokens", .file.display())]
    Tokens { file: PathBuf, line: usize },
    #[error("line {line} of {} lies more than a week after the recording's start", .file.display())]
    TooLate { file: PathBuf, line: usize },
    #[error("{} and {} are of different recordings", .0.display(), .1.display())]
    Mixed(PathBuf, PathBuf),
    #[error("no file was named")]
    Nothing,
}

/// The files of one recording together.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) header: Header,
    /// In order of time.
    pub(super) states: Vec<State>,
    /// In order of arrival.
    pub(super) requests: Vec<Request>,
    /// What a reader of the results should know.
    pub(super) notes: Vec<String>,
}

pub(super) fn read(files: &[PathBuf]) -> Result<Recording, ReadError> {
    let mut parts = Vec::new();
    for file in files {
        let handle =
            File::open(file).map_err(|source| ReadError::Io { file: file.clone(), source })?;
        parts.push((file, read_part(file, BufReader::new(handle))?));
    }
    parts.sort_by_key(|(_, part)| part.header.part);
    let mut parts = parts.into_iter();
    let Some((first, mut whole)) = parts.next() else { return Err(ReadError::Nothing) };
    for (file, part) in parts {
        if part.header.recording != whole.header.recording {
            return Err(ReadError::Mixed(first.clone(), file.clone()));
        }
        whole.states.extend(part.states);
        whole.requests.extend(part.requests);
        whole.notes.extend(part.notes);
    }
    whole.states.sort_by_key(|state| state.at_us);
    whole.requests.sort_by_key(|request| request.at_us);
    if let Some(dropped) = whole.states.last().map(|state| state.dropped).filter(|lost| *lost > 0) {
        whole.notes.push(format!("{dropped} lines were lost while recording"));
    }
    Ok(whole)
}

/// One file.
fn read_part(file: &Path, mut input: impl BufRead) -> Result<Recording, ReadError> {
    let named = || file.to_path_buf();
    let mut header: Option<Header> = None;
    let (mut states, mut requests, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    let mut bytes = Vec::new();
    for line in 1_usize.. {
        bytes.clear();
        let mut limited = Read::take(&mut input, LINE_BYTES_MAX + 1);
        let count = limited
            .read_until(b'\n', &mut bytes)
            .map_err(|source| ReadError::Io { file: named(), source })?;
        if count == 0 {
            break;
        }
        if bytes.len() as u64 > LINE_BYTES_MAX {
            return Err(ReadError::LongLine { file: named(), line });
        }
        let is_whole = bytes.last() == Some(&b'\n');
        match (RecordingLine::parse(&bytes), &header) {
            (Ok(RecordingLine::Header(found)), None) => {
                if found.version != VERSION {
                    return Err(ReadError::Version { file: named(), found: found.version });
                }
                header = Some(found);
            }
            (_, None) => return Err(ReadError::NoRecording(named())),
            (Ok(RecordingLine::Header(_)), Some(_)) => {
                notes.push(format!("line {line} of {} is a second header", file.display()));
            }
            (Ok(RecordingLine::State(state)), Some(_)) => states.push(state),
            (Ok(RecordingLine::Request(request)), Some(_)) => {
                let answer = request.output_tokens.unwrap_or(0);
                if u64::from(request.prompt_tokens).max(answer) > TOKENS_MAX {
                    return Err(ReadError::Tokens { file: named(), line });
                }
                if u128::from(request.at_us) > LENGTH_MAX.as_micros() {
                    return Err(ReadError::TooLate { file: named(), line });
                }
                requests.push(request);
            }
            // Cut off in the middle of a line, as a file is whose writer died.
            (Err(_), Some(_)) if !is_whole => {
                notes.push(format!("the last line of {} is cut off", file.display()));
            }
            (Err(source), Some(_)) => return Err(ReadError::Line { file: named(), line, source }),
        }
    }
    let header = header.ok_or_else(|| ReadError::NoRecording(named()))?;
    Ok(Recording { header, states, requests, notes })
}
