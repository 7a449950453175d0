//! Token counts in an answer, right or deliberately odd.

/// What `usage` looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsageForm {
    Right,
    /// Texts, negative numbers and nulls.
    Odd,
    Absent,
}

/// Token counts of all choices together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub(crate) prompt_tokens: u32,
    pub(crate) cached_tokens: u32,
    pub(crate) completion_tokens: u32,
    pub(crate) form: UsageForm,
}

impl Usage {
    /// Of chat and completions. `None`: left out.
    pub(crate) fn openai(&self) -> Option<String> {
        let (prompt, cached, output) =
            (self.prompt_tokens, self.cached_tokens, self.completion_tokens);
        match self.form {
            UsageForm::Right => Some(format!(
                "{{\"prompt_tokens\":{prompt},\"total_tokens\":{},\"completion_tokens\":{output},\
                 \"prompt_tokens_details\":{{\"cached_tokens\":{cached}}}}}",
                prompt + output
            )),
            UsageForm::Odd => Some(format!(
                "{{\"prompt_tokens\":\"{prompt}\",\"total_tokens\":null,\
                 \"completion_tokens\":-{output}.5,\"prompt_tokens_details\":[{cached}]}}"
            )),
            UsageForm::Absent => None,
        }
    }

    /// Of `/v1/responses` and Anthropic's messages, which share the names of the counts.
    pub(crate) fn input_output(&self) -> Option<String> {
        let (prompt, cached, output) =
            (self.prompt_tokens, self.cached_tokens, self.completion_tokens);
        match self.form {
            UsageForm::Right => Some(format!(
                "{{\"input_tokens\":{prompt},\"input_tokens_details\":{{\"cached_tokens\":{cached}}},\
                 \"output_tokens\":{output},\"output_tokens_details\":{{\"reasoning_tokens\":0}},\
                 \"total_tokens\":{}}}",
                prompt + output
            )),
            UsageForm::Odd => Some(format!(
                "{{\"input_tokens\":\"{prompt}\",\"output_tokens\":null,\"total_tokens\":-1}}"
            )),
            UsageForm::Absent => None,
        }
    }
}
