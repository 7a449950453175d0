//! What gateways tell each other.

use super::Label;

label! {
    /// Which way between this gateway and its peers.
    Direction {
        Sent = "sent",
        Received = "received",
    }
}

label! {
    /// Why something between peers came to nothing.
    PeerLoss {
        /// From nobody who has the key: another cluster, another version, or a stranger.
        Unreadable = "unreadable",
        Malformed = "malformed",
        /// The socket or the queue behind it was full.
        QueueFull = "queue_full",
        /// More prompts than a flush holds.
        FlushFull = "flush_full",
        /// The end of a prompt whose beginning was not heard.
        Unlinked = "unlinked",
    }
}
