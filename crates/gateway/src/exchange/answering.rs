//! An answer on its way to the client: what it teaches, and how it ends badly.

use bytes::Bytes;
use openai::ErrorObject;
use types::Timestamp;

use super::{Ending, Exchange};
use crate::refusal::Component;

impl Exchange {
    /// Payload of the answer, as the endpoint sent it, before it goes to the client.
    pub fn payload(&mut self, bytes: &[u8], now: Timestamp) {
        let gap = self.watching.payload(bytes, now);
        if gap.is_first_token {
            // Only a stream of tokens tells how long the prompt took; a whole answer or an error
            // would teach a wrong speed.
            let is_of_stream = self.watching.is_event_stream()
                && !self.watching.opened_with_error()
                && (200..300).contains(&self.status);
            if let Some(reservation) = &mut self.reservation {
                if is_of_stream {
                    reservation.first_token(now);
                    self.compare_prediction(now);
                } else {
                    reservation.answered(now);
                }
            }
            if let Some(reservation) = &self.reservation {
                self.batch_at_first = reservation.state().decoding(now);
            }
        }
        if gap.is_first {
            self.attempt_pays(now);
        }
        if gap.is_first {
            self.note_answered();
            self.tell_payload(gap.is_first_token, now);
        }
        if gap.is_first && !self.gateway.is_recording() {
            self.gateway.give_back_hashes(std::mem::take(&mut self.hashes));
        }
        if let (Some(target), true, false) = (&self.target, self.stream, self.is_copy()) {
            let metrics = &target.pool.metrics;
            match gap.since_last {
                _ if gap.is_first_token => {
                    metrics.request_ttft.observe(now.since(self.meta.received));
                }
                Some(since) => metrics.stream_gap.observe(since),
                None => {}
            }
        }
    }

    /// Holds the time that was foreseen against the one that it took.
    fn compare_prediction(&self, now: Timestamp) {
        if let (Some(predicted), Some(current), Some(target)) =
            (self.predicted(), self.current(), &self.target)
        {
            let observed = now.since(self.dispatched);
            let metrics = &target.pool.metrics;
            current.member.predictions.compare(predicted, observed, metrics);
        }
    }

    /// Whether a stream came to its end without saying so: its client must not take it for whole.
    pub fn stream_is_unfinished(&self) -> bool {
        self.watching.stream_is_unfinished()
    }

    /// What to tell a client whose answer broke after it had begun; `None` where its form has no
    /// room for it.
    pub fn farewell(&mut self, ending: Ending) -> Option<Bytes> {
        let (code, message) = match ending {
            Ending::EndpointCut => {
                ("endpoint_cut", "the endpoint closed the connection in the middle of its answer")
            }
            Ending::EndpointUnfinished => {
                ("endpoint_unfinished", "the endpoint's stream ended without its end mark")
            }
            Ending::EndpointMalformed => {
                ("endpoint_malformed", "the endpoint's answer is framed wrongly")
            }
            Ending::EndpointStalled => ("endpoint_stalled", "the endpoint stopped sending"),
            Ending::Drained => ("draining", "the gateway is shutting down"),
            Ending::Complete | Ending::ClientGone | Ending::ClientSlow | Ending::Refused => {
                return None;
            }
        };
        let component = match ending {
            Ending::Drained => Component::Edge,
            _ if self.member_name().is_some() => Component::Member,
            _ => Component::Endpoint,
        };
        self.error = Some((component, code));
        if !self.watching.is_event_stream() {
            return None;
        }
        let status = if ending == Ending::EndpointStalled { 504 } else { 502 };
        let object = ErrorObject {
            status,
            message,
            kind: crate::refusal::kind_of(status),
            code,
            param: None,
            reason: None,
        };
        let event = object.to_sse_event(self.meta.route);
        if self.watching.at_event_boundary() {
            return Some(event);
        }
        // Half an event stands on the wire; without an end of its own it would swallow ours.
        Some(Bytes::from([b"\n\n", &event[..]].concat()))
    }

    /// The error that a stream begins with, as a status and a body, while nothing is committed.
    pub fn opening_error(&self, held: &[u8]) -> Option<(u16, Bytes)> {
        if !self.watching.opened_with_error() {
            return None;
        }
        let text = std::str::from_utf8(held).ok()?;
        let data = text.lines().find_map(|line| line.strip_prefix("data:"))?.trim();
        let error: serde_json::Value = serde_json::from_str(data).ok()?;
        let status = [&error["error"]["code"], &error["code"], &error["error"]["status"]]
            .into_iter()
            .find_map(|code| code.as_u64().and_then(|code| u16::try_from(code).ok()))
            .filter(|code| (400..600).contains(code))
            .unwrap_or(502);
        Some((status, Bytes::copy_from_slice(data.as_bytes())))
    }

    /// Books a stream that was turned into an error with a status.
    pub fn failed_in_band(&mut self, status: u16, now: Timestamp) {
        self.status = status;
        self.error = Some((Component::Endpoint, "endpoint_error"));
        self.finish(Ending::Complete, now);
    }

    /// Books an answer that needed no endpoint.
    pub fn answered_ourselves(&mut self, status: u16, now: Timestamp) {
        self.status = status;
        self.finish(Ending::Complete, now);
    }
}
