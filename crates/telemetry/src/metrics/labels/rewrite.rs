//! Copies and roll-backs.

use super::Label;

label! {
    /// What the shadow policy would have done.
    Shadow {
        /// The same endpoint.
        Same = "same",
        Different = "different",
        /// It found no endpoint.
        Refused = "refused",
    }
}

label! {
    /// Why a target's traffic was taken away.
    Rollback {
        ErrorRate = "error_rate",
        Ttft = "ttft",
        /// Somebody asked for it.
        Operator = "operator",
    }
}

label! {
    /// What became of the copy of a request.
    MirrorOutcome {
        Ok = "ok",
        /// 4xx.
        ClientError = "client_error",
        /// 5xx, cut, unreachable.
        EndpointError = "endpoint_error",
        /// Not sent: as many are under way as may be.
        Busy = "busy",
        /// Not sent: copies hold as many bytes as they may.
        Bytes = "bytes",
        /// Not sent: no endpoint has room for it, or nobody serves the model.
        NoRoom = "no_room",
    }
}
