//! The places in an answer that are read, for all dialects at once: no two use one key differently.

use crate::usage::Counts;

/// A container that leads to something we read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Root,
    /// An array of answers (SGLang's batches).
    Roots,
    /// `response` (Responses) and `message` (Messages): they hold the usage one level down.
    Envelope,
    Usage,
    /// `prompt_tokens_details` and its like.
    UsageDetails,
    /// `choices`.
    Choices,
    Choice,
    /// `delta` of a choice.
    Delta,
    /// TGI's `details`.
    Details,
    /// SGLang's `meta_info`.
    MetaInfo,
}

/// What the value behind a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Other,
    Root,
    Envelope,
    Usage,
    UsageDetails,
    Choices,
    Choice,
    Delta,
    Details,
    MetaInfo,
    Type,
    Object,
    Error,
    /// Text, or a list of tool calls; counts unless empty.
    Content,
    /// TGI's token object; counts in any case.
    Token,
    GeneratedText,
    PromptTokens,
    CompletionTokens,
    CachedTokens,
    /// Anthropic counts these beside its `input_tokens`; OpenAI counts cached ones within.
    CacheReadTokens,
    CacheCreationTokens,
}

impl Place {
    #[inline]
    pub(super) fn is_object(self) -> bool {
        !matches!(self, Self::Roots | Self::Choices)
    }

    /// What the elements of an array are.
    #[inline]
    pub(super) fn element(self) -> Slot {
        match self {
            Self::Roots => Slot::Root,
            Self::Choices => Slot::Choice,
            _ => Slot::Other,
        }
    }

    /// What the value of `key` is in this object.
    #[inline]
    pub(super) fn slot(self, key: &[u8]) -> Slot {
        match self {
            Self::Root => match key {
                b"usage" => Slot::Usage,
                b"choices" => Slot::Choices,
                b"type" => Slot::Type,
                b"object" => Slot::Object,
                b"error" => Slot::Error,
                b"response" | b"message" => Slot::Envelope,
                b"text" => Slot::Content,
                b"token" => Slot::Token,
                b"generated_text" => Slot::GeneratedText,
                b"details" => Slot::Details,
                b"meta_info" => Slot::MetaInfo,
                _ => Slot::Other,
            },
            Self::Envelope => match key {
                b"usage" => Slot::Usage,
                _ => Slot::Other,
            },
            Self::Usage => match key {
                b"prompt_tokens" | b"input_tokens" => Slot::PromptTokens,
                b"completion_tokens" | b"output_tokens" => Slot::CompletionTokens,
                b"prompt_tokens_details" | b"input_tokens_details" => Slot::UsageDetails,
                b"cache_read_input_tokens" => Slot::CacheReadTokens,
                b"cache_creation_input_tokens" => Slot::CacheCreationTokens,
                _ => Slot::Other,
            },
            Self::UsageDetails => match key {
                b"cached_tokens" => Slot::CachedTokens,
                _ => Slot::Other,
            },
            Self::Choice => match key {
                b"delta" => Slot::Delta,
                b"text" => Slot::Content,
                _ => Slot::Other,
            },
            Self::Delta => match key {
                b"content" | b"reasoning_content" | b"reasoning" | b"refusal" | b"tool_calls"
                | b"function_call" => Slot::Content,
                _ => Slot::Other,
            },
            Self::Details => match key {
                b"generated_tokens" => Slot::CompletionTokens,
                b"input_length" => Slot::PromptTokens,
                _ => Slot::Other,
            },
            Self::MetaInfo => match key {
                b"prompt_tokens" => Slot::PromptTokens,
                b"completion_tokens" => Slot::CompletionTokens,
                b"cached_tokens" => Slot::CachedTokens,
                _ => Slot::Other,
            },
            Self::Roots | Self::Choices => Slot::Other,
        }
    }
}

impl Slot {
    /// The known place that `bracket` opens here. `None`: step over it.
    #[inline]
    pub(super) fn opened_by(self, bracket: u8) -> Option<Place> {
        let place = match (self, bracket) {
            (Self::Root, b'{') => Place::Root,
            (Self::Root, b'[') => Place::Roots,
            (Self::Envelope, b'{') => Place::Envelope,
            (Self::Usage, b'{') => Place::Usage,
            (Self::UsageDetails, b'{') => Place::UsageDetails,
            (Self::Choices, b'[') => Place::Choices,
            (Self::Choice, b'{') => Place::Choice,
            (Self::Delta, b'{') => Place::Delta,
            (Self::Details, b'{') => Place::Details,
            (Self::MetaInfo, b'{') => Place::MetaInfo,
            _ => return None,
        };
        Some(place)
    }

    #[inline]
    pub(super) fn is_count(self) -> bool {
        matches!(
            self,
            Self::PromptTokens
                | Self::CompletionTokens
                | Self::CachedTokens
                | Self::CacheReadTokens
                | Self::CacheCreationTokens
        )
    }

    #[inline]
    pub(super) fn count(self, counts: &mut Counts, value: u64) {
        let counted = match self {
            Self::PromptTokens => &mut counts.prompt,
            Self::CompletionTokens => &mut counts.completion,
            Self::CachedTokens => &mut counts.cached,
            Self::CacheReadTokens => &mut counts.cache_read,
            Self::CacheCreationTokens => &mut counts.cache_creation,
            _ => return,
        };
        *counted = Some(value);
    }
}
