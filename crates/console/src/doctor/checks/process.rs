//! The gateway's process: its document, certificate, descriptors and log.

use telemetry::clock;

use crate::doctor::catalog::{self, Finding};
use crate::doctor::facts::{Facts, GatewayFacts};
use crate::text::time;

/// Days before its end at which a certificate is worth a word.
const CERTIFICATE_SECONDS: f64 = 14.0 * 86_400.0;

pub(in crate::doctor) fn check(facts: &Facts, findings: &mut Vec<Finding>) {
    let Some(gateway) = &facts.gateway else { return };
    let sum =
        |name: &str, labels: &[(&str, &str)]| gateway.after.sum(name, labels).unwrap_or_default();
    let rejected = sum("wicketgate_config_reloads_total", &[("outcome", "rejected")]);
    if rejected > 0.0 {
        let seen = format!("{rejected} since its start");
        findings.push(Finding::new(&catalog::RELOAD_REJECTED, &gateway.admin, seen));
    }
    let dropped = sum("wicketgate_access_log_dropped_lines_total", &[]);
    if dropped > 0.0 {
        let seen = format!("{dropped} since its start");
        findings.push(Finding::new(&catalog::LOG_LINES_DROPPED, &gateway.admin, seen));
    }
    certificate(gateway, findings);
    descriptors(facts, gateway, findings);
}

fn certificate(gateway: &GatewayFacts, findings: &mut Vec<Finding>) {
    let Some(ends) = gateway.after.sum("wicketgate_certificate_expiry_timestamp_seconds", &[])
    else {
        return;
    };
    let left = ends - clock::unix_seconds(clock::wall());
    if left <= 0.0 {
        let seen = format!("since {}", time(-left));
        findings.push(Finding::new(&catalog::CERTIFICATE_EXPIRED, &gateway.admin, seen));
    } else if left < CERTIFICATE_SECONDS {
        let seen = format!("{:.1} days are left", left / 86_400.0);
        findings.push(Finding::new(&catalog::CERTIFICATE_EXPIRES, &gateway.admin, seen));
    }
}

/// The rule by which `serve` derives its connections from the descriptors, turned round.
fn descriptors(facts: &Facts, gateway: &GatewayFacts, findings: &mut Vec<Finding>) {
    let (Some(most), wanted) = (gateway.process.descriptors_max, facts.settings.connections_max)
    else {
        return;
    };
    let limits = config::Limits { connections_max: wanted, ..config::Limits::default() };
    let fit = limits.connections(most);
    // A tenth less is no matter: the derived number is what holds, and it is told in the log.
    if u64::from(fit) * 10 < u64::from(wanted) * 9 {
        let open = gateway.process.descriptors_open.unwrap_or_default();
        let seen = format!(
            "{most} may be open ({open} are), which is enough for {fit} client connections of {wanted}"
        );
        findings.push(Finding::new(&catalog::DESCRIPTORS_LOW, &gateway.admin, seen));
    }
}
