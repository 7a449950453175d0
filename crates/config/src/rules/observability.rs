//! Prices of what is not there, or twice; a collector whose path contradicts its protocol.

use crate::build::View;
use crate::report::Report;
use crate::spec::{OtlpProtocol, Spec};

pub(super) fn check(spec: &Spec, view: View<'_>, report: &mut Report<'_>) {
    let view = view.get("observability");
    for (index, price) in spec.observability.prices.iter().enumerate() {
        let name = &price.scheduler;
        let place = view.get("prices").item(index).get("scheduler").place();
        let path = format!("spec.observability.prices[{index}].scheduler");
        let known = spec.schedulers.iter().any(|scheduler| scheduler.name == *name);
        // Pools that are found at run time have names that nobody knows yet.
        if !known && spec.discover.is_empty() {
            let message = format!("there is no scheduler `{name}`");
            report.error_with_hint(place, &path, message, "name one of `schedulers`");
        }
        if spec.observability.prices[..index].iter().any(|other| other.scheduler == *name) {
            report.error(place, &path, format!("`{name}` has a price already"));
        }
    }
    let Some(tracing) = &spec.observability.tracing else { return };
    let place = view.get("tracing").get("endpoint").place();
    let path = tracing.endpoint.as_deref().and_then(|url| url.split_once("://"));
    let has_path = path.is_some_and(|(_, rest)| rest.trim_end_matches('/').contains('/'));
    if tracing.protocol == OtlpProtocol::Grpc && has_path {
        report.error_with_hint(
            place,
            "spec.observability.tracing.endpoint",
            "with `protocol: grpc` the endpoint has no path",
            "write http://HOST:4317, or `protocol: http/protobuf`",
        );
    }
}
