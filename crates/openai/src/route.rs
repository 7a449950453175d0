//! Which requests are served at all: an exact allow-list of methods and raw paths.
//!
//! Engines leave dangerous paths open next to the useful ones, so whatever is not named here does
//! not exist. Paths are compared byte for byte and never normalised: no decoding, no dot segments,
//! no slash folding, hence no reading that could differ from the engine's.

use http::Method;

use crate::is_model_name;

/// One request that the gateway serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Route {
    ChatCompletions,
    Completions,
    Embeddings,
    Responses,
    Messages,
    CountTokens,
    Rerank,
    Score,
    AudioTranscriptions,
    Tokenize,
    Detokenize,
    /// SGLang's or TGI's; the body tells which ([`crate::Body::engine_dialect`]).
    Generate,
    /// TGI's; always streams.
    GenerateStream,
    Models,
    /// One model; its name is in the path ([`model_id`]).
    Model,
    /// A path that the document opens. Never found here, and nothing of its body is read.
    Opened,
}

/// Why a request has no route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    #[error("this path is not served")]
    NotFound,
    /// `allow` is the value of the `Allow` header.
    #[error("this path is served for {allow} only")]
    MethodNotAllowed { allow: &'static str },
}

/// Whose manners a route follows; decides the form of error objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    OpenAi,
    Anthropic,
    Tgi,
    Sglang,
}

/// What a request on a route carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BodyKind {
    None,
    Json,
    /// `multipart/form-data`; the model is a form field.
    Multipart,
    /// Anything; it is passed on unread.
    Opaque,
}

impl Route {
    /// Those that [`find`] finds.
    pub const ALL: [Self; 15] = [
        Self::ChatCompletions,
        Self::Completions,
        Self::Embeddings,
        Self::Responses,
        Self::Messages,
        Self::CountTokens,
        Self::Rerank,
        Self::Score,
        Self::AudioTranscriptions,
        Self::Tokenize,
        Self::Detokenize,
        Self::Generate,
        Self::GenerateStream,
        Self::Models,
        Self::Model,
    ];

    /// The path as clients write it; a closed set, so fit for a metric label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ChatCompletions => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
            Self::Embeddings => "/v1/embeddings",
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
            Self::CountTokens => "/v1/messages/count_tokens",
            Self::Rerank => "/v1/rerank",
            Self::Score => "/v1/score",
            Self::AudioTranscriptions => "/v1/audio/transcriptions",
            Self::Tokenize => "/tokenize",
            Self::Detokenize => "/detokenize",
            Self::Generate => "/generate",
            Self::GenerateStream => "/generate_stream",
            Self::Models => "/v1/models",
            Self::Model => "/v1/models/{id}",
            Self::Opened => "(opened)",
        }
    }

    pub fn dialect(self) -> Dialect {
        match self {
            Self::Messages | Self::CountTokens => Dialect::Anthropic,
            Self::GenerateStream => Dialect::Tgi,
            Self::Generate => Dialect::Sglang,
            _ => Dialect::OpenAi,
        }
    }

    pub fn body(self) -> BodyKind {
        match self {
            Self::Models | Self::Model => BodyKind::None,
            Self::AudioTranscriptions => BodyKind::Multipart,
            Self::Opened => BodyKind::Opaque,
            _ => BodyKind::Json,
        }
    }

    fn allow(self) -> &'static str {
        if self.body() == BodyKind::None { "GET, HEAD" } else { "POST" }
    }
}

const MODEL_PREFIX: &str = "/v1/models/";

/// The route of a request, from its raw path without the query string.
pub fn find(method: &Method, raw_path: &str) -> Result<Route, RouteError> {
    let route = match Route::ALL.iter().find(|route| route.as_str() == raw_path) {
        Some(Route::Model) | None => {
            model_id(raw_path).ok_or(RouteError::NotFound)?;
            Route::Model
        }
        Some(route) => *route,
    };
    let allowed = match route.body() {
        BodyKind::None => *method == Method::GET || *method == Method::HEAD,
        BodyKind::Json | BodyKind::Multipart | BodyKind::Opaque => *method == Method::POST,
    };
    if allowed { Ok(route) } else { Err(RouteError::MethodNotAllowed { allow: route.allow() }) }
}

/// The model named by a raw path `/v1/models/{id}`, percent-decoded.
///
/// `id` may hold `/` as it is or as `%2F` (`org/name`), because it is looked up in a table and
/// never forwarded. `None`: another path, a bad escape, dot or empty segments, a backslash, or
/// anything that [`is_model_name`] refuses.
pub fn model_id(raw_path: &str) -> Option<String> {
    let raw = raw_path.strip_prefix(MODEL_PREFIX)?;
    let plain = |byte: &u8| !matches!(byte, b'?' | b'#' | b'\\' | b';' | b'{' | b'}');
    if !raw.bytes().all(|byte| plain(&byte)) {
        return None;
    }
    let name = percent_decoded(raw)?;
    let segments_are_plain = name.split('/').all(|segment| !matches!(segment, "" | "." | ".."));
    let bytes_are_plain = name.bytes().all(|byte| !matches!(byte, b'\\' | b';'));
    (segments_are_plain && bytes_are_plain && is_model_name(&name)).then_some(name)
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let value = match byte {
            b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
            _ => byte,
        };
        decoded.push(value);
    }
    String::from_utf8(decoded).ok()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_found_by_its_own_path_and_method() {
        for route in Route::ALL {
            let path = route.as_str().replace("{id}", "org/name");
            let method = if route.body() == BodyKind::None { Method::GET } else { Method::POST };
            assert_eq!(find(&method, &path), Ok(route));
        }
    }

    #[test]
    fn a_wrong_method_names_the_right_one() {
        let allow = |method, path| find(method, path);
        let post = Err(RouteError::MethodNotAllowed { allow: "POST" });
        assert_eq!(allow(&Method::GET, "/v1/chat/completions"), post);
        assert_eq!(allow(&Method::CONNECT, "/generate"), post);
        let get = Err(RouteError::MethodNotAllowed { allow: "GET, HEAD" });
        assert_eq!(allow(&Method::POST, "/v1/models"), get);
        assert_eq!(allow(&Method::DELETE, "/v1/models/llama"), get);
        assert_eq!(allow(&Method::HEAD, "/v1/models"), Ok(Route::Models));
    }

    #[test]
    fn a_path_that_is_not_written_exactly_does_not_exist() {
        for path in [
            "",
            "/",
            "v1/models",
            "/v1/chat/completions/",
            "/v1//chat/completions",
            "/v1/./chat/completions",
            "/v1/x/../chat/completions",
            "/V1/chat/completions",
            "/v1/chat%2fcompletions",
            "/v1/chat/completions%00",
            "/v1/chat\\completions",
            "/v1/chat/completions;x",
            "/v1/chat/completions?x",
            "/v1/%63hat/completions",
            "/v1/chat/completions#",
            "*",
            "http://host/v1/models",
            "/v1/models/{id}",
        ] {
            assert_eq!(find(&Method::POST, path), Err(RouteError::NotFound), "{path}");
        }
    }

    #[test]
    fn paths_that_engines_leave_open_do_not_exist() {
        for path in [
            "/invocations",
            "/pooling",
            "/score",
            "/pause",
            "/resume",
            "/update_weights",
            "/collective_rpc",
            "/scale_elastic_ep",
            "/metrics",
            "/v1/load_lora_adapter",
            "/flush_cache",
        ] {
            assert_eq!(find(&Method::POST, path), Err(RouteError::NotFound), "{path}");
            assert_eq!(find(&Method::POST, &path.to_uppercase()), Err(RouteError::NotFound));
        }
    }

    #[test]
    fn a_model_name_in_a_path_is_decoded() {
        let id = |path| model_id(path);
        assert_eq!(id("/v1/models/llama").as_deref(), Some("llama"));
        assert_eq!(id("/v1/models/org/name-7B:v1").as_deref(), Some("org/name-7B:v1"));
        assert_eq!(id("/v1/models/org%2Fname").as_deref(), Some("org/name"));
        assert_eq!(id("/v1/models/a%20b").as_deref(), Some("a b"));
    }

    #[test]
    fn a_model_name_that_is_no_plain_name_is_not_found() {
        for id in [
            "",
            "/",
            "a//b",
            "../secret",
            "a/../b",
            "a/.",
            "%2e%2e/a",
            "a%",
            "a%2",
            "a%zz",
            "a%00",
            "a%0d%0ax",
            "a\\b",
            "a%5cb",
            "a;b",
            "a%3Bb",
            "%ff",
            "a%20",
            "a/",
            "%2Fa",
        ] {
            assert_eq!(
                find(&Method::GET, &format!("/v1/models/{id}")),
                Err(RouteError::NotFound),
                "{id}"
            );
        }
        let long = "a".repeat(257);
        assert_eq!(model_id(&format!("/v1/models/{long}")), None);
    }
}
