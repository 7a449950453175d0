"""What all tests of manifests look at."""

import os
import subprocess
from pathlib import Path

import helm
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
CHART = ROOT / "charts/wicketgate"
NAMESPACE = "inference"
# The chart as it comes, one gateway alone, and every value that changes an object.
CASES = sorted(path.stem for path in (HERE / "values").glob("*.yaml"))


def rendered(case, namespace=NAMESPACE, release="wicketgate"):
    return helm.template(str(CHART), str(HERE / f"values/{case}.yaml"), release, namespace)


def of_kind(objects, *kinds):
    return [one for one in objects if one["kind"] in kinds]


def as_text(objects):
    return yaml.safe_dump_all(objects, sort_keys=True, width=120, allow_unicode=True)


def tool(name):
    """A program that `cargo xtask test` names."""
    path = os.environ.get(name)
    assert path, f"{name} is not set; run `cargo xtask test --only chart`"
    return path


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def compare(path, text):
    """The text is what the file holds; with `INSTA_UPDATE=always` it will be."""
    if os.environ.get("INSTA_UPDATE") == "always":
        path.write_text(text, encoding="utf-8")
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    assert text == kept, (
        f"{path.relative_to(ROOT)} is out of date: look, then INSTA_UPDATE=always cargo xtask test --only chart"
    )


@pytest.fixture(params=CASES)
def case(request):
    return request.param
