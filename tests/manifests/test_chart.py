"""The chart: what it makes of values, and which values it refuses."""

import json
import re
import tomllib

import helm_python
import pytest
import values_table
import yaml
from conftest import CHART, HERE, ROOT, as_text, compare, of_kind, rendered, run, tool

VALUES = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
CHAT = {"schedulers": [{"name": "chat", "modelName": "m", "modelSelector": {"matchLabels": {"app": "m"}}}]}


def render(values):
    return helm_python.Chart.load(str(CHART)).render(values, name="wicketgate", namespace="inference")


def pod_of(deployment):
    return deployment["spec"]["template"]["spec"]


def labels_of(deployment):
    return deployment["spec"]["template"]["metadata"]["labels"]


def test_helms_own_lint_finds_nothing(case):
    values = yaml.safe_load((HERE / f"values/{case}.yaml").read_text(encoding="utf-8"))
    said = helm_python.lint(str(CHART), values, strict=True)
    assert said["errors"] == []
    assert [one["error"] for one in said["messages"]] == ["icon is recommended"]


def test_what_the_chart_makes_of_values_is_what_was_looked_at(case):
    compare(HERE / f"golden/{case}.yaml", as_text(rendered(case)))


REFUSED = [
    ({"controler": {}}, "additional properties 'controler' not allowed"),
    ({"controller": {"replicas": "two"}}, "'/controller/replicas': got string, want integer"),
    ({"controller": {"watchNamespace": "Team A"}}, "'/controller/watchNamespace'"),
    ({"image": {"tag": "a b"}}, "'/image/tag'"),
    ({"image": {"digest": "latest"}}, "'/image/digest'"),
    ({"runAsUser": 0}, "'/runAsUser': minimum: got 0, want 1"),
    ({"gateway": {"service": {"type": "Ingress"}}}, "one of 'ClusterIP', 'LoadBalancer', 'NodePort'"),
    ({"gateway": {"drain": {"seconds": 0}}}, "'/gateway/drain/seconds': minimum: got 0, want 1"),
    ({"networkPolicy": {"adminFrom": [{"pods": {}}]}}, "additional properties 'pods' not allowed"),
    ({"monitoring": {"serviceMonitor": {"interval": 15}}}, "got number, want string"),
    ({"gateway": {"enabled": True, "pools": ["Llama"]}}, "'/gateway/pools/0'"),
    ({"gateway": {"enabled": True}}, "gateway.spec is empty: write the `spec` of an InferenceGatewayConfig"),
    (
        {"gateway": {"enabled": True, "spec": {**CHAT, "timeouts": {"drain": "1s"}}}},
        "set gateway.drain.seconds and gateway.drain.delaySeconds instead",
    ),
    (
        {"gateway": {"enabled": True, "spec": {**CHAT, "admin": {"address": "127.0.0.1:1"}}}},
        "use gateway.service and gateway.tls.secretName",
    ),
    (
        {"gateway": {"enabled": True, "spec": {**CHAT, "listener": {"tls": {"clientCaFile": "ca"}}}}},
        "name its Secret in gateway.tls.secretName",
    ),
    (
        {"gateway": {"enabled": True, "peers": {"enabled": True}, "spec": {**CHAT, "peers": {}}}},
        "leave gateway.spec.peers out",
    ),
]


@pytest.mark.parametrize(("values", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_a_value_that_makes_no_sense_is_refused_and_named(values, words):
    with pytest.raises(helm_python.HelmError) as refused:
        render(values)
    assert words in str(refused.value)


def leaves(values, schema, path=""):
    """Paths of values whose keys the schema lists."""
    for key, value in values.items():
        here = f"{path}.{key}" if path else key
        below = schema["properties"].get(key)
        assert below is not None, f"{here} is not in values.schema.json"
        if "properties" in below and isinstance(value, dict) and key not in ("resources",):
            assert set(value) == set(below["properties"]), f"{here}: values and schema differ"
            assert below["additionalProperties"] is False
            yield from leaves(value, below, here)
        else:
            yield here


def test_values_and_their_schema_have_the_same_keys():
    paths = list(leaves(VALUES, SCHEMA))
    # Helm's own, for charts within charts.
    assert set(SCHEMA["properties"]) - set(VALUES) == {"global"}
    assert len(paths) > 50


def test_every_value_has_a_comment_and_stands_in_the_table():
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    told = {path for path, _, _ in values_table.rows(text)}
    assert set(leaves(VALUES, SCHEMA)) <= told
    readme = CHART / "README.md"
    end_of_prose = "not edited by hand from here on. -->\n"
    prose = readme.read_text(encoding="utf-8").partition(end_of_prose)[0]
    compare(readme, f"{prose}{end_of_prose}\n{values_table.table(text)}")


def test_every_pod_may_do_nothing_that_it_need_not(case):
    for deployment in of_kind(rendered(case), "Deployment"):
        pod = pod_of(deployment)
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert "hostNetwork" not in pod
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["requests"] and container["resources"]["limits"]["memory"]
            assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
            assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
            assert not container["image"].endswith(":latest")
        assert len(pod["topologySpreadConstraints"]) >= 1


def seconds(duration):
    number, unit = re.fullmatch(r"(\d+)(s|m|h)", duration).groups()
    return int(number) * {"s": 1, "m": 60, "h": 3600}[unit]


@pytest.mark.parametrize("values", ["gateway", "everything", "pools"])
def test_a_pod_has_longer_to_end_than_its_gateway_takes_to_drain(values):
    objects = rendered(values)
    [deployment] = [one for one in of_kind(objects, "Deployment") if "controller" not in one["metadata"]["name"]]
    [document] = of_kind(objects, "ConfigMap")
    timeouts = yaml.safe_load(document["data"]["gateway.yaml"])["spec"]["timeouts"]
    drain = seconds(timeouts["drainDelay"]) + seconds(timeouts["drain"])
    assert pod_of(deployment)["terminationGracePeriodSeconds"] == drain + 5


@pytest.mark.parametrize("values", ["gateway", "everything"])
def test_the_document_passes_wicketgates_own_check(values, tmp_path):
    [document] = of_kind(rendered(values), "ConfigMap")
    file = tmp_path / "gateway.yaml"
    file.write_text(document["data"]["gateway.yaml"], encoding="utf-8")
    checked = run(tool("WICKETGATE_TEST_BINARY"), "check", "-f", str(file))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_binary_knows_every_argument_of_the_pods(case):
    for deployment in of_kind(rendered(case), "Deployment"):
        command, *flags = pod_of(deployment)["containers"][0]["args"]
        told = run(tool("WICKETGATE_TEST_BINARY"), command, "--help")
        assert told.returncode == 0, told.stderr
        for flag in flags:
            assert f"{flag.partition('=')[0]} " in told.stdout.replace("\n", " "), f"{command} {flag}"


def selects(selector, labels):
    return selector.items() <= labels.items()


def test_whatever_selects_pods_selects_those_of_one_deployment(case):
    objects = rendered(case)
    deployments = of_kind(objects, "Deployment")
    selectors = [(one["metadata"]["name"], one["spec"]["selector"]) for one in of_kind(objects, "Service")]
    for one in of_kind(objects, "PodDisruptionBudget", "PodMonitoring", "Deployment"):
        selectors.append((one["metadata"]["name"], one["spec"]["selector"]["matchLabels"]))
    for one in of_kind(objects, "NetworkPolicy"):
        selectors.append((one["metadata"]["name"], one["spec"]["podSelector"]["matchLabels"]))
    for name, selector in selectors:
        hit = [one for one in deployments if selects(selector, labels_of(one))]
        assert len(hit) == 1, name
        # Those of the gateway are not taken for the controller's.
        assert hit[0]["metadata"]["name"].endswith("-controller") == ("-controller" in name), name


def test_a_service_monitor_finds_the_service_of_the_admin_port_and_no_other():
    objects = rendered("everything")
    monitors = of_kind(objects, "ServiceMonitor")
    assert len(monitors) == 2
    for monitor in monitors:
        selector = monitor["spec"]["selector"]["matchLabels"]
        hit = [one for one in of_kind(objects, "Service") if selects(selector, one["metadata"]["labels"])]
        assert [one["metadata"]["name"] for one in hit] == [monitor["metadata"]["name"] + "-admin"]
        assert [port["name"] for port in hit[0]["spec"]["ports"]] == [monitor["spec"]["endpoints"][0]["port"]]


def test_every_port_that_is_named_is_a_port_of_the_pods(case):
    objects = rendered(case)
    for deployment in of_kind(objects, "Deployment"):
        ports = {port["name"] for port in pod_of(deployment)["containers"][0]["ports"]}
        for service in of_kind(objects, "Service"):
            if selects(service["spec"]["selector"], labels_of(deployment)):
                assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
        for policy in of_kind(objects, "NetworkPolicy"):
            if selects(policy["spec"]["podSelector"]["matchLabels"], labels_of(deployment)):
                allowed = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
                assert allowed == ports


def test_administration_is_no_port_of_the_clients_service():
    [service] = [
        one for one in of_kind(rendered("everything"), "Service") if one["spec"].get("type") == "LoadBalancer"
    ]
    assert {port["targetPort"] for port in service["spec"]["ports"]} == {"http", "https"}


def test_without_a_namespace_the_controllers_rights_hold_everywhere_and_with_one_only_there():
    everywhere = rendered("controller")
    assert len(of_kind(everywhere, "ClusterRole")) == 1
    some = rendered("everything")
    assert of_kind(some, "ClusterRole", "ClusterRoleBinding") == []
    roles = [one["metadata"]["namespace"] for one in of_kind(some, "Role") if one["metadata"]["name"] == "gate-controller"]
    assert roles == ["team-a"]


def test_no_right_is_a_wildcard_and_none_reads_secrets(case):
    for role in of_kind(rendered(case), "Role", "ClusterRole"):
        for rule in role["rules"]:
            words = rule["apiGroups"] + rule["resources"] + rule["verbs"]
            assert "*" not in words
            assert "secrets" not in rule["resources"]
            assert not {"escalate", "bind", "impersonate"} & set(rule["verbs"])


def rights(objects):
    """(group, resource, verb) of all roles, election included."""
    return {
        (group, resource, verb)
        for role in of_kind(objects, "Role", "ClusterRole")
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


EXAMPLE = ROOT / "docs/examples/kubernetes/controller.yaml"


def test_the_controllers_rights_are_those_that_an_audit_log_showed_to_be_needed():
    # `the_controllers_rights_suffice_and_none_is_idle` runs the controller with the example's, on an API server.
    values = {"controller": {"awsGroup": True}}
    chart = [one for text in render(values).values() if "kind:" in text for one in yaml.safe_load_all(text) if one]
    proved = list(yaml.safe_load_all(EXAMPLE.read_text(encoding="utf-8")))
    assert rights(chart) == rights(proved)


def test_a_gateway_of_pools_has_the_rights_of_the_example_and_starts_with_the_pools_names():
    example = yaml.safe_load_all((ROOT / "docs/examples/kubernetes/pool.yaml").read_text(encoding="utf-8"))
    objects = rendered("pools")
    assert rights(objects) == rights(list(example))
    [deployment] = of_kind(objects, "Deployment")
    assert "--pool=inference/llama" in pod_of(deployment)["containers"][0]["args"]


def test_the_charts_versions_are_those_of_the_workspace():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    version = workspace["workspace"]["package"]["version"]
    assert (chart["version"], chart["appVersion"]) == (version, version)
