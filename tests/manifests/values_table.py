"""The table of the chart's values, from the comments of values.yaml.

A comment stands right above its key; mappings whose keys have comments are sections of the table.
"""

import re

import yaml


def rows(text):
    """(path, default as YAML in one line, meaning) for each key with a comment of its own."""
    made, path, comment = [], [], []
    for line in text.splitlines():
        if not line.strip():
            comment = []
            continue
        indent = len(line) - len(line.lstrip())
        if line.lstrip().startswith("#"):
            comment.append(line.strip().lstrip("# "))
            continue
        key, _, rest = line.strip().partition(":")
        path = path[: indent // 2] + [key]
        if comment:
            made.append((".".join(path), rest.strip(), " ".join(comment)))
        comment = []
    return made


def default(path, rest, values):
    value = values
    for key in path.split("."):
        value = value[key]
    return yaml.safe_dump(value, default_flow_style=True, width=1000).strip().removesuffix("...").strip()


def table(text):
    values = yaml.safe_load(text)
    lines = ["| value | default | meaning |", "| --- | --- | --- |"]
    for path, rest, meaning in rows(text):
        lines.append(f"| `{path}` | `{default(path, rest, values)}` | {re.sub(r'[|]', chr(92) + '|', meaning)} |")
    return "\n".join(lines) + "\n"
