"""JSON schemas from definitions of resources, closed as an API server closes them under strict validation."""

import json

import yaml


def write(path, folder):
    """Writes GROUP/kind_version.json for each version of each definition in the file."""
    for one in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        if not one or one["kind"] != "CustomResourceDefinition":
            continue
        names, group = one["spec"]["names"], one["spec"]["group"]
        for version in one["spec"]["versions"]:
            schema = closed(version["schema"]["openAPIV3Schema"])
            schema.setdefault("properties", {})["metadata"] = {"type": "object"}
            file = folder / group / f"{names['kind'].lower()}_{version['name']}.json"
            file.parent.mkdir(exist_ok=True)
            file.write_text(json.dumps(schema), encoding="utf-8")


def closed(schema):
    if not isinstance(schema, dict):
        return schema
    # Rules in CEL are the API server's; extensions mean nothing to a validator.
    made = {key: value for key, value in schema.items() if not key.startswith("x-kubernetes-")}
    if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
        made.pop("type", None)
        made.pop("format", None)
        made.setdefault("anyOf", [{"type": "integer"}, {"type": "string"}])
    for key in ("properties", "patternProperties"):
        if key in made:
            made[key] = {name: closed(value) for name, value in made[key].items()}
    for key in ("items", "additionalProperties", "not"):
        if isinstance(made.get(key), dict):
            made[key] = closed(made[key])
    is_open = schema.get("x-kubernetes-preserve-unknown-fields")
    if "properties" in made and "additionalProperties" not in made and not is_open:
        made["additionalProperties"] = False
    return made


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def as_json(value):
    return json.dumps(value, indent=2) + "\n"
