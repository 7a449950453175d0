//! Which pod is asked.

use std::collections::BTreeSet;

use anyhow::bail;
use wicketgate_kube::gateways::GatewayPod;

/// The pod that is meant, or why none is.
///
/// * `pods`: all gateways' pods of the namespace.
/// * `gateway`, `pod`: names, where they were given.
pub(super) fn pod<'a>(
    pods: &'a [GatewayPod],
    namespace: &str,
    gateway: Option<&str>,
    pod: Option<&str>,
) -> anyhow::Result<&'a GatewayPod> {
    if let Some(name) = pod {
        let found = pods.iter().find(|pod| pod.name == name);
        return match found {
            Some(pod) => Ok(pod),
            None => bail!("namespace {namespace} has no gateway's pod {name}"),
        };
    }
    let names: BTreeSet<&str> = pods.iter().map(|pod| pod.gateway.as_str()).collect();
    let all = names.iter().copied().collect::<Vec<_>>().join(", ");
    let gateway = match (gateway, names.len()) {
        (_, 0) => bail!("namespace {namespace} has no gateway; -n names another namespace"),
        (Some(name), _) if !names.contains(name) => {
            bail!("namespace {namespace} has no gateway {name}, but {all}");
        }
        (Some(name), _) => name,
        (None, 1) => all.as_str(),
        (None, _) => bail!("namespace {namespace} has several gateways: --gateway one of {all}"),
    };
    let of_gateway = || pods.iter().filter(|pod| pod.gateway == gateway);
    // One that is not ready is worth asking too, if there is no other.
    let best = of_gateway().min_by_key(|pod| (!pod.is_ready, pod.is_ending));
    match best {
        Some(pod) => Ok(pod),
        None => bail!("gateway {gateway} has no pod"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, gateway: &str, is_ready: bool) -> GatewayPod {
        GatewayPod {
            namespace: "n".to_owned(),
            name: name.to_owned(),
            gateway: gateway.to_owned(),
            is_ready,
            is_ending: false,
            admin_port: 9090,
        }
    }

    fn chosen(pods: &[GatewayPod], gateway: Option<&str>) -> Result<String, String> {
        let chosen = pod(pods, "n", gateway, None);
        chosen.map(|pod| pod.name.clone()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_ready_pod_goes_before_one_that_is_not() {
        let pods = [one("a", "chat", false), one("b", "chat", true)];
        assert_eq!(chosen(&pods, None), Ok("b".to_owned()));
        assert_eq!(chosen(&pods[..1], None), Ok("a".to_owned()), "better than none");
    }

    #[test]
    fn of_several_gateways_one_has_to_be_named() {
        let pods = [one("a", "chat", true), one("b", "code", true)];
        let error = chosen(&pods, None).expect_err("two gateways");
        assert!(error.contains("--gateway one of chat, code"), "{error}");
        assert_eq!(chosen(&pods, Some("code")), Ok("b".to_owned()));
        let error = chosen(&pods, Some("cod")).expect_err("misspelt");
        assert!(error.contains("no gateway cod, but chat, code"), "{error}");
    }

    #[test]
    fn a_namespace_without_gateways_says_so() {
        assert!(chosen(&[], None).expect_err("none").contains("-n names another namespace"));
    }
}
