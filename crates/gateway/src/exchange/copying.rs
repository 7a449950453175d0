//! The copy of a request: sent to a further model, answered to nobody.
//!
//! It books credit on its endpoint, as it is work for it, and teaches that endpoint's speed. It
//! counts in no metric and no log of requests, and is never tried twice.

use std::sync::Arc;

use bytes::Bytes;
use openai::BodyKind;
use telemetry::clock;
use telemetry::metrics::labels::{self, MirrorOutcome};
use types::Timestamp;

use super::{Ending, Exchange, RequestMeta};
use crate::refusal::Refusal;
use crate::rewrite::CopyPermit;

impl Exchange {
    /// A copy of this request, if its rule wants one and there is room. To be asked once, after
    /// [`Self::place`].
    ///
    /// * `memory_bytes`: that the process may use, if that is known.
    pub fn copy(&self, body: &[u8], memory_bytes: Option<u64>) -> Option<Self> {
        let mirroring = self.rewritten.as_ref()?.rule().mirroring.as_ref()?;
        let budget = self.gateway.spec().limits.buffered_body_bytes(memory_bytes);
        let permit = mirroring.permit(&self.gateway, body.len(), budget)?;
        let meta = RequestMeta {
            id: self.meta.id.clone(),
            method: self.meta.method.clone(),
            route: self.meta.route,
            client: self.meta.client,
            received: clock::now(),
            session: self.meta.session,
            pool: None,
            caller: self.meta.caller.clone(),
            wishes: self.meta.wishes.clone(),
        };
        let mut copy = Self::blank(Arc::clone(&self.gateway), meta);
        copy.permit = Some(permit);
        Some(copy)
    }

    /// Chooses an endpoint for the copy; the body as it is to be sent there.
    pub fn place_copy(
        &mut self,
        body: &[u8],
        content_type: Option<&str>,
        now: Timestamp,
    ) -> Result<Option<Bytes>, Refusal> {
        let said = self.read(body, content_type)?;
        let Some(permit) = &self.permit else { return Ok(None) };
        let name = permit.name.clone();
        self.target = Some(permit.target.clone());
        self.stream = said.stream;
        self.hash(body, &said);
        self.choose(now)?;
        let is_json = self.meta.route.body() == BodyKind::Json;
        let literal = said.model.map(|model| model.literal);
        Ok(literal.and_then(|at| openai::with_model(body, at, name.as_str(), is_json)))
    }

    pub(super) fn is_copy(&self) -> bool {
        self.permit.is_some()
    }

    /// Books the end of a copy.
    pub(super) fn finish_copy(&self, permit: &CopyPermit, ending: Ending, now: Timestamp) {
        let outcome = self.outcome(ending);
        match outcome {
            labels::Outcome::Ok => permit.count(MirrorOutcome::Ok),
            labels::Outcome::EndpointError => permit.count(MirrorOutcome::EndpointError),
            labels::Outcome::ClientError => permit.count(MirrorOutcome::ClientError),
            labels::Outcome::Shed => permit.count(MirrorOutcome::NoRoom),
            // We end ourselves: that says nothing.
            labels::Outcome::GatewayError | labels::Outcome::Cancelled => return,
        }
        let ttft = self.ttft().filter(|_| self.watching.is_event_stream());
        permit.record(self.failed_here(ending, outcome), ttft, now);
    }
}
