//! Streams that no proxy should open, and those that end early.

use telemetry::metrics::labels::{ImmediateCode, StreamEnd};
use tonic::Code;
use wicketgate_extproc::wire::{HeaderMap, HeaderValue, HttpHeaders, Request, Response};

use crate::client::{ASKING, Stream, body, chat, connect};
use crate::server::Server;

#[tokio::test]
async fn a_request_is_answered_head_first() {
    let server = Server::start("", None).await;
    let mut stream = Stream::open(connect(server.ext_proc).await).await.unwrap();
    stream.send(chat()).await;
    stream.send(body(ASKING, true)).await;
    let head = stream.next().await.unwrap().unwrap();
    assert!(matches!(head.response, Some(Response::RequestHeaders(_))));
    let piece = stream.next().await.unwrap().unwrap();
    assert!(matches!(piece.response, Some(Response::RequestBody(_))));
    assert_eq!(server.in_flight(), 1);
}

#[tokio::test]
async fn a_body_before_its_head_is_an_error_of_the_proxy() {
    let server = Server::start("", None).await;
    let mut stream = Stream::open(connect(server.ext_proc).await).await.unwrap();
    stream.send(body("x", true)).await;
    assert_eq!(stream.error().await.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn an_error_of_ours_is_an_answer_and_then_a_clean_end() {
    let server = Server::start("", None).await;
    let mut stream = Stream::open(connect(server.ext_proc).await).await.unwrap();
    stream.send(chat()).await;
    stream.send(body("{", true)).await;
    let answer = stream.next().await.unwrap().unwrap();
    assert!(matches!(answer.response, Some(Response::Immediate(_))));
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_chunk_beyond_every_limit_is_refused_before_it_is_held() {
    let small = "  limits: { requestBodyBytesMax: 65536, multipartBodyBytesMax: 65536 }\n";
    let server = Server::start(small, None).await;
    let mut stream = Stream::open(connect(server.ext_proc).await).await.unwrap();
    stream.send(chat()).await;
    stream.send(body(vec![b' '; 4 << 20], false)).await;
    let code = stream.error().await.code();
    assert!(matches!(code, Code::OutOfRange | Code::ResourceExhausted), "{code}");
    server
        .until("the request is off the books", |server| {
            server.gateway.metrics.gateway().requests_open.get() == 0
        })
        .await;
}

#[tokio::test]
async fn a_stream_that_the_proxy_ends_gives_its_credit_back() {
    let server = Server::start("", None).await;
    let channel = connect(server.ext_proc).await;
    // Once with a clean end of its side, once by leaving.
    for leaves in [false, true] {
        let mut stream = Stream::open(channel.clone()).await.unwrap();
        stream.send(chat()).await;
        stream.send(body(ASKING, true)).await;
        stream.next().await.unwrap().unwrap();
        assert_eq!(server.in_flight(), 1);
        if leaves {
            drop(stream);
        } else {
            stream.sender = None;
            while let Some(answer) = stream.next().await {
                answer.unwrap();
            }
        }
        server.until("the credit is back", |server| server.in_flight() == 0).await;
    }
}

#[tokio::test]
async fn a_body_that_never_ends_is_given_up_in_time() {
    let hasty = "  timeouts: { requestBody: 200ms }\n";
    let server = Server::start(hasty, None).await;
    let mut stream = Stream::open(connect(server.ext_proc).await).await.unwrap();
    stream.send(chat()).await;
    stream.send(body("{", false)).await;
    let answer = stream.next().await.unwrap().unwrap();
    let Some(Response::Immediate(immediate)) = answer.response else { panic!("{answer:?}") };
    assert_eq!(immediate.status.unwrap().code, 408);
    assert_eq!(server.gateway.metrics.gateway().requests_open.get(), 0);
}

#[tokio::test]
async fn an_unknown_method_is_unimplemented() {
    let server = Server::start("", None).await;
    for address in [server.health, server.ext_proc] {
        let mut grpc = tonic::client::Grpc::new(connect(address).await);
        grpc.ready().await.unwrap();
        let codec = tonic_prost::ProstCodec::<
            wicketgate_extproc::wire::health::HealthCheckRequest,
            wicketgate_extproc::wire::health::HealthCheckResponse,
        >::default();
        let path = "/grpc.health.v1.Health/List".parse().unwrap();
        let request = tonic::Request::new(Default::default());
        let answer = grpc.unary(request, path, codec).await;
        assert_eq!(answer.unwrap_err().code(), Code::Unimplemented);
    }
    let probe = Stream::open(connect(server.health).await).await;
    assert_eq!(probe.err().unwrap().code(), Code::Unimplemented, "health only");
}

#[tokio::test]
async fn every_stream_is_counted_by_how_it_ended() {
    let server = Server::start("", None).await;
    let metrics = &server.gateway.metrics.gateway().extproc;
    let count = |end| metrics.streams.of(end).get();
    let channel = connect(server.ext_proc).await;

    let mut passed = Stream::open(channel.clone()).await.unwrap();
    passed.send(chat()).await;
    passed.send(body(ASKING, true)).await;
    passed.next().await.unwrap().unwrap();
    passed.next().await.unwrap().unwrap();
    assert_eq!(metrics.streams_open.get(), 1);
    let headers = vec![HeaderValue::new(":status", "200")];
    passed
        .send(Request::ResponseHeaders(HttpHeaders {
            headers: Some(HeaderMap { headers }),
            end_of_stream: true,
        }))
        .await;
    passed.next().await.unwrap().unwrap();
    passed.sender = None;
    assert!(passed.next().await.is_none());

    let mut refused = Stream::open(channel.clone()).await.unwrap();
    refused.send(chat()).await;
    refused.send(body("{", true)).await;
    refused.next().await.unwrap().unwrap();
    assert!(refused.next().await.is_none());

    let mut left = Stream::open(channel.clone()).await.unwrap();
    left.send(chat()).await;
    left.send(body(ASKING, true)).await;
    left.next().await.unwrap().unwrap();
    drop(left);

    let mut disordered = Stream::open(channel).await.unwrap();
    disordered.send(body("x", true)).await;
    disordered.error().await;

    server
        .until("all streams are counted", |server| {
            server.gateway.metrics.gateway().extproc.streams_open.get() == 0
        })
        .await;
    for end in [StreamEnd::Complete, StreamEnd::Answered, StreamEnd::Left, StreamEnd::Violation] {
        assert_eq!(count(end), 1, "{end:?}");
    }
    assert_eq!(metrics.stream_duration.count(), 4);
    assert_eq!(metrics.immediate_responses.of(ImmediateCode::BadRequest).get(), 1);
}

#[tokio::test]
async fn the_page_has_the_names_that_the_document_wants() {
    for (names, ours, theirs) in
        [("wicketgate", true, false), ("field", false, true), ("both", true, true)]
    {
        let server =
            Server::start(&format!("  observability: {{ metricNames: {names} }}\n"), None).await;
        let page = server.gateway.metrics_page(telemetry::clock::now());
        assert_eq!(page.contains("\nwicketgate_extproc_streams_open 0"), ours, "{names}");
        assert_eq!(page.contains("\nllm_d_epp_extproc_streams_inflight 0"), theirs, "{names}");
    }
}
