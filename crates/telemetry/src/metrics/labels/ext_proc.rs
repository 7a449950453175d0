//! Conversations with proxies.

use super::Label;

label! {
    /// How a proxy's stream to the picker ended.
    StreamEnd {
        /// The answer passed to its end.
        Complete = "complete",
        /// An answer of ours in the endpoint's place.
        Answered = "answered",
        /// Ended by us after the request, because nothing more was needed.
        RequestOnly = "request_only",
        /// Ended by the proxy before the answer's end: the client left, mostly.
        Left = "left",
        /// A message that the protocol does not allow there.
        Violation = "violation",
        /// The drain time ended first.
        Drained = "drained",
    }
}

label! {
    /// Status of an answer in the endpoint's place.
    ImmediateCode {
        Ok = "200",
        BadRequest = "400",
        Unauthorized = "401",
        Forbidden = "403",
        NotFound = "404",
        MethodNotAllowed = "405",
        RequestTimeout = "408",
        PayloadTooLarge = "413",
        UnsupportedMediaType = "415",
        TooManyRequests = "429",
        Internal = "500",
        Unavailable = "503",
        Other = "other",
    }
}

impl ImmediateCode {
    pub fn of(status: u16) -> Self {
        match status {
            200 => Self::Ok,
            400 => Self::BadRequest,
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            405 => Self::MethodNotAllowed,
            408 => Self::RequestTimeout,
            413 => Self::PayloadTooLarge,
            415 => Self::UnsupportedMediaType,
            429 => Self::TooManyRequests,
            500 => Self::Internal,
            503 => Self::Unavailable,
            _ => Self::Other,
        }
    }
}
