//! Values of labels of the global tier.

use super::Label;

label! {
    /// What became of a member's heartbeat.
    Heartbeat {
        Taken = "taken",
        /// Its sequence or its life is behind what is known.
        Old = "old",
        /// Nothing that a member can mean, or of another member than its certificate says.
        Refused = "refused",
    }
}

label! {
    /// How a member stands.
    MemberState {
        Unknown = "unknown",
        Fresh = "fresh",
        Suspect = "suspect",
        Dead = "dead",
        Ejected = "ejected",
        Returning = "returning",
        Draining = "draining",
    }
}

label! {
    /// Why a member got a request.
    MemberReason {
        Local = "local",
        Soonest = "soonest",
        Spill = "spill",
        Affinity = "affinity",
        Shaped = "shaped",
        Weights = "weights",
        Only = "only",
        Failover = "failover",
        Overflow = "overflow",
    }
}

label! {
    /// Why a request went to no member.
    NoMember {
        UnknownModel = "unknown_model",
        Policy = "policy",
        Unreachable = "unreachable",
        /// The tenant's budget of money is used up.
        Budget = "budget",
    }
}

label! {
    /// How a round of leases went.
    Lease {
        Ok = "ok",
        /// The store could not be reached, or took too long.
        Silent = "silent",
        /// The store answered with an error.
        Refused = "refused",
    }
}

label! {
    /// How a report to a router went.
    Report {
        Taken = "taken",
        /// The router does not want it: another name, an older document.
        Refused = "refused",
        /// No connection, or it broke.
        Lost = "lost",
    }
}
