//! Closed sets of label values: nothing else can become one.

/// A closed set of label values.
pub trait Label: Copy + 'static {
    /// All values, in declaration order.
    const ALL: &'static [Self];
    /// Position in [`Self::ALL`].
    fn index(self) -> usize;
    /// The value on the page.
    fn as_str(self) -> &'static str;
}

macro_rules! label {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$value_doc])* $value,)+ }

        impl Label for $name {
            const ALL: &'static [Self] = &[$(Self::$value,)+];

            fn index(self) -> usize {
                self as usize
            }

            fn as_str(self) -> &'static str {
                match self { $(Self::$value => $text,)+ }
            }
        }
    };
}

mod auth;
mod endpoint;
mod ext_proc;
mod fleet;
mod peers;
mod reference;
mod request;
mod rewrite;

pub use auth::{AuthMeans, AuthRefusal, JwksFetch};
pub use endpoint::{Connect, EndpointState, ScrapeAnomaly, ScrapeFailure, Signal};
pub use ext_proc::{ImmediateCode, StreamEnd};
pub use fleet::{Heartbeat, Lease, MemberReason, MemberState, NoMember, Report};
pub use peers::{Direction, PeerLoss};
pub use reference::closed_sets;
pub use request::{Abort, Band, Code, Outcome, Refusal, Rejection, Retry, Route};
pub use rewrite::{MirrorOutcome, Rollback, Shadow};

label! {
    /// What became of a trace that was to be kept.
    TraceEnd {
        Exported = "exported",
        /// No room in the queue.
        Dropped = "dropped",
        /// The collector did not take it, or not in time.
        Failed = "failed",
    }
}

label! {
    /// What a GPU's time went into.
    Work {
        Prefill = "prefill",
        Decode = "decode",
    }
}

label! {
    /// What became of a reload.
    Reload {
        Applied = "applied",
        Unchanged = "unchanged",
        Rejected = "rejected",
    }
}

label! {
    /// Why a report did not reach CloudWatch.
    CloudWatchFailure {
        /// No credentials, or they could not be read.
        Credentials = "credentials",
        /// No connection, or no answer in time.
        Connect = "connect",
        /// CloudWatch refused it.
        Refused = "refused",
        /// The line could not be written.
        Write = "write",
    }
}

label! {
    /// What a rate limit has too much of.
    LimitKind {
        Requests = "requests",
        InputTokens = "input_tokens",
        OutputTokens = "output_tokens",
        Tokens = "tokens",
        Concurrent = "concurrent",
    }
}
