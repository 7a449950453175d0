//! The gateway's own state.

use super::{Alert, Severity, Trial};

const HOST: &[(&str, &str)] = &[("instance", "gw:9090")];

pub(super) static ALERTS: &[Alert] = &[
    Alert {
        name: "WicketgateAbsent",
        severity: Severity::Critical,
        expr: "absent(wicketgate_build_info)",
        hold: "5m",
        summary: "no gateway is scraped",
        means: "Prometheus has no metric of any gateway for five minutes: all are down, or the scrape is misconfigured. Either way nothing below can fire.",
        look: &[
            "Prometheus' page *Status, Targets*: the error of the job.",
            "`kubectl get pods`, or the process; `curl ADMIN/readyz`.",
        ],
        act: &[
            "Down: its log's last line says why. Up: the admin port listens on loopback unless `admin.address` says otherwise.",
        ],
        trial: Trial {
            at: "10m",
            firing: &[],
            labels: &[],
            quiet: &[("wicketgate_build_info", "1x20")],
        },
    },
    Alert {
        name: "WicketgateConfigRejected",
        severity: Severity::Warning,
        expr: "sum by (instance) (increase(wicketgate_config_reloads_total{outcome=\"rejected\"}[15m])) > 0",
        hold: "0m",
        summary: "{{ $labels.instance }} refused a new document; the old one stays in force",
        means: "A changed document is not valid. Nothing broke, but what was meant to change did not.",
        look: &[
            "The gateway's log: line, column and remedy of each error.",
            "`wicketgate check -f FILE` says the same.",
        ],
        act: &["Correct the document; the next reload ends the alert after a quarter of an hour."],
        trial: Trial {
            at: "10m",
            firing: &[(
                r#"wicketgate_config_reloads_total{instance="gw:9090",outcome="rejected"}"#,
                "0x5 1x20",
            )],
            labels: HOST,
            quiet: &[(
                r#"wicketgate_config_reloads_total{instance="gw:9090",outcome="rejected"}"#,
                "1x20",
            )],
        },
    },
    Alert {
        name: "WicketgateCertificateExpiresSoon",
        severity: Severity::Warning,
        expr: "min by (instance) (wicketgate_certificate_expiry_timestamp_seconds) - time() < 14 * 86400",
        hold: "1h",
        summary: "{{ $labels.instance }}: the certificate expires in {{ $value | humanizeDuration }}",
        means: "Fourteen days before the end: automatic renewal (a third of 90 days before) should have happened two weeks ago.",
        look: &["cert-manager's Certificate and its events; the date of the file."],
        act: &["Renew it; a changed file is taken over without a restart."],
        trial: Trial {
            at: "70m",
            firing: &[(
                r#"wicketgate_certificate_expiry_timestamp_seconds{instance="gw:9090"}"#,
                "864000x90",
            )],
            labels: HOST,
            quiet: &[(
                r#"wicketgate_certificate_expiry_timestamp_seconds{instance="gw:9090"}"#,
                "8640000x90",
            )],
        },
    },
    Alert {
        name: "WicketgateCertificateExpired",
        severity: Severity::Critical,
        expr: "min by (instance) (wicketgate_certificate_expiry_timestamp_seconds) - time() < 86400",
        hold: "5m",
        summary: "{{ $labels.instance }}: the certificate expires within a day, or has",
        means: "A day before the end nothing will renew it in time by itself; after it clients refuse to connect.",
        look: &["As for `WicketgateCertificateExpiresSoon`."],
        act: &[
            "Put a valid certificate in place by hand now; find out about the renewal afterwards.",
        ],
        trial: Trial {
            at: "10m",
            firing: &[(
                r#"wicketgate_certificate_expiry_timestamp_seconds{instance="gw:9090"}"#,
                "40000x20",
            )],
            labels: HOST,
            quiet: &[(
                r#"wicketgate_certificate_expiry_timestamp_seconds{instance="gw:9090"}"#,
                "864000x20",
            )],
        },
    },
    Alert {
        name: "WicketgateLogLinesDropped",
        severity: Severity::Warning,
        expr: "sum by (instance) (rate(wicketgate_access_log_dropped_lines_total[5m])) > 0",
        hold: "10m",
        summary: "{{ $labels.instance }} loses {{ $value | humanize }} lines of its access log a second",
        means: "Whoever reads the access log is slower than requests come. Requests never wait for it, so lines are dropped.",
        look: &["The log collector's CPU and back-pressure; the disk, where the log is a file."],
        act: &[
            "Give the collector more, log to a file, or switch the access log off if nobody reads it.",
        ],
        trial: Trial {
            at: "20m",
            firing: &[(
                r#"wicketgate_access_log_dropped_lines_total{instance="gw:9090"}"#,
                "0+10x30",
            )],
            labels: HOST,
            quiet: &[(r#"wicketgate_access_log_dropped_lines_total{instance="gw:9090"}"#, "7x30")],
        },
    },
    Alert {
        name: "WicketgateCloudWatchFails",
        severity: Severity::Warning,
        expr: "sum by (instance, reason) (increase(wicketgate_cloudwatch_failures_total[15m])) > 3",
        hold: "0m",
        summary: "{{ $labels.instance }} does not reach CloudWatch: {{ $labels.reason }}",
        means: "Four or more reports of the last quarter of an hour did not arrive. Requests are not touched; what was not sent is lost.",
        look: &[
            "The gateway's log names CloudWatch's error.",
            "`credentials`: the role of pod or instance; `refused`: its permission `cloudwatch:PutMetricData`, the region.",
        ],
        act: &["Correct the role, the region or the network; the next report goes out by itself."],
        trial: Trial {
            at: "20m",
            firing: &[(
                r#"wicketgate_cloudwatch_failures_total{instance="gw:9090",reason="refused"}"#,
                "0+1x30",
            )],
            labels: &[("instance", "gw:9090"), ("reason", "refused")],
            quiet: &[(
                r#"wicketgate_cloudwatch_failures_total{instance="gw:9090",reason="refused"}"#,
                "3x30",
            )],
        },
    },
    Alert {
        name: "WicketgateSigningKeysFail",
        severity: Severity::Warning,
        expr: "max by (instance) (wicketgate_auth_jwks_failing) > 0",
        hold: "15m",
        summary: "{{ $labels.instance }} cannot fetch the signing keys of {{ $value }} issuers",
        means: "Tokens of these issuers are accepted with the keys of the last good fetch until `jwks.staleFor` is over; after that they are \
                refused, all of them.",
        look: &[
            "The gateway's log: which issuer, and what the fetch said.",
            "`wicketgate_auth_jwks_age_seconds` against `jwks.staleFor` of the document: how long it will last.",
        ],
        act: &["Bring the issuer's `jwks` address back, or raise `staleFor` meanwhile."],
        trial: Trial {
            at: "20m",
            firing: &[(r#"wicketgate_auth_jwks_failing{instance="gw:9090"}"#, "1x30")],
            labels: HOST,
            quiet: &[(r#"wicketgate_auth_jwks_failing{instance="gw:9090"}"#, "1x10 0x20")],
        },
    },
];
