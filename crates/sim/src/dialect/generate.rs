//! SGLang's `/generate`, TGI's `/generate` and `/generate_stream`, and transcriptions.

use super::{Dialect, Naming, Piece, Usage, event, quoted};
use crate::metrics::Finish;

pub(super) struct Sglang {
    pub(super) naming: Naming,
}

impl Sglang {
    /// The text so far is repeated in every event, as SGLang does it by default.
    fn object(&self, text: &str, tokens: u32, finish: Option<Finish>, usage: &Usage) -> String {
        let reason = match finish {
            Some(Finish::Length) => format!("{{\"type\":\"length\",\"length\":{tokens}}}"),
            Some(Finish::Stop) => "{\"type\":\"stop\",\"matched\":2}".to_owned(),
            None => "null".to_owned(),
        };
        format!(
            "{{\"text\":{},\"meta_info\":{{\"id\":\"{}\",\"finish_reason\":{reason},\
             \"prompt_tokens\":{},\"weight_version\":\"default\",\"completion_tokens\":{tokens},\
             \"cached_tokens\":{}}}}}",
            quoted(text),
            self.naming.id,
            usage.prompt_tokens,
            usage.cached_tokens,
        )
    }
}

impl Dialect for Sglang {
    fn begin(&mut self, _: &mut Vec<u8>, _: &Usage) {}

    fn token(&mut self, out: &mut Vec<u8>, piece: Piece<'_>, usage: &Usage) {
        let object = self.object(piece.so_far, piece.at + 1, piece.finish, usage);
        event(out, None, &object);
    }

    fn end(&mut self, out: &mut Vec<u8>, _: &Usage, terminal: bool) {
        if terminal {
            event(out, None, "[DONE]");
        }
    }

    fn whole(&self, answers: &[(String, Finish)], usage: &Usage) -> Vec<u8> {
        let mut objects = answers
            .iter()
            .map(|(text, finish)| self.object(text, text.len() as u32 / 4, Some(*finish), usage));
        match objects.len() {
            1 => objects.next().unwrap_or_default().into_bytes(),
            _ => format!("[{}]", objects.collect::<Vec<_>>().join(",")).into_bytes(),
        }
    }

    fn repeats(&self) -> bool {
        true
    }
}

pub(super) struct Tgi {
    pub(super) details: bool,
}

fn tgi_details(finish: Finish, tokens: u32, usage: &Usage) -> String {
    let reason = match finish {
        Finish::Length => "length",
        Finish::Stop => "eos_token",
    };
    format!(
        "{{\"finish_reason\":\"{reason}\",\"generated_tokens\":{tokens},\"seed\":null,\
         \"input_length\":{}}}",
        usage.prompt_tokens
    )
}

impl Dialect for Tgi {
    fn begin(&mut self, _: &mut Vec<u8>, _: &Usage) {}

    fn token(&mut self, out: &mut Vec<u8>, piece: Piece<'_>, usage: &Usage) {
        let Piece { at, text, so_far, finish, .. } = piece;
        let id = u32::from_le_bytes(text.as_bytes().try_into().unwrap_or_default());
        let (generated, details) = match finish {
            Some(finish) => (quoted(so_far), tgi_details(finish, at + 1, usage)),
            None => ("null".to_owned(), "null".to_owned()),
        };
        let index = at + 1;
        // TGI writes no space after the colon.
        out.extend(
            format!(
                "data:{{\"index\":{index},\"token\":{{\"id\":{id},\"text\":\"{text}\",\
                 \"logprob\":-0.5,\"special\":false}},\"generated_text\":{generated},\
                 \"details\":{details}}}\n\n"
            )
            .as_bytes(),
        );
    }

    fn end(&mut self, _: &mut Vec<u8>, _: &Usage, _: bool) {}

    fn whole(&self, answers: &[(String, Finish)], usage: &Usage) -> Vec<u8> {
        let Some((text, finish)) = answers.first() else { return b"{}".to_vec() };
        let details = match self.details {
            true => {
                let tokens = text.len() as u32 / 4;
                format!(",\"details\":{}", tgi_details(*finish, tokens, usage))
            }
            false => String::new(),
        };
        format!("{{\"generated_text\":{}{details}}}", quoted(text)).into_bytes()
    }

    fn repeats(&self) -> bool {
        true
    }
}

pub(super) struct Transcription {
    pub(super) naming: Naming,
}

impl Dialect for Transcription {
    fn begin(&mut self, _: &mut Vec<u8>, _: &Usage) {}

    fn token(&mut self, out: &mut Vec<u8>, piece: Piece<'_>, _: &Usage) {
        let Naming { id, created, model } = &self.naming;
        let reason = super::openai_finish(piece.finish);
        let data = format!(
            "{{\"id\":\"trsc-{id}\",\"object\":\"transcription.chunk\",\"created\":{created},\
             \"model\":{model},\"choices\":[{{\"delta\":{{\"content\":\"{}\"}},\
             \"finish_reason\":{reason}}}]}}",
            piece.text
        );
        event(out, None, &data);
    }

    fn end(&mut self, out: &mut Vec<u8>, _: &Usage, terminal: bool) {
        if terminal {
            event(out, None, "[DONE]");
        }
    }

    fn whole(&self, answers: &[(String, Finish)], _: &Usage) -> Vec<u8> {
        let text = answers.first().map_or("", |(text, _)| text.as_str());
        format!("{{\"text\":{},\"usage\":{{\"type\":\"duration\",\"seconds\":1}}}}", quoted(text))
            .into_bytes()
    }

    fn repeats(&self) -> bool {
        false
    }
}
