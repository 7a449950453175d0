//! What is written down when a request has ended.

use telemetry::metrics::labels;
use telemetry::{Entry, access_log::ClosedBy, clock};
use types::Timestamp;

use super::{Ending, Exchange};
use crate::refusal::Component;

impl Exchange {
    pub(super) fn close_books(&mut self, ending: Ending, now: Timestamp) {
        let outcome = self.outcome(ending);
        self.count(ending, outcome, now);
        self.log(ending, outcome, now);
    }

    fn outcome(&self, ending: Ending) -> labels::Outcome {
        match ending {
            Ending::Complete if self.watching.saw_error() => labels::Outcome::EndpointError,
            Ending::Complete | Ending::Refused => match (self.status, self.error) {
                (429 | 503, Some((Component::Flow | Component::Picker | Component::Limit, _))) => {
                    labels::Outcome::Shed
                }
                (429, _) => labels::Outcome::Shed,
                (400..500, _) => labels::Outcome::ClientError,
                (500.., Some((component, _))) if component != Component::Endpoint => {
                    labels::Outcome::GatewayError
                }
                (500.., _) => labels::Outcome::EndpointError,
                _ => labels::Outcome::Ok,
            },
            Ending::EndpointCut
            | Ending::EndpointUnfinished
            | Ending::EndpointMalformed
            | Ending::EndpointStalled => labels::Outcome::EndpointError,
            Ending::ClientGone | Ending::ClientSlow => labels::Outcome::Cancelled,
            Ending::Drained => labels::Outcome::GatewayError,
        }
    }

    fn count(&self, ending: Ending, outcome: labels::Outcome, now: Timestamp) {
        self.gateway.metrics.gateway().response_bytes.add(self.watching.bytes_out);
        let Some(target) = &self.target else { return };
        let metrics = &target.pool.metrics;
        metrics.requests_in_flight.dec();
        metrics.requests.of(route_label(self.meta.route)).of(outcome).inc();
        metrics.request_duration.observe(now.since(self.meta.received));
        if self.tried > 0 {
            target.pool.pace.completed(now);
        }
        if self.status == 429 {
            let reason = if self.error.is_some() {
                labels::Rejection::Saturated
            } else {
                labels::Rejection::Endpoint
            };
            metrics.requests_rejected.of(reason).inc();
        }
        let aborted = match ending {
            Ending::EndpointCut | Ending::EndpointMalformed | Ending::EndpointUnfinished => {
                Some(labels::Abort::EndpointCut)
            }
            Ending::EndpointStalled => Some(labels::Abort::Stalled),
            Ending::ClientGone => Some(labels::Abort::ClientGone),
            Ending::ClientSlow => Some(labels::Abort::SlowClient),
            Ending::Drained => Some(labels::Abort::Drained),
            Ending::Complete if self.watching.saw_error() => Some(labels::Abort::EndpointError),
            Ending::Complete | Ending::Refused => None,
        };
        if let Some(reason) = aborted {
            metrics.streams_aborted.of(reason).inc();
        }
        if let Some(usage) = self.watching.usage() {
            metrics.input_tokens.add(usage.prompt_tokens);
            metrics.output_tokens.add(usage.completion_tokens);
            metrics.cached_input_tokens.add(usage.cached_tokens.unwrap_or(0));
        } else if let Some(events) = self.watching.content_events() {
            // No usage: cut short, or not asked for. The events are what the client got.
            metrics.output_tokens.add(events);
        }
        let tokens = self.watching.usage().map_or_else(
            || self.watching.content_events().unwrap_or(0),
            |usage| usage.completion_tokens,
        );
        if self.stream
            && let (Some(first), Some(last)) = (self.watching.first, self.watching.last)
            && let Ok(gaps @ 1..) = u32::try_from(tokens.saturating_sub(1))
        {
            metrics.time_per_output_token.observe(last.since(first) / gaps);
        }
    }

    fn log(&self, ending: Ending, outcome: labels::Outcome, now: Timestamp) {
        let usage = self.watching.usage();
        let duration = now.since(self.meta.received);
        let current = self.current();
        self.gateway.access_log.record(&Entry {
            time: clock::wall() - duration,
            request_id: self.meta.id.as_str(),
            client: Some(self.meta.client),
            method: self.meta.method.as_str(),
            route: route_label(self.meta.route),
            model: self.target.as_ref().map(|target| &target.name),
            pool: self.target.as_ref().map(|target| &target.pool.name),
            endpoint: current.map(|current| current.member.authority.as_str()),
            // A client that left before an answer is booked as others do: 499.
            status: if self.status == 0 { 499 } else { self.status },
            component: self.error.map(|(component, _)| component.as_str()),
            code: self.error.map(|(_, code)| code),
            attempts: u32::try_from(self.tried).unwrap_or(u32::MAX),
            stream: self.stream,
            bytes_in: self.bytes_in,
            bytes_out: self.watching.bytes_out,
            prompt_tokens: usage.map(|usage| usage.prompt_tokens),
            completion_tokens: usage.map(|usage| usage.completion_tokens),
            cached_tokens: usage.and_then(|usage| usage.cached_tokens),
            ttft: self
                .watching
                .first
                .filter(|_| self.stream)
                .map(|first| first.since(self.meta.received)),
            duration,
            queue: None,
            pick: self.pick_took,
            outcome,
            closed_by: match ending {
                Ending::Complete => ClosedBy::Done,
                Ending::ClientGone | Ending::ClientSlow => ClosedBy::Client,
                Ending::Drained | Ending::Refused => ClosedBy::Gateway,
                _ => ClosedBy::Endpoint,
            },
        });
    }
}

/// A route as a label.
pub(crate) fn route_label(route: openai::Route) -> labels::Route {
    use openai::Route;
    match route {
        Route::ChatCompletions => labels::Route::ChatCompletions,
        Route::Completions => labels::Route::Completions,
        Route::Embeddings => labels::Route::Embeddings,
        Route::Responses => labels::Route::Responses,
        Route::Messages => labels::Route::Messages,
        Route::CountTokens => labels::Route::CountTokens,
        Route::Rerank => labels::Route::Rerank,
        Route::Score => labels::Route::Score,
        Route::AudioTranscriptions => labels::Route::Transcriptions,
        Route::Tokenize => labels::Route::Tokenize,
        Route::Detokenize => labels::Route::Detokenize,
        Route::Generate => labels::Route::Generate,
        Route::GenerateStream => labels::Route::GenerateStream,
        Route::Models | Route::Model => labels::Route::Models,
        Route::Opened => labels::Route::Other,
    }
}
