//! `/v1/audio/transcriptions`: a form with a model and a file.

use crate::dialect::{ApiError, Ask};
use crate::tokens::{Special, Tokens};
use crate::wire::Request;

/// Bytes of audio that count as one prompt token.
const BYTES_PER_TOKEN: usize = 640;

pub(super) fn transcription(request: &Request) -> Result<Ask, ApiError> {
    let boundary = request
        .header("content-type")
        .and_then(|value| value.split_once("boundary="))
        .map(|(_, boundary)| boundary.split(';').next().unwrap_or_default().trim_matches('"'))
        .filter(|boundary| !boundary.is_empty())
        .ok_or_else(|| ApiError::bad_request("The body is no multipart/form-data."))?;
    let mut ask = Ask { n: 1, ..Ask::default() };
    for part in split(&request.body, format!("--{boundary}").as_bytes()) {
        let Some(end) = part.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&part[..end]).to_ascii_lowercase();
        let content = part[end + 4..].strip_suffix(b"\r\n").unwrap_or(&part[end + 4..]);
        let text = String::from_utf8_lossy(content);
        if head.contains("name=\"model\"") {
            ask.model = Some(text.into_owned());
        } else if head.contains("name=\"stream\"") {
            ask.stream = text == "true";
        } else if head.contains("name=\"file\"") {
            let mut prompt = Tokens::default();
            prompt.special(Special::Media);
            let starts = content.chunks(BYTES_PER_TOKEN).map(|piece| {
                piece.iter().take(4).fold(0_u32, |token, byte| token << 8 | u32::from(*byte))
            });
            prompt.0.extend(starts);
            ask.prompts.push(prompt);
        }
    }
    if ask.prompts.len() != 1 {
        return Err(ApiError::bad_request("The form needs one `file`."));
    }
    Ok(ask)
}

fn split<'a>(body: &'a [u8], delimiter: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = Some(body);
    std::iter::from_fn(move || {
        let body = rest?;
        let found = body.windows(delimiter.len()).position(|window| window == delimiter);
        match found {
            Some(at) => {
                rest = Some(&body[at + delimiter.len()..]);
                Some(&body[..at])
            }
            None => {
                rest = None;
                Some(body)
            }
        }
    })
}
