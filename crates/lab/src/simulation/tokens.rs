//! What engines bring forth.

use sim::engine::{Decoded, Event as EngineEvent, RequestTimes};
use types::Timestamp;

use super::{Event, Simulation};
use crate::measure::Fate;

impl Simulation<'_> {
    pub(super) fn end_run(&mut self, endpoint: u32, now: Timestamp) {
        let mut events = std::mem::take(&mut self.engine_events);
        let mut decoded = std::mem::take(&mut self.decoded);
        self.endpoints[endpoint as usize].finish(now, &mut decoded, &mut events);
        self.note_decoded(&decoded);
        self.decoded = decoded;
        let home = &mut self.endpoints[endpoint as usize];
        // Who was let in knows now what was cached, before the step's work is taken off.
        for event in &events {
            if let EngineEvent::Admitted { id, cached_tokens } = event {
                let request = id.0 as u32;
                self.progress[request as usize].cached_tokens = *cached_tokens;
                if let Some(pending) = home.pending_mut(request) {
                    pending.is_admitted = true;
                    pending.left = pending.prompt_tokens.saturating_sub(*cached_tokens);
                }
                if let Some(adapter) = self.requests[request as usize].adapter {
                    home.note_adapter(adapter);
                }
            }
        }
        home.advance_prompts();
        for event in events.drain(..) {
            self.note(event, endpoint, now);
        }
        self.engine_events = events;
        let home = &mut self.endpoints[endpoint as usize];
        home.count_inside(now);
        home.renew_page();
        self.note_queue(endpoint, now);
        self.go_on(endpoint, now);
    }

    /// Tokens of the steps before the last of a run: one for each request at each end.
    pub(super) fn note_decoded(&mut self, decoded: &Decoded) {
        let (Some(first), Some(last)) = (decoded.ends.first(), decoded.ends.last()) else { return };
        let window = self.settings.window();
        let (count, steps) = (decoded.requests.len() as u64, decoded.ends.len() as u32);
        for id in &decoded.requests {
            let request = id.0 as usize;
            self.progress[request].generated += steps;
            let before = std::mem::replace(&mut self.last_token[request], *last);
            if window.contains(first) {
                self.gaps.add(first.since(before), 1);
            }
        }
        for ends in decoded.ends.windows(2) {
            if window.contains(&ends[1]) {
                self.gaps.add(ends[1].since(ends[0]), count);
            }
        }
        let counted = decoded.ends.iter().filter(|end| window.contains(*end)).count() as u64;
        self.window_tokens += count * counted;
    }

    fn note(&mut self, event: EngineEvent, endpoint: u32, now: Timestamp) {
        let seen = now + self.settings.network;
        let home = &mut self.endpoints[endpoint as usize];
        let is_counted = self.settings.window().contains(&now);
        match event {
            EngineEvent::FirstToken { id } => {
                let request = id.0 as u32;
                home.drop_pending(request);
                home.decoding.push(request);
                self.progress[request as usize].generated = 1;
                self.last_token[request as usize] = now;
                self.records[request as usize].first_token = Some(seen);
                self.window_tokens += u64::from(is_counted);
                self.order(seen, Event::FirstToken { request });
            }
            EngineEvent::Token { id } => {
                let request = id.0 as usize;
                self.progress[request].generated += 1;
                let gap = now.since(std::mem::replace(&mut self.last_token[request], now));
                if is_counted {
                    self.window_tokens += 1;
                    self.gaps.add(gap, 1);
                }
            }
            EngineEvent::Finished { id, times } => {
                let request = id.0 as u32;
                home.decoding.retain(|other| *other != request);
                self.finish(request, &times, seen);
            }
            EngineEvent::Preempted { .. }
            | EngineEvent::Admitted { .. }
            | EngineEvent::AdapterLoaded { .. } => {}
        }
    }

    fn finish(&mut self, request: u32, times: &RequestTimes, seen: Timestamp) {
        let record = &mut self.records[request as usize];
        record.fate = Fate::Answered;
        record.finished = Some(seen);
        record.cached_tokens = times.cached_tokens;
        record.preemptions = times.preemptions;
        record.inside = times.finished.since(times.arrived);
        self.order(seen, Event::End { request });
    }
}
