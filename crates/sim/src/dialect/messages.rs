//! `/v1/messages`, Anthropic's dialect.

use super::{Dialect, Naming, Piece, Usage, UsageForm, event, quoted};
use crate::metrics::Finish;

pub(super) struct Messages {
    pub(super) naming: Naming,
    pub(super) stop: Option<Finish>,
}

fn stop_reason(finish: Option<Finish>) -> &'static str {
    match finish {
        Some(Finish::Length) => "\"max_tokens\"",
        Some(Finish::Stop) => "\"end_turn\"",
        None => "null",
    }
}

/// Anthropic counts cached tokens apart from `input_tokens`.
fn counts(usage: &Usage, output_tokens: u32) -> Option<String> {
    let (prompt, cached) = (usage.prompt_tokens, usage.cached_tokens);
    match usage.form {
        UsageForm::Right => Some(format!(
            "{{\"input_tokens\":{},\"cache_read_input_tokens\":{cached},\
             \"output_tokens\":{output_tokens}}}",
            prompt - cached
        )),
        UsageForm::Odd => {
            Some(format!("{{\"input_tokens\":\"{prompt}\",\"output_tokens\":[null]}}"))
        }
        UsageForm::Absent => None,
    }
}

impl Messages {
    fn message(&self, content: &str, stop: Option<Finish>, usage: Option<String>) -> String {
        let Naming { id, model, .. } = &self.naming;
        let usage = usage.map_or(String::new(), |usage| format!(",\"usage\":{usage}"));
        format!(
            "{{\"id\":\"msg_{id}\",\"type\":\"message\",\"role\":\"assistant\",\
             \"content\":[{content}],\"model\":{model},\"stop_reason\":{},\"stop_sequence\":null\
             {usage}}}",
            stop_reason(stop)
        )
    }
}

impl Dialect for Messages {
    fn begin(&mut self, out: &mut Vec<u8>, usage: &Usage) {
        let message = self.message("", None, counts(usage, 0));
        let start = format!("{{\"type\":\"message_start\",\"message\":{message}}}");
        event(out, Some("message_start"), &start);
        event(
            out,
            Some("content_block_start"),
            "{\"type\":\"content_block_start\",\"index\":0,\
             \"content_block\":{\"type\":\"text\",\"text\":\"\"}}",
        );
    }

    fn token(&mut self, out: &mut Vec<u8>, piece: Piece<'_>, _: &Usage) {
        self.stop = piece.finish.or(self.stop);
        let delta = format!(
            "{{\"type\":\"content_block_delta\",\"index\":0,\
             \"delta\":{{\"type\":\"text_delta\",\"text\":\"{}\"}}}}",
            piece.text
        );
        event(out, Some("content_block_delta"), &delta);
    }

    fn end(&mut self, out: &mut Vec<u8>, usage: &Usage, terminal: bool) {
        let stop = "{\"type\":\"content_block_stop\",\"index\":0}";
        event(out, Some("content_block_stop"), stop);
        let counts = counts(usage, usage.completion_tokens)
            .map_or(String::new(), |counts| format!(",\"usage\":{counts}"));
        let delta = format!(
            "{{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":{},\
             \"stop_sequence\":null}}{counts}}}",
            stop_reason(self.stop)
        );
        event(out, Some("message_delta"), &delta);
        if terminal {
            event(out, Some("message_stop"), "{\"type\":\"message_stop\"}");
        }
    }

    fn whole(&self, answers: &[(String, Finish)], usage: &Usage) -> Vec<u8> {
        let content: Vec<String> = answers
            .iter()
            .map(|(text, _)| format!("{{\"type\":\"text\",\"text\":{}}}", quoted(text)))
            .collect();
        let stop = answers.first().map(|(_, finish)| *finish);
        let counts = counts(usage, usage.completion_tokens);
        self.message(&content.join(","), stop, counts).into_bytes()
    }

    fn repeats(&self) -> bool {
        false
    }
}
