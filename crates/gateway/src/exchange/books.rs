//! What is written down when a request has ended.

use prefix::Answer;
use telemetry::metrics::labels;
use telemetry::{Entry, access_log::ClosedBy, clock};
use types::Timestamp;

use super::journey::Ended;
use super::{Ending, Exchange};
use crate::refusal::Component;

impl Exchange {
    pub(super) fn close_books(&mut self, ending: Ending, now: Timestamp) -> labels::Outcome {
        let outcome = self.outcome(ending);
        self.count(ending, outcome, now);
        self.correct_belief();
        self.account(now);
        let closed_by = match ending {
            Ending::Complete => ClosedBy::Done,
            Ending::ClientGone | Ending::ClientSlow => ClosedBy::Client,
            Ending::Drained | Ending::Refused => ClosedBy::Gateway,
            _ => ClosedBy::Endpoint,
        };
        let ended = Ended { outcome, closed_by, now, wall: clock::wall() };
        self.log(&ended);
        self.close_journey(&ended);
        outcome
    }

    /// Tells the prefix index what the endpoint really had of the prompt, where the answer says so.
    fn correct_belief(&self) {
        let (Some(usage), Some(current), Some(target)) =
            (self.watching.usage(), self.current(), &self.target)
        else {
            return;
        };
        if let (Some(template), Some(cached)) = (self.template, usage.cached_tokens) {
            self.gateway.templates.answered(template, usage.prompt_tokens, cached);
        }
        // Of a prompt with images nobody knows which share of its tokens is text.
        if self.prompt.blocks == 0 || self.prompt.has_media {
            return;
        }
        let tokens = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let answer = Answer {
            cached_tokens: usage.cached_tokens.map(tokens),
            prompt_tokens: tokens(usage.prompt_tokens),
            estimated_tokens: self.prompt.tokens,
            block_tokens: self.gateway.block_tokens(),
            engine_block_tokens: current.member.blocks().map_or(0, |(size, _)| size),
        };
        self.gateway.index.correct(current.member.endpoint.slot, &self.belief, &answer);
        if answer.cached_tokens.is_some() {
            let block_tokens = u64::from(answer.block_tokens);
            let believed = u64::from(self.belief.blocks()) * block_tokens;
            let found = u64::from(answer.found_blocks()) * block_tokens;
            target.pool.metrics.prefix_tokens_believed.add(believed);
            target.pool.metrics.prefix_tokens_found.add(found);
        }
    }

    pub(super) fn outcome(&self, ending: Ending) -> labels::Outcome {
        match ending {
            Ending::Complete if self.watching.saw_error() => labels::Outcome::EndpointError,
            Ending::Complete | Ending::Refused => match (self.status, self.error) {
                (429 | 503, Some((Component::Flow | Component::Picker | Component::Limit, _))) => {
                    labels::Outcome::Shed
                }
                (429, _) => labels::Outcome::Shed,
                (400..500, _) => labels::Outcome::ClientError,
                (500.., Some((component, _)))
                    if !matches!(component, Component::Endpoint | Component::Member) =>
                {
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
        // A client that left before an answer is booked as others do: 499.
        let status = if self.status == 0 { 499 } else { self.status };
        metrics.responses.of(labels::Code::of(status)).inc();
        metrics.request_duration.observe(now.since(self.meta.received));
        if self.tried > 0 {
            target.pool.pace.completed(now);
        }
        if self.status == 429 {
            let reason = match (self.dropped, self.error) {
                (Some(dropped), _) => dropped,
                (None, Some(_)) => labels::Rejection::Saturated,
                (None, None) => labels::Rejection::Endpoint,
            };
            metrics.requests_rejected.of(reason).inc();
            if let (Some(dropped), Some(band), Some(flow)) =
                (self.dropped, self.band, metrics.flow.get())
            {
                flow.shed.of(band).of(dropped).inc();
            }
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
            metrics.request_input_tokens.observe(usage.prompt_tokens as f64);
            metrics.request_output_tokens.observe(usage.completion_tokens as f64);
        } else if let Some(events) = self.watching.content_events() {
            // No usage: cut short, or not asked for. The events are what the client got.
            metrics.output_tokens.add(events);
        }
        let tokens = self.watching.usage().map_or_else(
            || self.watching.content_events().unwrap_or(0),
            |usage| usage.completion_tokens,
        );
        if self.stream
            && let (Some(first), Some(last)) = (self.watching.first_token, self.watching.last)
            && let Ok(gaps @ 1..) = u32::try_from(tokens.saturating_sub(1))
        {
            metrics.time_per_output_token.observe(last.since(first) / gaps);
        }
    }

    /// A client that left before an answer is booked as others do: 499.
    pub(super) fn status_shown(&self) -> u16 {
        if self.status == 0 { 499 } else { self.status }
    }

    fn log(&self, ended: &Ended) {
        let usage = self.watching.usage();
        let duration = ended.now.since(self.meta.received);
        let current = self.current();
        self.gateway.access_log.record(&Entry {
            time: ended.wall - duration,
            request_id: self.meta.id.as_str(),
            trace: self.trace_id(),
            tenant: Some(&self.meta.caller.tenant),
            client: Some(self.meta.client),
            method: self.meta.method.as_str(),
            route: route_label(self.meta.route),
            model: self.target.as_ref().map(|target| &target.name),
            rewrite: self.rewrite_name(),
            pool: self.target.as_ref().map(|target| &target.pool.name),
            endpoint: current.map(|current| current.member.authority.as_str()),
            status: self.status_shown(),
            component: self.error.map(|(component, _)| component.as_str()),
            code: self.error.map(|(_, code)| code),
            attempts: u32::try_from(self.tried).unwrap_or(u32::MAX),
            stream: self.stream,
            bytes_in: self.bytes_in,
            bytes_out: self.watching.bytes_out,
            prompt_tokens: usage.map(|usage| usage.prompt_tokens),
            completion_tokens: usage.map(|usage| usage.completion_tokens),
            cached_tokens: usage.and_then(|usage| usage.cached_tokens),
            ttft: self.ttft(),
            predicted: self.predicted(),
            duration,
            priority: self.priority_in_force(),
            objective: self.objective_shown(),
            queue: self.waited(ended.now),
            pick: self.pick_took,
            outcome: ended.outcome,
            closed_by: ended.closed_by,
        });
    }
}

/// A route as a label.
pub(super) fn route_label(route: openai::Route) -> labels::Route {
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
