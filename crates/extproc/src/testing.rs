//! A gateway without a wire, and a proxy that says what it is told to, for the tests of this crate.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use config::Document;
use gateway::{Gateway, Policy};
use telemetry::{AccessLog, BuildInfo, Metrics, Target};
use types::Timestamp;

use crate::conversation::{Conversation, Next, Violation};
use crate::settings::{Picker, Settings};
use crate::wire::{
    HeaderMap, HeaderValue, HttpBody, HttpHeaders, HttpTrailers, ImmediateResponse, Mutation,
    ProcessingRequest, ProcessingResponse, Request, Response,
};

/// A gateway in front of what the YAML below `spec:` says.
pub(crate) fn gateway(spec: &str) -> Arc<Gateway> {
    let metrics = Metrics::new(BuildInfo { version: "test", revision: "" });
    let dropped = Arc::clone(&metrics.gateway().access_log_dropped_lines);
    let log = AccessLog::open(Target::Off, dropped).unwrap();
    Gateway::new(&document(spec), Policy::Document, metrics, log)
}

fn document(spec: &str) -> Document {
    let text = format!(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nmetadata: {{ name: test }}\nspec:\n{spec}"
    );
    config::parse(&text, "test").unwrap_or_else(|errors| panic!("{errors}"))
}

/// One pool `chat` for the model `llama` with the adapter `sql`.
pub(crate) fn gateway_of(urls: &[&str]) -> Arc<Gateway> {
    gateway(&spec_of(urls))
}

pub(crate) fn document_of(urls: &[&str]) -> Document {
    document(&spec_of(urls))
}

fn spec_of(urls: &[&str]) -> String {
    let endpoints: Vec<_> = urls.iter().map(|url| format!("{{ url: '{url}' }}")).collect();
    format!(
        "  schedulers:\n  - name: chat\n    modelName: llama\n    loraAdapters: [sql]\n    endpoints: [{}]\n",
        endpoints.join(", ")
    )
}

pub(crate) const THREE: [&str; 3] =
    ["http://10.0.0.1:8000", "http://10.0.0.2:8000", "http://[fd00::3]:8000"];

/// The requests that all endpoints have by our account.
pub(crate) fn in_flight(gateway: &Gateway) -> u32 {
    gateway.members().iter().map(|member| member.state.in_flight()).sum()
}

/// A conversation and what it has answered.
pub(crate) struct Stream {
    pub(crate) conversation: Conversation,
    pub(crate) out: VecDeque<ProcessingResponse>,
    pub(crate) now: Timestamp,
}

impl Stream {
    pub(crate) fn new(gateway: &Arc<Gateway>, settings: Settings) -> Self {
        let picker = Picker::new(gateway.clone(), settings);
        let now = Timestamp::from_millis(1_000_000);
        Self { conversation: Conversation::new(picker), out: VecDeque::new(), now }
    }

    pub(crate) fn send(&mut self, request: Request) -> Result<Next, Violation> {
        self.send_message(ProcessingRequest { request: Some(request), ..Default::default() })
    }

    pub(crate) fn send_message(&mut self, message: ProcessingRequest) -> Result<Next, Violation> {
        self.conversation.receive(message, self.now, &mut self.out)
    }

    /// The answers so far, taken out.
    pub(crate) fn take(&mut self) -> Vec<ProcessingResponse> {
        self.out.drain(..).collect()
    }

    pub(crate) fn immediate(&mut self) -> ImmediateResponse {
        let answers = self.take();
        match answers.into_iter().last().and_then(|answer| answer.response) {
            Some(Response::Immediate(immediate)) => immediate,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn fields(fields: &[(&str, &str)]) -> HeaderMap {
    let fields = fields.iter().map(|(name, value)| HeaderValue::new(*name, (*value).to_owned()));
    HeaderMap { headers: fields.collect() }
}

/// The head of a chat request, with further fields.
pub(crate) fn chat(more: &[(&str, &str)]) -> Request {
    let mut all = vec![
        (":method", "POST"),
        (":path", "/v1/chat/completions"),
        ("content-type", "application/json"),
    ];
    all.extend_from_slice(more);
    head(&all, false)
}

pub(crate) fn head(of: &[(&str, &str)], end_of_stream: bool) -> Request {
    Request::RequestHeaders(HttpHeaders { headers: Some(fields(of)), end_of_stream })
}

pub(crate) fn body(bytes: impl Into<Bytes>, end_of_stream: bool) -> Request {
    Request::RequestBody(HttpBody { body: bytes.into(), end_of_stream })
}

pub(crate) fn answer_head(of: &[(&str, &str)], end_of_stream: bool) -> Request {
    Request::ResponseHeaders(HttpHeaders { headers: Some(fields(of)), end_of_stream })
}

pub(crate) fn answer_body(bytes: impl Into<Bytes>, end_of_stream: bool) -> Request {
    Request::ResponseBody(HttpBody { body: bytes.into(), end_of_stream })
}

pub(crate) fn trailers() -> HttpTrailers {
    HttpTrailers::default()
}

pub(crate) fn asking(model: &str) -> String {
    format!(
        r#"{{"model":"{model}","stream":true,"seed":9007199254740993,"messages":[{{"role":"user","content":"h\u00e9"}}]}}"#
    )
}

/// Pieces of a body among answers, and whether the last one says that it is the last.
pub(crate) fn pieces(answers: &[ProcessingResponse]) -> Vec<(Bytes, bool)> {
    let mutation = |answer: &ProcessingResponse| {
        let Some(Response::RequestBody(body) | Response::ResponseBody(body)) = &answer.response
        else {
            return None;
        };
        match body.response.as_ref()?.body_mutation.as_ref()?.mutation.as_ref()? {
            Mutation::Streamed(piece) => Some((piece.body.clone(), piece.end_of_stream)),
            Mutation::Body(_) => None,
        }
    };
    answers.iter().filter_map(mutation).collect()
}

/// A field that an answer sets.
pub(crate) fn set_by(answer: &ProcessingResponse, name: &str) -> Option<String> {
    let mutation = match answer.response.as_ref()? {
        Response::RequestHeaders(headers) | Response::ResponseHeaders(headers) => {
            headers.response.as_ref()?.header_mutation.as_ref()?
        }
        Response::RequestBody(body) => body.response.as_ref()?.header_mutation.as_ref()?,
        Response::Immediate(immediate) => immediate.headers.as_ref()?,
        _ => return None,
    };
    let set = mutation.set_headers.iter().filter_map(|set| set.header.as_ref());
    let value = set.into_iter().find(|field| field.key == name)?.bytes();
    Some(String::from_utf8_lossy(value).into_owned())
}
