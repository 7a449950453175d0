mod accepted;
mod multipart;
mod refused;

use super::*;
use crate::Route;

fn chat(body: &str) -> Result<Body, BodyError> {
    scan(Route::ChatCompletions, body.as_bytes(), &Limits::default())
}

fn read(route: Route, body: &str) -> Body {
    scan(route, body.as_bytes(), &Limits::default()).unwrap()
}

/// The bytes of each prompt range as text.
fn pieces(route: Route, body: &str) -> Vec<String> {
    let read = read(route, body);
    let text = |piece: &[u8]| String::from_utf8(piece.to_vec()).unwrap();
    read.prompt.pieces(body.as_bytes()).map(text).collect()
}
