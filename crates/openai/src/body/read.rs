//! Reads a JSON body's top-level object field by field.

use std::ops::Range;

use super::decode::decoded;
use super::field::{self, Field};
use super::keys::Keys;
use super::scanner::{Literal, Scanner, Value};
use super::{Body, BodyError, BodyErrorKind, Limits, Model, has_model_charset};
use crate::{Dialect, Route};

/// Checks the whole of a JSON body and finds what routing needs.
///
/// One pass over the bytes after a check that they are UTF-8; memory does not grow with the body.
/// Accepts every object of RFC 8259 within `limits`, unknown fields included, except what JSON
/// readers disagree about (see the module) and wrong types in the fields that are read.
pub fn scan(route: Route, body: &[u8], limits: &Limits) -> Result<Body, BodyError> {
    check_encoding(body)?;
    let mut scanner = Scanner::new(body, limits.depth_max);
    scanner.skip_space();
    match scanner.peek() {
        Some(b'{') => {}
        None => return Err(BodyError::json(scanner.at, "the body is empty; send a JSON object")),
        Some(_) => return Err(BodyError::json(scanner.at, "the body must be a JSON object")),
    }
    let mut reader = Reader { route, limits, body: Body::default(), tokens_max: [None; 4] };
    let mut keys = Keys::new(limits.fields_max);
    fields(&mut scanner, 0, |scanner, key| {
        let key = keys.add(route, scanner.bytes, &key)?;
        match field::of(route, key.as_bytes()) {
            Some((field, name)) => reader.field(scanner, field, name),
            None => scanner.value(1).map(|_| ()),
        }
    })?;
    scanner.skip_space();
    if scanner.peek().is_some() {
        return Err(BodyError::json(scanner.at, "nothing may follow the JSON object"));
    }
    Ok(reader.finish())
}

fn check_encoding(body: &[u8]) -> Result<(), BodyError> {
    let refused = |offset, wanted| BodyError::new(BodyErrorKind::InvalidEncoding, offset, wanted);
    if body.starts_with(b"\xef\xbb\xbf") {
        return Err(refused(0, "leave out the byte order mark"));
    }
    // UTF-16 and UTF-32 have a mark or a zero byte within the first two bytes of any JSON text.
    if body.starts_with(b"\xff\xfe")
        || body.starts_with(b"\xfe\xff")
        || body.iter().take(2).any(|byte| *byte == 0)
    {
        return Err(refused(0, "send the JSON as UTF-8"));
    }
    if simdutf8::basic::from_utf8(body).is_ok() {
        return Ok(());
    }
    let offset = std::str::from_utf8(body).map_or_else(|error| error.valid_up_to(), str::len);
    Err(refused(offset, "send the JSON as UTF-8"))
}

/// Calls `field` for each key of the object at hand; it must pass the value.
/// `depth`: containers that are open around the object.
fn fields<'a>(
    scanner: &mut Scanner<'a>,
    depth: u16,
    mut field: impl FnMut(&mut Scanner<'a>, Literal) -> Result<(), BodyError>,
) -> Result<(), BodyError> {
    scanner.enter(depth)?;
    if scanner.peek() == Some(b'}') {
        scanner.at += 1;
        return Ok(());
    }
    loop {
        let key = scanner.key()?;
        field(scanner, key)?;
        scanner.skip_space();
        match scanner.peek() {
            Some(b',') => scanner.at += 1,
            Some(b'}') => {
                scanner.at += 1;
                return Ok(());
            }
            _ => return Err(BodyError::json(scanner.at, "a comma or `}` is expected here")),
        }
        scanner.skip_space();
    }
}

/// What was read so far.
struct Reader<'a> {
    route: Route,
    limits: &'a Limits,
    body: Body,
    /// By spelling, the one that wins first.
    tokens_max: [Option<u64>; 4],
}

impl Reader<'_> {
    fn field(
        &mut self,
        scanner: &mut Scanner<'_>,
        field: Field,
        name: &'static str,
    ) -> Result<(), BodyError> {
        match field {
            Field::Prompt { rank } => return self.prompt(scanner, rank, name),
            Field::StreamOptions => return self.stream_options(scanner, name),
            Field::Sampling => return self.sampling(scanner, name),
            _ => {}
        }
        let at = scanner.at;
        let value = scanner.value(1)?;
        match field {
            Field::Model => self.body.model = self.model(scanner.bytes, at, value)?,
            Field::Stream => self.body.stream = flag(at, value, name)?,
            Field::MaxCompletionTokens => {
                self.tokens_max[0] = count(scanner.bytes, at, value, name)?
            }
            Field::MaxOutputTokens => self.tokens_max[1] = count(scanner.bytes, at, value, name)?,
            Field::MaxTokens => self.tokens_max[2] = count(scanner.bytes, at, value, name)?,
            Field::MaxNewTokens => self.tokens_max[3] = count(scanner.bytes, at, value, name)?,
            Field::N | Field::BestOf => {
                self.choices(at, count(scanner.bytes, at, value, name)?, name)?
            }
            Field::CacheSalt => self.body.cache_salt = text_range(value),
            Field::User => self.body.user = text_range(value),
            Field::Prompt { .. } | Field::StreamOptions | Field::Sampling => {}
        }
        Ok(())
    }

    fn model(&self, body: &[u8], at: usize, value: Value) -> Result<Option<Model>, BodyError> {
        let refused =
            |wanted| Err(BodyError::new(BodyErrorKind::InvalidModel, at, wanted).about("model"));
        let literal = match value {
            Value::String(literal) => literal,
            Value::Null => return Ok(None),
            _ => return refused("it must be a string"),
        };
        // No escape is longer than six bytes for one.
        if literal.inside.len() > self.limits.model_bytes_max.saturating_mul(6) {
            return refused("it is too long");
        }
        match decoded(body, &literal) {
            Some(name) if name.len() > self.limits.model_bytes_max => refused("it is too long"),
            Some(name) if has_model_charset(&name) => {
                Ok(Some(Model { name: name.into_owned(), literal: literal.with_quotes() }))
            }
            _ => refused("use printable ASCII characters, and no space at either end"),
        }
    }

    fn choices(&mut self, at: usize, n: Option<u64>, name: &'static str) -> Result<(), BodyError> {
        if n.is_some_and(|n| n > self.limits.n_max) {
            let wanted = "ask for fewer choices, or send several requests";
            return Err(BodyError::new(BodyErrorKind::InvalidField, at, wanted).about(name));
        }
        self.body.n = self.body.n.max(n);
        Ok(())
    }

    fn prompt(
        &mut self,
        scanner: &mut Scanner<'_>,
        rank: u8,
        name: &'static str,
    ) -> Result<(), BodyError> {
        let at = scanner.at;
        let media_before = scanner.media_bytes;
        let range = match scanner.value(1)? {
            Value::String(literal) => literal.inside,
            Value::Array(inside) => inside,
            Value::Null => return Ok(()),
            Value::Object | Value::Number(_) | Value::Bool(_) => at..scanner.at,
        };
        self.body.prompt.media_bytes += scanner.media_bytes - media_before;
        self.body.prompt.insert(rank, range);
        if self.route != Route::Generate {
            return Ok(());
        }
        let dialect = if name == "inputs" { Dialect::Tgi } else { Dialect::Sglang };
        if self.body.engine_dialect.is_some_and(|other| other != dialect) {
            let wanted = "send either `inputs` (TGI) or `text` and `input_ids` (SGLang)";
            return Err(BodyError::new(BodyErrorKind::InvalidField, at, wanted).about(name));
        }
        self.body.engine_dialect = Some(dialect);
        Ok(())
    }

    fn stream_options(
        &mut self,
        scanner: &mut Scanner<'_>,
        name: &'static str,
    ) -> Result<(), BodyError> {
        if scanner.peek() != Some(b'{') {
            return scanner.value(1).map(|_| ());
        }
        let mut seen = false;
        fields(scanner, 1, |scanner, key| {
            let known = decoded(scanner.bytes, &key).is_some_and(|key| key == "include_usage");
            let at = scanner.at;
            let value = scanner.value(2)?;
            if known {
                first(&mut seen, at, name)?;
                self.body.include_usage = flag(at, value, name)?;
            }
            Ok(())
        })
    }

    /// TGI's `parameters` or SGLang's `sampling_params`; the latter may also be a list.
    fn sampling(&mut self, scanner: &mut Scanner<'_>, name: &'static str) -> Result<(), BodyError> {
        if scanner.peek() != Some(b'{') {
            return scanner.value(1).map(|_| ());
        }
        let (mut tokens_seen, mut n_seen, mut best_of_seen) = (false, false, false);
        fields(scanner, 1, |scanner, key| {
            let known = match decoded(scanner.bytes, &key).as_deref() {
                Some("max_new_tokens") => Some((Field::MaxNewTokens, &mut tokens_seen)),
                Some("n") => Some((Field::N, &mut n_seen)),
                Some("best_of") => Some((Field::BestOf, &mut best_of_seen)),
                _ => None,
            };
            let at = scanner.at;
            let value = scanner.value(2)?;
            let Some((field, seen)) = known else { return Ok(()) };
            first(seen, at, name)?;
            let count = count(scanner.bytes, at, value, name)?;
            match field {
                Field::MaxNewTokens => self.tokens_max[3] = count,
                _ => self.choices(at, count, name)?,
            }
            Ok(())
        })
    }

    fn finish(mut self) -> Body {
        self.body.tokens_max = self.tokens_max.into_iter().flatten().next();
        match (self.route, self.body.engine_dialect) {
            (Route::GenerateStream, _) => self.body.stream = true,
            // TGI's `/generate` never streams, whatever its body says.
            (Route::Generate, Some(Dialect::Tgi)) => self.body.stream = false,
            _ => {}
        }
        self.body
    }
}

/// Refuses the second mention of a nested field.
fn first(seen: &mut bool, at: usize, name: &'static str) -> Result<(), BodyError> {
    if std::mem::replace(seen, true) {
        let wanted = "give each of its fields once";
        return Err(BodyError::new(BodyErrorKind::DuplicateField, at, wanted).about(name));
    }
    Ok(())
}

fn invalid(at: usize, name: &'static str, wanted: &'static str) -> BodyError {
    BodyError::new(BodyErrorKind::InvalidField, at, wanted).about(name)
}

fn flag(at: usize, value: Value, name: &'static str) -> Result<bool, BodyError> {
    match value {
        Value::Bool(flag) => Ok(flag),
        Value::Null => Ok(false),
        _ => Err(invalid(at, name, "it must be true or false")),
    }
}

fn text_range(value: Value) -> Option<Range<usize>> {
    match value {
        Value::String(literal) => Some(literal.inside),
        _ => None,
    }
}

/// A whole number: `None` for null and for anything negative, `u64::MAX` for anything larger.
/// `16.0` and `1e2` count as whole, because engines take them so.
fn count(
    body: &[u8],
    at: usize,
    value: Value,
    name: &'static str,
) -> Result<Option<u64>, BodyError> {
    let range = match value {
        Value::Number(range) => range,
        Value::Null => return Ok(None),
        _ => return Err(invalid(at, name, "it must be a whole number")),
    };
    let text =
        body.get(range).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default();
    if let Ok(count) = text.parse() {
        return Ok(Some(count));
    }
    match text.parse::<f64>() {
        Ok(number) if number.fract() != 0.0 => Err(invalid(at, name, "it must be a whole number")),
        Ok(number) if number >= 0.0 => Ok(Some(number as u64)),
        _ => Ok(None),
    }
}
