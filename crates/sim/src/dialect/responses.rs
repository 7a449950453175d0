//! `/v1/responses`, OpenAI's event dialect.

use super::{Dialect, Naming, Piece, Usage, event, quoted};
use crate::metrics::Finish;

pub(super) struct Responses {
    naming: Naming,
    sequence: u32,
    text: String,
    length: bool,
}

impl Responses {
    pub(super) fn new(naming: Naming) -> Self {
        Self { naming, sequence: 0, text: String::new(), length: false }
    }

    fn emit(&mut self, out: &mut Vec<u8>, name: &str, fields: &str) {
        let data =
            format!("{{\"type\":\"{name}\",\"sequence_number\":{},{fields}}}", self.sequence);
        self.sequence += 1;
        event(out, Some(name), &data);
    }

    fn response(&self, status: &str, output: &str, usage: Option<&str>) -> String {
        let Naming { id, created, model } = &self.naming;
        let incomplete = match status {
            "incomplete" => "{\"reason\":\"max_output_tokens\"}",
            _ => "null",
        };
        format!(
            "{{\"id\":\"resp_{id}\",\"object\":\"response\",\"created_at\":{created},\
             \"status\":\"{status}\",\"error\":null,\"incomplete_details\":{incomplete},\
             \"instructions\":null,\"metadata\":{{}},\"model\":{model},\"output\":[{output}],\
             \"parallel_tool_calls\":true,\"temperature\":1.0,\"tool_choice\":\"auto\",\
             \"tools\":[],\"top_p\":1.0,\"usage\":{}}}",
            usage.unwrap_or("null")
        )
    }

    fn part(text: &str) -> String {
        format!(
            "{{\"type\":\"output_text\",\"text\":{},\"annotations\":[],\"logprobs\":null}}",
            quoted(text)
        )
    }

    fn item(&self, status: &str, content: &str) -> String {
        let id = &self.naming.id;
        format!(
            "{{\"id\":\"msg_{id}\",\"type\":\"message\",\"role\":\"assistant\",\
             \"status\":\"{status}\",\"content\":[{content}]}}"
        )
    }

    fn status(length: bool) -> &'static str {
        if length { "incomplete" } else { "completed" }
    }
}

impl Dialect for Responses {
    fn begin(&mut self, out: &mut Vec<u8>, _: &Usage) {
        let response = format!("\"response\":{}", self.response("in_progress", "", None));
        self.emit(out, "response.created", &response);
        self.emit(out, "response.in_progress", &response);
        let item = format!("\"output_index\":0,\"item\":{}", self.item("in_progress", ""));
        self.emit(out, "response.output_item.added", &item);
        let place = format!(
            "\"item_id\":\"msg_{}\",\"output_index\":0,\"content_index\":0",
            self.naming.id
        );
        let part = format!("{place},\"part\":{}", Self::part(""));
        self.emit(out, "response.content_part.added", &part);
    }

    fn token(&mut self, out: &mut Vec<u8>, piece: Piece<'_>, _: &Usage) {
        let delta = format!(
            "\"item_id\":\"msg_{}\",\"output_index\":0,\"content_index\":0,\"delta\":\"{}\",\
             \"logprobs\":[]",
            self.naming.id, piece.text
        );
        self.text.push_str(piece.text);
        self.length |= piece.finish == Some(Finish::Length);
        self.emit(out, "response.output_text.delta", &delta);
    }

    fn end(&mut self, out: &mut Vec<u8>, usage: &Usage, terminal: bool) {
        let text = std::mem::take(&mut self.text);
        let place = format!(
            "\"item_id\":\"msg_{}\",\"output_index\":0,\"content_index\":0",
            self.naming.id
        );
        let done = format!("{place},\"text\":{},\"logprobs\":[]", quoted(&text));
        self.emit(out, "response.output_text.done", &done);
        let part = format!("{place},\"part\":{}", Self::part(&text));
        self.emit(out, "response.content_part.done", &part);
        let item = self.item(Self::status(self.length), &Self::part(&text));
        self.emit(out, "response.output_item.done", &format!("\"output_index\":0,\"item\":{item}"));
        if terminal {
            let status = Self::status(self.length);
            let usage = usage.input_output();
            let response = self.response(status, &item, usage.as_deref());
            let name = format!("response.{status}");
            self.emit(out, &name, &format!("\"response\":{response}"));
        }
    }

    fn whole(&self, answers: &[(String, Finish)], usage: &Usage) -> Vec<u8> {
        let length = answers.iter().any(|(_, finish)| *finish == Finish::Length);
        let status = Self::status(length);
        let items: Vec<String> =
            answers.iter().map(|(text, _)| self.item(status, &Self::part(text))).collect();
        let usage = usage.input_output();
        self.response(status, &items.join(","), usage.as_deref()).into_bytes()
    }

    fn repeats(&self) -> bool {
        false
    }
}
