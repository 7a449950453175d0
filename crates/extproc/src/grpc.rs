//! The services, by their paths.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::watch;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, StreamingService};
use tonic::{Request, Response, Status, Streaming};

use crate::codec::Protobuf;
use crate::conversation::Conversation;
use crate::health::{Check, Health, Watch};
use crate::replies::Replies;
use crate::server::Phase;
use crate::settings::Picker;
use crate::wire::{ProcessingRequest, ProcessingResponse};

/// What a message may be longer than the piece of a body in it: fields and metadata.
const MESSAGE_OVERHEAD_BYTES: u64 = 1 << 20;

/// Health, and `ext_proc` unless it is only about health.
#[derive(Clone)]
pub(crate) struct Services {
    health: Health,
    processor: Option<Processor>,
}

/// Opens conversations.
#[derive(Clone)]
pub(crate) struct Processor {
    picker: Arc<Picker>,
    phase: watch::Receiver<Phase>,
}

impl Services {
    pub(crate) fn health_only(health: Health) -> Self {
        Self { health, processor: None }
    }

    pub(crate) fn all(health: Health, picker: Arc<Picker>, phase: watch::Receiver<Phase>) -> Self {
        Self { health, processor: Some(Processor { picker, phase }) }
    }
}

impl Service<http::Request<Body>> for Services {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        match request.uri().path() {
            "/envoy.service.ext_proc.v3.ExternalProcessor/Process" => {
                if let Some(processor) = self.processor.clone() {
                    let bytes_max = processor.message_bytes_max();
                    return Box::pin(async move {
                        let mut grpc =
                            Grpc::new(Protobuf::default()).max_decoding_message_size(bytes_max);
                        Ok(grpc.streaming(processor, request).await)
                    });
                }
            }
            "/grpc.health.v1.Health/Check" => {
                let check = Check(self.health.clone());
                return Box::pin(async move {
                    Ok(Grpc::new(Protobuf::default()).unary(check, request).await)
                });
            }
            "/grpc.health.v1.Health/Watch" => {
                let watch = Watch(self.health.clone());
                return Box::pin(async move {
                    Ok(Grpc::new(Protobuf::default()).server_streaming(watch, request).await)
                });
            }
            _ => {}
        }
        Box::pin(async { Ok(Status::unimplemented("no such method here").into_http()) })
    }
}

impl Processor {
    /// Buffered bodies come in one message, so the limit of bodies is that of messages.
    fn message_bytes_max(&self) -> usize {
        let limits = &self.picker.gateway.spec().limits;
        let body = limits.request_body_bytes_max.max(limits.multipart_body_bytes_max);
        usize::try_from(body.saturating_add(MESSAGE_OVERHEAD_BYTES)).unwrap_or(usize::MAX)
    }
}

impl StreamingService<ProcessingRequest> for Processor {
    type Response = ProcessingResponse;
    type ResponseStream = Replies<Streaming<ProcessingRequest>>;
    type Future = std::future::Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<ProcessingRequest>>) -> Self::Future {
        let conversation = Conversation::new(self.picker.clone());
        let replies = Replies::new(request.into_inner(), conversation, self.phase.clone());
        std::future::ready(Ok(Response::new(replies)))
    }
}
