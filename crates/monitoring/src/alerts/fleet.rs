//! Clusters behind the global tier.

use super::{Alert, Severity, Trial};

const MEMBER: &[(&str, &str)] = &[("member", "oregon")];
const HOST: &[(&str, &str)] = &[("instance", "router:9090")];

pub(super) static ALERTS: &[Alert] = &[
    Alert {
        name: "WicketgateMemberLost",
        severity: Severity::Warning,
        expr: "min by (member) (sum by (instance, member) (wicketgate_fleet_member_state{state=~\"dead|ejected\"})) == 1",
        hold: "1m",
        summary: "cluster {{ $labels.member }} gets no requests: it is silent or fails",
        means: "All routers hold a member for dead (silent, and no answer of late) or have ejected it (connections refused, or failures in a \
                row). Requests go to the other members; whether they have room for them is the question.",
        look: &[
            "`wicketgate global status`: since when, and by what evidence.",
            "Dashboard *Fleet of clusters*: *Age of heartbeats* of that member; *Failovers*; *Refused*.",
            "The member's own gateway: is it up, and does its log speak of the routers.",
        ],
        act: &[
            "Nothing has to be done at the routers: the member comes back by itself, with a tenth of what it can take at first.",
            "If the other members are full, shed what is less important, or bring capacity there.",
        ],
        trial: Trial {
            at: "10m",
            firing: &[
                (
                    r#"wicketgate_fleet_member_state{instance="router:9090",member="oregon",state="dead"}"#,
                    "1x20",
                ),
                (
                    r#"wicketgate_fleet_member_state{instance="other:9090",member="oregon",state="ejected"}"#,
                    "1x20",
                ),
            ],
            labels: MEMBER,
            quiet: &[
                (
                    r#"wicketgate_fleet_member_state{instance="router:9090",member="oregon",state="dead"}"#,
                    "1x20",
                ),
                (
                    r#"wicketgate_fleet_member_state{instance="other:9090",member="oregon",state="dead"}"#,
                    "0x20",
                ),
            ],
        },
    },
    Alert {
        name: "WicketgateFleetFrozen",
        severity: Severity::Critical,
        expr: "max by (instance) (wicketgate_fleet_frozen) == 1",
        hold: "30s",
        summary: "{{ $labels.instance }}: more than half of the members fell silent at once",
        means: "So many members do not fail at the same time; it is rather the router that is cut off. It distrusts itself, holds on to what it knew \
                and goes by what requests meet.",
        look: &[
            "The other routers' dashboards: if they hear the members, it is this router's network.",
            "If none hears them: the network between regions, a certificate that all members have in common.",
        ],
        act: &[
            "Cut off: take the router out of DNS or the load balancer. Truly lost: bring the members back; the table thaws by itself.",
        ],
        trial: Trial {
            at: "5m",
            firing: &[(r#"wicketgate_fleet_frozen{instance="router:9090"}"#, "0x2 1x20")],
            labels: HOST,
            quiet: &[(r#"wicketgate_fleet_frozen{instance="router:9090"}"#, "1x2 0x20")],
        },
    },
    Alert {
        name: "WicketgateFleetRefuses",
        severity: Severity::Critical,
        expr: "sum(rate(wicketgate_fleet_refusals_total{reason=\"unreachable\"}[5m])) \
               / (sum(rate(wicketgate_fleet_refusals_total[5m])) + sum(rate(wicketgate_fleet_decisions_total[5m])) > 0) > 0.01",
        hold: "5m",
        summary: "{{ $value | humanizePercentage }} of requests find no cluster that takes them",
        means: "One request in a hundred was refused at the global tier because no member that may have it can be reached.",
        look: &[
            "Dashboard *Fleet of clusters*: *Refused* by reason; *Members by state*.",
            "`unreachable`: see `WicketgateMemberLost`.",
        ],
        act: &[
            "Add capacity to the members that serve that model, or let another cluster serve it.",
            "A tenant whose `residency` or `members` leaves one cluster only is refused with it: see whether that is meant.",
        ],
        trial: Trial {
            at: "15m",
            firing: &[
                (r#"wicketgate_fleet_refusals_total{reason="unreachable"}"#, "0+5x30"),
                (
                    r#"wicketgate_fleet_decisions_total{member="oregon",reason="soonest"}"#,
                    "0+95x30",
                ),
            ],
            labels: &[],
            quiet: &[
                (r#"wicketgate_fleet_refusals_total{reason="unreachable"}"#, "0x30"),
                (r#"wicketgate_fleet_refusals_total{reason="unknown_model"}"#, "0+50x30"),
                (
                    r#"wicketgate_fleet_decisions_total{member="oregon",reason="soonest"}"#,
                    "0+95x30",
                ),
            ],
        },
    },
    Alert {
        name: "WicketgateLimitStoreSilent",
        severity: Severity::Warning,
        expr: "max by (instance) (wicketgate_fleet_store_up) == 0",
        hold: "2m",
        summary: "{{ $labels.instance }} does not reach the store of global limits",
        means: "Routers spend what they hold and then do as `failureMode` says: `safe` their equal part of each limit, `closed` nothing, \
                `open` everything.",
        look: &[
            "The store itself: Redis or Valkey. Dashboard *Fleet of clusters*, *Rounds of leases*: silent, or refused.",
        ],
        act: &[
            "Bring the store back; limits are shared again within two seconds. What it held need not be restored.",
        ],
        trial: Trial {
            at: "10m",
            firing: &[(r#"wicketgate_fleet_store_up{instance="router:9090"}"#, "0x20")],
            labels: HOST,
            quiet: &[(r#"wicketgate_fleet_store_up{instance="router:9090"}"#, "1x7 0x1 1x20")],
        },
    },
    Alert {
        name: "WicketgateReportsToNoRouter",
        severity: Severity::Warning,
        expr: "max by (instance) (wicketgate_global_routers) == 0",
        hold: "2m",
        summary: "{{ $labels.instance }} reports to no router of the global tier",
        means: "The cluster serves whoever reaches it, but the global tier holds it for dead and sends nothing.",
        look: &[
            "The gateway's log: what each connection to a router met. `global.routers` of its document.",
            "A report that is `refused` in `wicketgate_global_reports_total` has another name than its certificate.",
        ],
        act: &[
            "Open the way to the routers' heartbeat port (9005), or correct the name or the certificate.",
        ],
        trial: Trial {
            at: "10m",
            firing: &[(r#"wicketgate_global_routers{instance="router:9090"}"#, "0x20")],
            labels: HOST,
            quiet: &[(r#"wicketgate_global_routers{instance="router:9090"}"#, "2x20")],
        },
    },
];
