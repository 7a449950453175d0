//! `grpc.health.v1`, by which proxies and orchestrators decide whether to ask us.

use std::sync::Arc;

use gateway::Gateway;
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt};
use tonic::codegen::BoxFuture;
use tonic::server::{ServerStreamingService, UnaryService};
use tonic::{Request, Response, Status};

use crate::wire::health::{HealthCheckRequest, HealthCheckResponse, ServingStatus};

/// Names under which our readiness is asked for: the empty one, that of the protocol, and those of
/// charts and proxies in the field.
const READINESS: [&str; 4] =
    ["", "readiness", "envoy.service.ext_proc.v3.ExternalProcessor", "inference-extension"];
/// Serving whenever we can answer at all.
const LIVENESS: &str = "liveness";

/// Answers about health.
#[derive(Clone)]
pub(crate) struct Health {
    gateway: Arc<Gateway>,
    /// Follows the gateway, a moment later.
    is_ready: watch::Receiver<bool>,
}

enum Subject {
    Readiness,
    Liveness,
    Unknown,
}

impl Health {
    pub(crate) fn new(gateway: Arc<Gateway>, is_ready: watch::Receiver<bool>) -> Self {
        Self { gateway, is_ready }
    }

    fn check(&self, service: &str) -> Result<ServingStatus, Status> {
        match subject(service) {
            Subject::Liveness => Ok(ServingStatus::Serving),
            Subject::Readiness => Ok(status(self.gateway.is_ready())),
            Subject::Unknown => Err(Status::not_found("no service of this name")),
        }
    }
}

fn subject(service: &str) -> Subject {
    if service == LIVENESS {
        Subject::Liveness
    } else if READINESS.contains(&service) {
        Subject::Readiness
    } else {
        Subject::Unknown
    }
}

fn status(is_ready: bool) -> ServingStatus {
    if is_ready { ServingStatus::Serving } else { ServingStatus::NotServing }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status as i32 }
}

/// `Check`.
pub(crate) struct Check(pub(crate) Health);

impl UnaryService<HealthCheckRequest> for Check {
    type Response = HealthCheckResponse;
    type Future = std::future::Ready<Result<Response<HealthCheckResponse>, Status>>;

    fn call(&mut self, request: Request<HealthCheckRequest>) -> Self::Future {
        let status = self.0.check(&request.get_ref().service);
        std::future::ready(status.map(|status| Response::new(response(status))))
    }
}

/// `Watch`: the state now, and again whenever it changes.
pub(crate) struct Watch(pub(crate) Health);

impl ServerStreamingService<HealthCheckRequest> for Watch {
    type Response = HealthCheckResponse;
    type ResponseStream =
        std::pin::Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;
    type Future = BoxFuture<Response<Self::ResponseStream>, Status>;

    fn call(&mut self, request: Request<HealthCheckRequest>) -> Self::Future {
        let states: Self::ResponseStream = match subject(&request.get_ref().service) {
            Subject::Readiness => {
                let states = WatchStream::new(self.0.is_ready.clone());
                Box::pin(states.map(|is_ready| Ok(response(status(is_ready)))))
            }
            Subject::Liveness => lasting(ServingStatus::Serving),
            // The protocol wants it told and kept open: the service might come.
            Subject::Unknown => lasting(ServingStatus::ServiceUnknown),
        };
        Box::pin(std::future::ready(Ok(Response::new(states))))
    }
}

fn lasting(
    status: ServingStatus,
) -> std::pin::Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>> {
    Box::pin(tokio_stream::once(Ok(response(status))).chain(tokio_stream::pending()))
}
