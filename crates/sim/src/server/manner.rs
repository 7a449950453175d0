//! A fault translated into how an answer is written.

use std::time::Duration;

use crate::dialect::UsageForm;
use crate::fault::FaultKind;
use crate::wire::After;

/// How an answer is written.
#[derive(Clone, Debug)]
pub(super) struct Manner {
    /// What happens after so many chunks.
    pub(super) stop: Option<(u32, Stop)>,
    pub(super) terminal: bool,
    pub(super) usage: UsageForm,
    pub(super) truncate: Option<usize>,
    pub(super) first_byte_delay: Duration,
    pub(super) drip: Duration,
    pub(super) early_hints: bool,
    pub(super) trailers: bool,
    pub(super) content_type: bool,
    pub(super) until_close: bool,
    pub(super) comments: bool,
    pub(super) split_bytes: Option<usize>,
}

/// How a fault ends an answer early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Silence,
    Cut(After),
    Error { done: bool },
    End,
}

impl Manner {
    pub(super) fn of(fault: Option<&FaultKind>) -> Self {
        let mut manner = Self {
            stop: None,
            terminal: true,
            usage: UsageForm::Right,
            truncate: None,
            first_byte_delay: Duration::ZERO,
            drip: Duration::ZERO,
            early_hints: false,
            trailers: false,
            content_type: true,
            until_close: false,
            comments: false,
            split_bytes: None,
        };
        match fault {
            Some(FaultKind::Stall { after_chunks: Some(chunks) }) => {
                manner.stop = Some((*chunks, Stop::Silence));
            }
            Some(FaultKind::Cut { after_chunks: Some(chunks), reset }) => {
                let after = if *reset { After::Reset } else { After::Close };
                manner.stop = Some((*chunks, Stop::Cut(after)));
            }
            Some(FaultKind::ErrorEvent { after_chunks, done }) => {
                manner.stop = Some((*after_chunks, Stop::Error { done: *done }));
            }
            Some(FaultKind::EmptyStream) => manner.stop = Some((0, Stop::End)),
            Some(FaultKind::NoDone) => manner.terminal = false,
            Some(FaultKind::OddUsage) => manner.usage = UsageForm::Odd,
            Some(FaultKind::NoUsage) => manner.usage = UsageForm::Absent,
            Some(FaultKind::TruncatedBody { bytes }) => manner.truncate = Some(*bytes),
            Some(FaultKind::SlowFirstByte { delay_ms }) => {
                manner.first_byte_delay = Duration::from_millis(*delay_ms);
            }
            Some(FaultKind::SlowHeaders { drip_ms, .. }) => {
                manner.drip = Duration::from_millis(*drip_ms);
            }
            Some(FaultKind::Odd {
                early_hints,
                trailers,
                no_content_type,
                until_close,
                comments,
                split_bytes,
            }) => {
                manner.early_hints = *early_hints;
                manner.trailers = *trailers;
                manner.content_type = !no_content_type;
                manner.until_close = *until_close;
                manner.comments = *comments;
                manner.split_bytes = split_bytes.filter(|bytes| *bytes > 0);
            }
            _ => {}
        }
        manner
    }
}
