//! A client of both services, without generated code.

use std::net::SocketAddr;

use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;
use wicketgate_extproc::wire::health::{HealthCheckRequest, HealthCheckResponse};
use wicketgate_extproc::wire::{
    HeaderMap, HeaderValue, HttpBody, HttpHeaders, ProcessingRequest, ProcessingResponse, Request,
};

use crate::server::PATIENCE;

pub(crate) async fn connect(to: SocketAddr) -> Channel {
    Endpoint::new(format!("http://{to}")).unwrap().connect().await.unwrap()
}

/// An open stream.
pub(crate) struct Stream {
    pub(crate) sender: Option<mpsc::Sender<ProcessingRequest>>,
    answers: Streaming<ProcessingResponse>,
}

impl Stream {
    pub(crate) async fn open(channel: Channel) -> Result<Self, Status> {
        let (sender, messages) = mpsc::channel(1);
        let mut grpc = Grpc::new(channel);
        grpc.ready().await.unwrap();
        let path = "/envoy.service.ext_proc.v3.ExternalProcessor/Process".parse().unwrap();
        let request = tonic::Request::new(ReceiverStream::new(messages));
        let codec = ProstCodec::<ProcessingRequest, ProcessingResponse>::default();
        let answers = grpc.streaming(request, path, codec).await?.into_inner();
        Ok(Self { sender: Some(sender), answers })
    }

    pub(crate) async fn send(&self, request: Request) {
        let message = ProcessingRequest { request: Some(request), ..ProcessingRequest::default() };
        self.sender.as_ref().unwrap().send(message).await.unwrap();
    }

    /// The next answer; `None` at a clean end.
    pub(crate) async fn next(&mut self) -> Option<Result<ProcessingResponse, Status>> {
        timeout(PATIENCE, self.answers.next()).await.expect("an answer in time")
    }

    pub(crate) async fn error(&mut self) -> Status {
        loop {
            match self.next().await {
                Some(Ok(_)) => {}
                Some(Err(status)) => return status,
                None => panic!("the stream ended cleanly"),
            }
        }
    }
}

pub(crate) fn chat() -> Request {
    let fields = [
        (":method", "POST"),
        (":path", "/v1/chat/completions"),
        ("content-type", "application/json"),
    ];
    let headers = fields.iter().map(|(name, value)| HeaderValue::new(*name, *value)).collect();
    Request::RequestHeaders(HttpHeaders {
        headers: Some(HeaderMap { headers }),
        end_of_stream: false,
    })
}

pub(crate) fn body(bytes: impl Into<bytes::Bytes>, end_of_stream: bool) -> Request {
    Request::RequestBody(HttpBody { body: bytes.into(), end_of_stream })
}

pub(crate) const ASKING: &str = r#"{"model":"llama","messages":[{"role":"user","content":"hi"}]}"#;

pub(crate) async fn check(channel: Channel, service: &str) -> Result<i32, Status> {
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.unwrap();
    let request = tonic::Request::new(HealthCheckRequest { service: service.to_owned() });
    let codec = ProstCodec::<HealthCheckRequest, HealthCheckResponse>::default();
    let path = "/grpc.health.v1.Health/Check".parse().unwrap();
    Ok(grpc.unary(request, path, codec).await?.into_inner().status)
}

pub(crate) async fn watch(channel: Channel, service: &str) -> Streaming<HealthCheckResponse> {
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.unwrap();
    let request = tonic::Request::new(HealthCheckRequest { service: service.to_owned() });
    let codec = ProstCodec::<HealthCheckRequest, HealthCheckResponse>::default();
    let path = "/grpc.health.v1.Health/Watch".parse().unwrap();
    grpc.server_streaming(request, path, codec).await.unwrap().into_inner()
}
