//! Reads a form (RFC 7578): on audio routes the model is a form field beside a large file.
//!
//! Strict like the JSON scan, because form readers differ in what they forgive: the body begins
//! with the delimiter and ends with the closing one, every line ends in CR LF, and a part has
//! exactly one name. File contents are skipped by substring search.

use std::ops::Range;

use memchr::memmem;

use super::{Body, BodyError, BodyErrorKind, Limits, Model, has_model_charset};

/// Bytes of one part's header lines.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// RFC 2046 section 5.1.1.
const BOUNDARY_BYTES_MAX: usize = 70;

/// Checks the frame of a form and finds what routing needs: `model`, `stream`, `prompt`, `user`.
///
/// `content_type`: the value of the request's header. At most one `model` part, without a file
/// name; none at all is `model: None`.
pub fn scan_multipart(content_type: &str, body: &[u8], limits: &Limits) -> Result<Body, BodyError> {
    let boundary = boundary(content_type).ok_or_else(|| {
        invalid(0, "the content type must be multipart/form-data with one valid boundary")
    })?;
    let delimiter = format!("\r\n--{boundary}");
    let finder = memmem::Finder::new(delimiter.as_bytes());
    if !body.starts_with(&delimiter.as_bytes()[2..]) {
        return Err(invalid(0, "the body must begin with the boundary of the content type"));
    }
    let mut form = Form { limits, body: Body::default(), seen: [false; 4] };
    let mut at = delimiter.len() - 2;
    let mut parts = 0;
    loop {
        let rest = body.get(at..).unwrap_or_default();
        if rest == b"--" || rest == b"--\r\n" {
            return Ok(form.body);
        }
        if rest.starts_with(b"--") {
            return Err(invalid(at + 2, "nothing may follow the closing boundary"));
        }
        if !rest.starts_with(b"\r\n") {
            return Err(invalid(at, "a boundary must end its line"));
        }
        parts += 1;
        if parts > limits.fields_max {
            let wanted = "send fewer parts";
            return Err(BodyError::new(BodyErrorKind::TooManyFields, at, wanted));
        }
        let head = at + 2;
        let (part, content) = part(body, head)?;
        let rest = body.get(content..).unwrap_or_default();
        // Readers differ in whether the empty line above may double as the delimiter's.
        if rest.starts_with(&delimiter.as_bytes()[2..]) {
            return Err(invalid(content, "a part without content still needs its own line"));
        }
        let end = finder.find(rest).map(|found| content + found);
        let end =
            end.ok_or_else(|| invalid(body.len(), "the body ends without its closing boundary"))?;
        form.part(body, &part, content..end)?;
        at = end + delimiter.len();
    }
}

fn invalid(offset: usize, wanted: &'static str) -> BodyError {
    BodyError::new(BodyErrorKind::InvalidMultipart, offset, wanted)
}

/// The boundary that a content type names: exactly one, of the characters that RFC 2046 allows.
fn boundary(content_type: &str) -> Option<String> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let mut boundary = None;
    for (name, value) in Parameters(parameters) {
        let value = value?;
        if name.eq_ignore_ascii_case("boundary") && boundary.replace(value).is_some() {
            return None;
        }
    }
    let boundary = boundary?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&byte);
    let fits = (1..=BOUNDARY_BYTES_MAX).contains(&boundary.len()) && !boundary.ends_with(' ');
    (fits && boundary.bytes().all(allowed)).then_some(boundary)
}

/// `name=value` pairs between semicolons; the value a token or a quoted string. A pair that is
/// neither has the value `None` and ends the list.
struct Parameters<'a>(&'a str);

impl<'a> Iterator for Parameters<'a> {
    type Item = (&'a str, Option<String>);

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.0.trim_matches([' ', '\t']);
        self.0 = "";
        if text.is_empty() {
            return None;
        }
        let Some((name, rest)) = text.split_once('=') else { return Some((text, None)) };
        let value = match rest.strip_prefix('"') {
            Some(quoted) => unquoted(quoted),
            None => {
                let end = rest.find([';', ' ', '\t', '"']).unwrap_or(rest.len());
                Some((rest[..end].to_owned(), &rest[end..]))
            }
        };
        let Some((value, rest)) = value else { return Some((name, None)) };
        match rest.trim_start_matches([' ', '\t']) {
            "" => {}
            rest => match rest.strip_prefix(';') {
                Some(more) => self.0 = more,
                None => return Some((name, None)),
            },
        }
        Some((name, Some(value)))
    }
}

/// A quoted string without its quotes and escapes, and what follows it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            _ => value.push(char),
        }
    }
    None
}

/// What the head of a part says.
struct Part {
    name: String,
    is_file: bool,
    at: usize,
}

/// The part whose head begins at `at`, and where its content begins.
fn part(body: &[u8], at: usize) -> Result<(Part, usize), BodyError> {
    let rest = body.get(at..).unwrap_or_default();
    let window = &rest[..rest.len().min(HEAD_BYTES_MAX)];
    let end = memmem::find(window, b"\r\n\r\n")
        .ok_or_else(|| invalid(at, "a part needs header lines and an empty line, within 8 KiB"))?;
    let head = std::str::from_utf8(&window[..end])
        .map_err(|_| invalid(at, "the header lines of a part must be UTF-8"))?;
    let mut part = None;
    for line in head.split("\r\n") {
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| invalid(at, "a header line of a part needs a colon"))?;
        if value.contains(|c: char| c.is_control() && c != '\t') || !is_token(name) {
            return Err(invalid(at, "a header line of a part holds characters that it must not"));
        }
        if name.eq_ignore_ascii_case("content-disposition") {
            let read = disposition(value, at).ok_or_else(|| {
                invalid(at, "a part needs `content-disposition: form-data; name=\"…\"`")
            })?;
            if part.replace(read).is_some() {
                return Err(invalid(at, "a part may have one content-disposition"));
            }
        }
        if name.eq_ignore_ascii_case("content-transfer-encoding") {
            let plain = ["7bit", "8bit", "binary"];
            if !plain.iter().any(|plain| plain.eq_ignore_ascii_case(value.trim())) {
                return Err(invalid(at, "parts must not be transfer-encoded (RFC 7578, 4.7)"));
            }
        }
    }
    let part = part.ok_or_else(|| invalid(at, "a part needs a content-disposition"))?;
    Ok((part, at + end + 4))
}

fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn disposition(value: &str, at: usize) -> Option<Part> {
    let (kind, parameters) = value.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("form-data") {
        return None;
    }
    let (mut field, mut is_file) = (None, false);
    for (name, value) in Parameters(parameters) {
        let value = value?;
        if name.eq_ignore_ascii_case("name") {
            // Readers differ in what a backslash in a name means.
            if value.contains(['\\', '"']) || field.replace(value).is_some() {
                return None;
            }
        } else if name.eq_ignore_ascii_case("name*") {
            return None;
        } else if name.eq_ignore_ascii_case("filename") || name.eq_ignore_ascii_case("filename*") {
            is_file = true;
        }
    }
    Some(Part { name: field?, is_file, at })
}

/// What was read so far.
struct Form<'a> {
    limits: &'a Limits,
    body: Body,
    seen: [bool; FIELDS.len()],
}

const FIELDS: [&str; 4] = ["model", "stream", "prompt", "user"];

impl Form<'_> {
    fn part(&mut self, body: &[u8], part: &Part, content: Range<usize>) -> Result<(), BodyError> {
        let Some(index) = FIELDS.iter().position(|field| field.eq_ignore_ascii_case(&part.name))
        else {
            return Ok(());
        };
        let name = FIELDS[index];
        let refused = |kind, wanted| Err(BodyError::new(kind, part.at, wanted).about(name));
        if part.name != name {
            return refused(BodyErrorKind::MisspeltField, "write it in lower case");
        }
        if std::mem::replace(&mut self.seen[index], true) {
            return refused(BodyErrorKind::DuplicateField, "give each field once");
        }
        if part.is_file {
            let kind = if name == "model" {
                BodyErrorKind::InvalidModel
            } else {
                BodyErrorKind::InvalidField
            };
            return refused(kind, "send it as a plain form field, without a file name");
        }
        let text = std::str::from_utf8(body.get(content.clone()).unwrap_or_default());
        match (name, text) {
            ("model", Ok(text))
                if text.len() <= self.limits.model_bytes_max && has_model_charset(text) =>
            {
                self.body.model = Some(Model { name: text.to_owned(), literal: content });
            }
            ("model", _) => {
                let wanted = "use 1 to 256 printable ASCII characters, and no space at either end";
                return refused(BodyErrorKind::InvalidModel, wanted);
            }
            ("stream", Ok(text)) => self.body.stream = is_true(text),
            ("prompt", Ok(_)) => self.body.prompt.insert(2, content),
            ("user", Ok(_)) => self.body.user = Some(content),
            _ => return refused(BodyErrorKind::InvalidField, "send it as UTF-8 text"),
        }
        Ok(())
    }
}

/// The spellings that Python's form readers (pydantic) take for true.
fn is_true(text: &str) -> bool {
    ["true", "1", "on", "t", "y", "yes"].iter().any(|word| word.eq_ignore_ascii_case(text))
}
