//! `/v1/chat/completions`.

use types::EngineKind;

use super::{Dialect, Naming, Piece, Usage, event, openai_finish, quoted};
use crate::metrics::Finish;

pub(super) struct Chat {
    pub(super) naming: Naming,
    pub(super) include_usage: bool,
    pub(super) engine: EngineKind,
}

impl Chat {
    fn chunk(&self, out: &mut Vec<u8>, choices: &str, usage: &str) {
        let Naming { id, created, model } = &self.naming;
        let data = format!(
            "{{\"id\":\"chatcmpl-{id}\",\"object\":\"chat.completion.chunk\",\"created\":{created},\
             \"model\":{model},\"choices\":[{choices}]{usage}}}"
        );
        event(out, None, &data);
    }

    /// Fields that an engine adds to each choice.
    fn extra(&self, finish: Option<Finish>) -> &'static str {
        match self.engine {
            EngineKind::Sglang => ",\"matched_stop\":null",
            EngineKind::Vllm if finish.is_some() => ",\"stop_reason\":null,\"token_ids\":null",
            EngineKind::Vllm => ",\"token_ids\":null",
            _ => "",
        }
    }
}

impl Dialect for Chat {
    fn begin(&mut self, _: &mut Vec<u8>, _: &Usage) {}

    fn token(&mut self, out: &mut Vec<u8>, piece: Piece<'_>, _: &Usage) {
        let Piece { choice, at, text, finish, .. } = piece;
        if at == 0 {
            let role = format!(
                "{{\"index\":{choice},\"delta\":{{\"role\":\"assistant\",\"content\":\"\"}},\
                 \"logprobs\":null,\"finish_reason\":null}}"
            );
            self.chunk(out, &role, "");
        }
        let reason = openai_finish(finish);
        let token = format!(
            "{{\"index\":{choice},\"delta\":{{\"content\":\"{text}\"}},\"logprobs\":null,\
             \"finish_reason\":{reason}{}}}",
            self.extra(finish)
        );
        self.chunk(out, &token, "");
    }

    fn end(&mut self, out: &mut Vec<u8>, usage: &Usage, terminal: bool) {
        if self.include_usage
            && let Some(usage) = usage.openai()
        {
            self.chunk(out, "", &format!(",\"usage\":{usage}"));
        }
        if terminal {
            event(out, None, "[DONE]");
        }
    }

    fn whole(&self, answers: &[(String, Finish)], usage: &Usage) -> Vec<u8> {
        let Naming { id, created, model } = &self.naming;
        let choices: Vec<String> = answers
            .iter()
            .enumerate()
            .map(|(index, (text, finish))| {
                format!(
                    "{{\"index\":{index},\"message\":{{\"role\":\"assistant\",\"content\":{},\
                     \"refusal\":null,\"annotations\":null,\"audio\":null,\"function_call\":null,\
                     \"tool_calls\":[]}},\"logprobs\":null,\"finish_reason\":{}{}}}",
                    quoted(text),
                    openai_finish(Some(*finish)),
                    self.extra(Some(*finish)),
                )
            })
            .collect();
        let usage = usage.openai().map_or(String::new(), |usage| format!(",\"usage\":{usage}"));
        format!(
            "{{\"id\":\"chatcmpl-{id}\",\"object\":\"chat.completion\",\"created\":{created},\
             \"model\":{model},\"choices\":[{}]{usage}}}",
            choices.join(",")
        )
        .into_bytes()
    }

    fn repeats(&self) -> bool {
        false
    }
}
