"""The few commands of Helm that tests need, over its own SDK.

    helm.py template CHART VALUES RELEASE NAMESPACE
    helm.py install | upgrade CHART VALUES RELEASE NAMESPACE KUBECONFIG
    helm.py rollback RELEASE NAMESPACE KUBECONFIG REVISION
    helm.py uninstall RELEASE NAMESPACE KUBECONFIG
    helm.py history RELEASE NAMESPACE KUBECONFIG

`VALUES` is a file, `-` for none. Answers are JSON; an error is one on standard error, with exit code 1.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import helm_python as helm
import yaml


def values_of(path):
    if path == "-":
        return {}
    with open(path, encoding="utf-8") as file:
        return yaml.safe_load(file) or {}


def template(chart, values, release, namespace):
    """All objects that a release would have, without the resource definitions."""
    rendered = helm.Chart.load(chart).render(values_of(values), name=release, namespace=namespace)
    objects = []
    for path, text in sorted(rendered.items()):
        if path.endswith((".yaml", ".yml")):
            objects += [one for one in yaml.safe_load_all(text) if one]
    return objects


def cluster(namespace, kubeconfig):
    return helm.Config(kubeconfig_path=kubeconfig, namespace=namespace)


def without_version(chart, folder):
    """The same chart for an API server that does not know its own version, because it was built from its module."""
    copy = Path(folder) / "wicketgate"
    shutil.copytree(chart, copy)
    file = copy / "Chart.yaml"
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.startswith("kubeVersion:")), encoding="utf-8")
    return str(copy)


def put(action, chart, values, release, namespace, kubeconfig):
    with cluster(namespace, kubeconfig) as config, tempfile.TemporaryDirectory() as folder:
        act = getattr(config, action)
        try:
            return act(chart, release, values_of(values), namespace=namespace)
        except helm.HelmError as error:
            if "incompatible with Kubernetes v0.0.0" not in str(error):
                raise
            return act(without_version(chart, folder), release, values_of(values), namespace=namespace)


def install(*arguments):
    return put("install", *arguments)


def upgrade(*arguments):
    return put("upgrade", *arguments)


def rollback(release, namespace, kubeconfig, revision):
    with cluster(namespace, kubeconfig) as config:
        return config.rollback(release, version=int(revision))


def uninstall(release, namespace, kubeconfig):
    with cluster(namespace, kubeconfig) as config:
        return config.uninstall(release)


def history(release, namespace, kubeconfig):
    with cluster(namespace, kubeconfig) as config:
        return config.history(release)


COMMANDS = (template, install, upgrade, rollback, uninstall, history)

if __name__ == "__main__":
    [command] = [one for one in COMMANDS if one.__name__ == sys.argv[1]]
    try:
        json.dump(command(*sys.argv[2:]), sys.stdout, default=str)
    except helm.HelmError as error:
        sys.exit(str(error))
