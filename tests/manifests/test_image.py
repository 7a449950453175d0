"""The image's recipe, by rules: nothing here can run it."""

import re
import tomllib

from conftest import ROOT

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def instructions():
    joined = re.sub(r"\\\n", " ", re.sub(r"(?m)^\s*#.*\n", "", TEXT))
    return [line.split(None, 1) for line in joined.splitlines() if line.strip()]


def stages():
    stages = []
    for name, rest in instructions():
        if name == "FROM":
            stages.append([])
        stages[-1].append((name, rest))
    return stages


def test_the_last_stage_is_empty_but_for_what_is_copied():
    last = stages()[-1]
    assert last[0] == ("FROM", "scratch")
    assert {name for name, _ in last} <= {"FROM", "LABEL", "COPY", "USER", "EXPOSE", "ENTRYPOINT", "CMD"}
    assert all(rest.startswith("--from=build ") for name, rest in last if name == "COPY")


def test_it_does_not_run_as_root_and_needs_no_user_database():
    [user] = [rest for name, rest in stages()[-1] if name == "USER"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    values = (ROOT / "charts/wicketgate/values.yaml").read_text(encoding="utf-8")
    assert f"runAsUser: {user.split(':')[0]}\n" in values


def test_the_process_gets_signals_itself():
    [entry] = [rest for name, rest in stages()[-1] if name == "ENTRYPOINT"]
    assert entry == '["/wicketgate"]'


def test_what_is_built_from_is_named_by_version_and_nothing_is_fetched_by_address():
    for name, rest in instructions():
        assert name != "ADD"
        if name == "FROM" and rest != "scratch":
            assert re.search(r":\d+\.\d+", rest) and "latest" not in rest
        assert not re.search(r"curl|wget", rest)
    script = (ROOT / "deploy/image/build-static").read_text(encoding="utf-8")
    assert "--locked" in script and "linux-musl" in script


def test_the_compiler_is_not_older_than_the_one_that_is_promised():
    [version] = re.findall(r"FROM rust:(\d+\.\d+)", TEXT)
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    [promised] = re.findall(r'rust-version = "(\d+\.\d+)"', manifest)
    assert [int(part) for part in version.split(".")] >= [int(part) for part in promised.split(".")]


def test_the_ports_that_it_names_are_those_of_the_documentation():
    [ports] = [rest for name, rest in stages()[-1] if name == "EXPOSE"]
    operations = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    for port in ports.split():
        assert f":{port}`" in operations, port


def test_only_what_the_binary_is_made_of_is_sent_to_the_builder():
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").split("\n")
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    kept = {line.removeprefix("!") for line in rules[1:]}
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    for member in manifest["workspace"]["members"]:
        assert member.removesuffix("/*") in kept, member
    assert {"Cargo.toml", "Cargo.lock", "LICENSE"} <= kept
