//! `/v1/completions`.

use super::{Dialect, Naming, Piece, Usage, event, openai_finish, quoted};
use crate::metrics::Finish;

pub(super) struct Completions {
    pub(super) naming: Naming,
    pub(super) include_usage: bool,
}

impl Completions {
    fn object(&self, choices: &str, usage: &str) -> String {
        let Naming { id, created, model } = &self.naming;
        format!(
            "{{\"id\":\"cmpl-{id}\",\"object\":\"text_completion\",\"created\":{created},\
             \"model\":{model},\"choices\":[{choices}]{usage}}}"
        )
    }

    fn choice(index: usize, text: &str, finish: Option<Finish>) -> String {
        format!(
            "{{\"index\":{index},\"text\":{},\"logprobs\":null,\"finish_reason\":{},\
             \"stop_reason\":null}}",
            quoted(text),
            openai_finish(finish)
        )
    }
}

impl Dialect for Completions {
    fn begin(&mut self, _: &mut Vec<u8>, _: &Usage) {}

    fn token(&mut self, out: &mut Vec<u8>, piece: Piece<'_>, _: &Usage) {
        let choice = Self::choice(piece.choice as usize, piece.text, piece.finish);
        event(out, None, &self.object(&choice, ""));
    }

    fn end(&mut self, out: &mut Vec<u8>, usage: &Usage, terminal: bool) {
        if self.include_usage
            && let Some(usage) = usage.openai()
        {
            event(out, None, &self.object("", &format!(",\"usage\":{usage}")));
        }
        if terminal {
            event(out, None, "[DONE]");
        }
    }

    fn whole(&self, answers: &[(String, Finish)], usage: &Usage) -> Vec<u8> {
        let choices: Vec<String> = answers
            .iter()
            .enumerate()
            .map(|(index, (text, finish))| Self::choice(index, text, Some(*finish)))
            .collect();
        let usage = usage.openai().map_or(String::new(), |usage| format!(",\"usage\":{usage}"));
        self.object(&choices.join(","), &usage).into_bytes()
    }

    fn repeats(&self) -> bool {
        false
    }
}
