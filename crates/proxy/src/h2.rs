//! HTTP/2 towards clients: hyper carries it, our gate and handlers decide.

mod body;
mod streams;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use crate::drain::Drain;
use crate::handler::Handler;
use crate::head::{
    BodyLength, RequestHead, Turned, Version, check_authority, check_field, refuse_repeats,
};
use crate::settings::Settings;
use crate::timer::{Timer, deadline_in};
use crate::upstream::{LocalExecutor, fields_of};
use body::{StreamBody, response};
use streams::{OpenStream, Streams};

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
    let streams = Streams::default();
    let (stream_drain, opened) = (drain.clone(), streams.clone());
    let slow_reader = settings.slow_reader;
    let answer = service_fn(move |request: http::Request<Incoming>| {
        let handler = handler.clone();
        let settings = settings.clone();
        let drain = stream_drain.clone();
        let stream = opened.open();
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
        let now = Instant::now();
        let mut look_at = None;
        if streams.are_open() {
            idle_at = deadline_in(idle);
            served = true;
            // A client that takes nothing holds its endpoint. hyper asks a blocked stream for
            // nothing, so the stream itself cannot give up; its connection does.
            if streams.blocked_since().is_some_and(|since| since + slow_reader <= now) {
                return Poll::Ready(());
            }
            look_at = Some(now + slow_reader);
        }
        if !told {
            let end = idle_at.min(ends_at);
            // A connection of the drain delay is still good for one request.
            let drained = if served { drain.poll(cx) } else { drain.poll_closed(cx) };
            if drained.is_ready() || end <= now {
                told = true;
                connection.as_mut().graceful_shutdown();
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            look_at = Some(look_at.map_or(end, |look_at| look_at.min(end)));
        }
        if look_at.is_some_and(|look_at| timer.poll(cx, look_at).is_ready()) {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    })
    .await;
}

/// Bytes that one stream may have waiting for a slow client.
const SEND_BUFFER_BYTES: usize = 64 * 1024;

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
    let authority = authority.map(Bytes::copy_from_slice);
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
        authority,
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
