"""Manifests that are shipped as files: valid for several releases of Kubernetes, and current."""

import json
import re
import shutil
from pathlib import Path

import kubernetes_validate
import pytest
import schemas
import yaml
from conftest import CASES, CHART, ROOT, as_text, compare, of_kind, rendered, run, tool

# The oldest that the chart takes, one between, the newest whose schemas there are.
RELEASES = ["1.29", "1.33", "1.37"]
KUSTOMIZATIONS = ["crds", "controller", "gateway", "example"]
GENERATED = "# Made of the chart by `INSTA_UPDATE=always cargo xtask test --only chart`; not edited by hand.\n"
# Kinds of projects whose definitions no package registry gives us.
UNKNOWN = "HelmRelease,PodMonitoring"


@pytest.fixture(scope="session")
def definitions(tmp_path_factory):
    """JSON schemas of kinds that are not Kubernetes' own: ours, and those of the projects that we write for."""
    folder = tmp_path_factory.mktemp("definitions")
    others = Path(tool("WICKETGATE_TEST_DEFINITIONS"))
    for path in [*(CHART / "crds").iterdir(), *(ROOT / "deploy/aws").iterdir(), *others.glob("*.yaml")]:
        schemas.write(path, folder)
    return folder


@pytest.fixture(scope="session")
def builtin(tmp_path_factory):
    """Kubernetes' own kinds, a folder for each release. The package names files as if they were on a server."""
    made = tmp_path_factory.mktemp("builtin")
    for release in RELEASES:
        folder = made / release
        folder.mkdir()
        kept = Path(kubernetes_validate.__file__).parent / f"kubernetes-json-schema/v{release}.0-local-strict"
        for path in kept.glob("*.json"):
            text = path.read_text(encoding="utf-8").replace('"/api/_definitions.json', '"_definitions.json')
            schema = json.loads(text)
            schema.pop("$id", None)
            (folder / path.name).write_text(json.dumps(schema), encoding="utf-8")
    return made


def conform(text, builtin, definitions, release):
    return run(
        tool("WICKETGATE_TEST_KUBECONFORM"),
        "-strict",
        "-summary",
        "-skip",
        UNKNOWN,
        "-kubernetes-version",
        f"{release}.0",
        "-schema-location",
        f"{builtin}/{release}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json",
        "-schema-location",
        f"{definitions}/{{{{.Group}}}}/{{{{.ResourceKind}}}}_{{{{.ResourceAPIVersion}}}}.json",
        "-",
        input=text,
    )


def holds(text, builtin, definitions, release):
    judged = conform(text, builtin, definitions, release)
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert "Invalid: 0, Errors: 0" in judged.stdout


def built(name):
    made = run(tool("WICKETGATE_TEST_KUSTOMIZE"), "build", str(ROOT / "deploy/kustomize" / name))
    assert made.returncode == 0, made.stderr
    return made.stdout


@pytest.mark.parametrize("release", RELEASES)
def test_what_the_chart_makes_conforms(case, release, builtin, definitions):
    holds(as_text(rendered(case)), builtin, definitions, release)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", KUSTOMIZATIONS)
def test_what_kustomize_makes_conforms(name, release, builtin, definitions):
    holds(built(name), builtin, definitions, release)


@pytest.mark.parametrize(
    "path",
    [
        "deploy/argocd/application.yaml",
        "deploy/flux/release.yaml",
        "deploy/prometheus/service-monitor.yaml",
        "docs/examples/kubernetes/serve.yaml",
        "docs/examples/aws-manifest.yaml",
    ],
)
def test_a_file_that_is_shipped_conforms(path, builtin, definitions):
    holds((ROOT / path).read_text(encoding="utf-8"), builtin, definitions, RELEASES[-1])


def test_a_misspelt_field_would_be_noticed(builtin, definitions):
    text = as_text(rendered("gateway"))
    for right, wrong in [("maxUnavailable:", "maxUnavailabel:"), ("replicas: 2", "replicas: two")]:
        judged = conform(text.replace(right, wrong), builtin, definitions, "1.37")
        assert judged.returncode == 1 and "problem validating schema" in judged.stdout
    monitor = as_text(of_kind(rendered("everything"), "ServiceMonitor"))
    judged = conform(monitor.replace("interval:", "intervall:"), builtin, definitions, "1.37")
    assert judged.returncode == 1 and "intervall" in judged.stdout


def plain(objects, namespace):
    """Without what only Helm knows, and at home in any namespace."""
    for one in objects:
        metadatas = [one["metadata"]]
        if one["kind"] == "Deployment":
            metadatas.append(one["spec"]["template"]["metadata"])
        for metadata in metadatas:
            metadata["labels"].pop("helm.sh/chart", None)
            if metadata.get("namespace") == namespace:
                del metadata["namespace"]
        if one["kind"] == "RoleBinding":
            for subject in one["subjects"]:
                # Kustomize knows that it is the account beside it.
                subject.pop("namespace")
    return objects


@pytest.mark.parametrize("name", ["controller", "gateway"])
def test_plain_manifests_are_what_the_chart_makes(name):
    namespace = "wicketgate-system"
    objects = plain(rendered(name, namespace=namespace), namespace)
    compare(ROOT / f"deploy/kustomize/{name}/{name}.yaml", GENERATED + as_text(objects))


def test_kustomize_brings_the_definition_that_the_chart_brings():
    [path] = (CHART / "crds").iterdir()
    compare(ROOT / "deploy/kustomize/crds" / path.name, path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["controller", "example"])
def test_a_kustomization_puts_everything_into_its_namespace(name):
    objects = list(yaml.safe_load_all(built(name)))
    namespaces = {one["metadata"].get("namespace") for one in objects if not cluster_wide(one)}
    assert len(namespaces) == 1 and None not in namespaces
    for binding in of_kind(objects, "RoleBinding", "ClusterRoleBinding"):
        assert {subject["namespace"] for subject in binding["subjects"]} == namespaces


def cluster_wide(one):
    return one["kind"] in ("Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding")


def test_the_example_of_kustomize_changes_image_size_and_document(tmp_path):
    objects = list(yaml.safe_load_all(built("example")))
    [deployment] = of_kind(objects, "Deployment")
    assert deployment["spec"]["replicas"] == 3
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example/wicketgate:0.1.0"
    [document] = of_kind(objects, "ConfigMap")
    file = tmp_path / "gateway.yaml"
    file.write_text(document["data"]["gateway.yaml"], encoding="utf-8")
    checked = run(tool("WICKETGATE_TEST_BINARY"), "check", "-f", str(file))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_values_of_the_gitops_examples_are_values_of_the_chart():
    import helm_python

    [application] = yaml.safe_load_all((ROOT / "deploy/argocd/application.yaml").read_text(encoding="utf-8"))
    helm_values = application["spec"]["source"]["helm"]["valuesObject"]
    _, release = yaml.safe_load_all((ROOT / "deploy/flux/release.yaml").read_text(encoding="utf-8"))
    for values in (helm_values, release["spec"]["values"]):
        assert helm_python.Chart.load(str(CHART)).render(values, name="wicketgate", namespace="x")


def test_the_add_ons_package_has_nothing_that_the_add_on_service_cannot_render(tmp_path):
    packed = run(str(ROOT / "deploy/eks-addon/package"), str(tmp_path))
    assert packed.returncode == 0, packed.stderr
    chart = tmp_path / "wicketgate"
    for path in (chart / "templates").rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            used = set(re.findall(r"\.Release\.(\w+)", text))
            assert used <= {"Name", "Namespace"}, path
            for word in ("helm.sh/hook", "lookup", ".Capabilities"):
                assert word not in text, f"{path}: {word}"
    assert "dependencies" not in yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))
    assert not (chart / "charts").exists()
    shutil.rmtree(chart)


def test_the_add_ons_schema_is_that_of_the_controllers_values():
    values = schemas.read_json(CHART / "values.schema.json")
    concerned = {name: values["properties"][name] for name in ("controller", "networkPolicy", "monitoring")}
    expected = {**values, "title": "Configuration values of the EKS add-on wicketgate", "properties": concerned}
    compare(ROOT / "deploy/eks-addon/aws_mp_configuration_schema.json", schemas.as_json(expected))


def test_every_case_has_a_golden_file_and_no_other_is_kept():
    golden = {path.stem for path in (Path(__file__).parent / "golden").glob("*.yaml")}
    assert golden == set(CASES)
