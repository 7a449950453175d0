//! HTTP/2 towards clients: hyper carries it, our gate and handlers decide.

use std::cell::Cell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use crate::answer::{Answer, AnswerBody};
use crate::drain::Drain;
use crate::handler::Handler;
use crate::head::{
    BodyLength, RequestHead, Turned, Version, check_authority, check_field, refuse_repeats,
};
use crate::relay::{Relay, Step};
use crate::settings::Settings;
use crate::timer::{Timer, deadline_in};
use crate::upstream::{LocalExecutor, fields_of};

/// Serves one connection to its end.
pub(crate) async fn serve<S, H>(
    io: S,
    client: SocketAddr,
    handler: Rc<H>,
    settings: Rc<Settings>,
    drain: Drain,
) where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
    H: Handler,
{
    let mut builder = http2::Builder::new(LocalExecutor);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(settings.http2_streams_max)
        .max_header_list_size(settings.http2_header_list_bytes_max)
        .initial_stream_window_size(settings.http2_stream_window_bytes)
        .initial_connection_window_size(settings.http2_connection_window_bytes)
        .max_pending_accept_reset_streams(settings.http2_pending_resets_max)
        .max_local_error_reset_streams(settings.http2_error_resets_max)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .keep_alive_interval(Some(settings.http2_ping_interval))
        .keep_alive_timeout(settings.http2_ping_answer);
    let (idle, ends_at) = (settings.http2_idle, deadline_in(settings.connection_age));
    let open = Rc::new(Cell::new(0_usize));
    let (stream_drain, streams) = (drain.clone(), open.clone());
    let answer = service_fn(move |request: http::Request<Incoming>| {
        let handler = handler.clone();
        let settings = settings.clone();
        let drain = stream_drain.clone();
        let stream = OpenStream::new(&streams);
        async move {
            Ok::<_, Infallible>(respond(request, client, &*handler, &settings, drain, stream).await)
        }
    });
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(io), answer));
    let mut drain = drain;
    let mut timer = Timer::default();
    let mut idle_at = deadline_in(idle);
    let (mut told, mut served) = (false, false);
    std::future::poll_fn(|cx| {
        // How it ended is nobody's business: its streams told their own story.
        if connection.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if open.get() > 0 {
            idle_at = deadline_in(idle);
            served = true;
        }
        if told {
            return Poll::Pending;
        }
        let time_is_up = timer.poll(cx, idle_at.min(ends_at)).is_ready();
        // A connection of the drain delay is still good for one request.
        let drained = if served { drain.poll(cx) } else { drain.poll_closed(cx) };
        if drained.is_ready() || time_is_up {
            told = true;
            connection.as_mut().graceful_shutdown();
            return connection.as_mut().poll(cx).map(drop);
        }
        Poll::Pending
    })
    .await;
}

/// Counts a stream as open until its answer has been sent.
struct OpenStream(Rc<Cell<usize>>);

impl OpenStream {
    fn new(open: &Rc<Cell<usize>>) -> Self {
        open.set(open.get() + 1);
        Self(open.clone())
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Bytes that one stream may have waiting for a slow client.
const SEND_BUFFER_BYTES: usize = 64 * 1024;

/// From the last words of a broken stream to its reset, which discards what is not yet written.
const LAST_WORDS: Duration = Duration::from_millis(50);

async fn respond<H: Handler>(
    request: http::Request<Incoming>,
    client: SocketAddr,
    handler: &H,
    settings: &Settings,
    drain: Drain,
    stream: OpenStream,
) -> http::Response<StreamBody> {
    let (parts, body) = request.into_parts();
    let is_head = parts.method == http::Method::HEAD;
    let mut timer = Timer::default();
    let answer = match gate(parts, settings) {
        Err(turned) => handler.turned(&turned, None, client),
        Ok(head) => match handler.plan(&head, client) {
            Err(answer) => answer,
            Ok((plan, ticket)) => match read_body(body, plan.bytes_max, settings, &mut timer).await
            {
                Err(turned) => handler.turned(&turned, Some(ticket), client),
                Ok(body) => handler.answer(ticket, head, body, &mut timer).await,
            },
        },
    };
    response(answer, is_head, timer, drain, stream)
}

/// The rules of the HTTP/1 gate that HTTP/2 leaves open.
fn gate(parts: http::request::Parts, settings: &Settings) -> Result<RequestHead, Turned> {
    if parts.headers.len() > settings.head.fields_max {
        return Err(Turned::of(431, "too_many_headers", "the request has too many header fields"));
    }
    let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
    if target.len() > settings.head.target_bytes_max {
        return Err(Turned::of(414, "uri_too_long", "the request target is too long"));
    }
    if !target.starts_with('/') {
        return Err(Turned::bad("the request target is no path"));
    }
    let authority = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    let host = parts.headers.get(http::header::HOST).map(|host| host.as_bytes());
    match (authority, host) {
        (None, None) => return Err(Turned::bad("the request has no :authority")),
        (Some(authority), Some(host)) if !authority.eq_ignore_ascii_case(host) => {
            return Err(Turned::bad("the request's :authority and Host differ"));
        }
        (Some(host), _) | (None, Some(host)) => check_authority(host)?,
    }
    let target = Bytes::copy_from_slice(target.as_bytes());
    let fields = fields_of(&parts.headers);
    for field in fields.iter() {
        check_field(fields.name(field), fields.value(field))?;
    }
    refuse_repeats(&fields)?;
    Ok(RequestHead {
        method: parts.method,
        target,
        version: Version::Http2,
        fields,
        body: BodyLength::Stream,
        close: false,
        expects_continue: false,
    })
}

async fn read_body(
    mut body: Incoming,
    bytes_max: usize,
    settings: &Settings,
    timer: &mut Timer,
) -> Result<Bytes, Turned> {
    const TOO_LARGE: Turned = Turned::of(
        413,
        "request_too_large",
        "the request body is larger than this gateway accepts",
    );
    const NO_BODY: Turned = Turned::bad("this request takes no body");
    const TOO_SLOW: Turned =
        Turned::of(408, "request_timeout", "the request body did not arrive in time");
    let announced = body.size_hint().exact().unwrap_or(0);
    if announced > bytes_max as u64 {
        return Err(if bytes_max == 0 { NO_BODY } else { TOO_LARGE });
    }
    let mut read = BytesMut::with_capacity(usize::try_from(announced).unwrap_or(0));
    let end_by = deadline_in(settings.request_body);
    loop {
        let deadline = end_by.min(deadline_in(settings.request_body_idle));
        match timer.within(deadline, body.frame()).await {
            None => return Err(TOO_SLOW),
            Some(None) => return Ok(read.freeze()),
            Some(Some(Err(_))) => return Err(Turned::bad("the request body broke off")),
            Some(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    if read.len() + data.len() > bytes_max {
                        return Err(if bytes_max == 0 { NO_BODY } else { TOO_LARGE });
                    }
                    read.extend_from_slice(&data);
                }
            }
        }
    }
}

fn response(
    answer: Answer,
    is_head: bool,
    timer: Timer,
    drain: Drain,
    stream: OpenStream,
) -> http::Response<StreamBody> {
    let Answer { status, lines, body, .. } = answer;
    let mut response = http::Response::builder().status(status);
    for line in lines.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(colon) = memchr::memchr(b':', line) {
            response = response.header(&line[..colon], line[colon + 1..].trim_ascii());
        }
    }
    let body = match body {
        AnswerBody::Full(body) if is_head => {
            response = response.header(http::header::CONTENT_LENGTH, body.len());
            StreamBody {
                ready: None,
                relay: None,
                reset_at: None,
                timer,
                drain,
                _stream: Some(stream),
            }
        }
        AnswerBody::Full(body) => StreamBody {
            ready: Some(body),
            relay: None,
            reset_at: None,
            timer,
            drain,
            _stream: Some(stream),
        },
        AnswerBody::Relay(mut relay) => {
            let held = Some(relay.take_held()).filter(|held| !held.is_empty());
            StreamBody {
                ready: held,
                relay: Some(relay),
                reset_at: None,
                timer,
                drain,
                _stream: Some(stream),
            }
        }
    };
    response.body(body).unwrap_or_else(|_| {
        // A field that HTTP/2 cannot carry: the endpoint's fault, and not to be passed on.
        let body = StreamBody {
            ready: None,
            relay: None,
            reset_at: None,
            timer: Timer::default(),
            drain: Drain::new(tokio::sync::watch::channel(crate::Phase::Serving).1),
            _stream: None,
        };
        let mut response = http::Response::new(body);
        *response.status_mut() = http::StatusCode::BAD_GATEWAY;
        response
    })
}

/// An answer's body as hyper takes it.
struct StreamBody {
    ready: Option<Bytes>,
    relay: Option<Box<Relay>>,
    /// The last words are said; when the reset follows.
    reset_at: Option<Instant>,
    timer: Timer,
    drain: Drain,
    _stream: Option<OpenStream>,
}

/// Makes hyper reset the stream: its client must not take the answer for complete.
#[derive(Debug, thiserror::Error)]
#[error("the answer is incomplete")]
struct Incomplete;

impl Body for StreamBody {
    type Data = Bytes;
    type Error = Incomplete;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Incomplete>>> {
        let this = &mut *self;
        if let Some(ready) = this.ready.take() {
            return Poll::Ready(Some(Ok(Frame::data(ready))));
        }
        if let Some(reset_at) = this.reset_at {
            return this.timer.poll(cx, reset_at).map(|()| {
                this.reset_at = None;
                Some(Err(Incomplete))
            });
        }
        let Some(relay) = &mut this.relay else { return Poll::Ready(None) };
        if this.drain.poll_deadline(cx).is_ready() {
            let farewell = relay.cut_for_drain();
            return Poll::Ready(this.last_words(farewell));
        }
        let mut payload = BytesMut::new();
        let step = relay.poll(cx, &mut this.timer, |_, bytes, runs| {
            for run in runs {
                payload.extend_from_slice(&bytes[run.clone()]);
            }
        });
        match step {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Step::Payload) => Poll::Ready(Some(Ok(Frame::data(payload.freeze())))),
            Poll::Ready(Step::End) => {
                this.relay = None;
                Poll::Ready(None)
            }
            Poll::Ready(Step::Broken) => {
                let farewell = relay.take_farewell();
                Poll::Ready(this.last_words(farewell))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_none() && self.relay.is_none() && self.reset_at.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let ready = self.ready.as_ref().map_or(0, Bytes::len) as u64;
        match &self.relay {
            None if self.reset_at.is_some() => SizeHint::default(),
            None => SizeHint::with_exact(ready),
            Some(relay) => relay
                .length()
                .map_or_else(SizeHint::default, |left| SizeHint::with_exact(left + ready)),
        }
    }
}

impl StreamBody {
    /// The error event first, then the reset.
    fn last_words(&mut self, farewell: Option<Bytes>) -> Option<Result<Frame<Bytes>, Incomplete>> {
        self.relay = None;
        self.reset_at = farewell.is_some().then(|| deadline_in(LAST_WORDS));
        Some(farewell.map(Frame::data).ok_or(Incomplete))
    }
}
