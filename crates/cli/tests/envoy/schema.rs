//! Enough of JSON schema and of Kubernetes' structural schemas to find a misspelt or misplaced field.

use serde_json::{Map, Value};

/// Whose habits a schema follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// A CRD: fields that are not in it are an error, as `kubectl` with strict validation has it.
    Kubernetes,
    JsonSchema,
}

/// What is wrong with `value`, a line for each finding.
pub(crate) fn findings(schema: &Value, value: &Value, dialect: Dialect) -> Vec<String> {
    let mut check = Check { root: schema, dialect, out: Vec::new() };
    check.value(schema, value, "", dialect == Dialect::Kubernetes);
    check.out
}

struct Check<'a> {
    root: &'a Value,
    dialect: Dialect,
    out: Vec<String>,
}

impl Check<'_> {
    /// `is_closed`: whether unknown fields are an error here, as they are not inside of `anyOf` and its like.
    fn value(&mut self, schema: &Value, value: &Value, at: &str, is_closed: bool) {
        let Some(rules) = schema.as_object() else {
            if schema == &Value::Bool(false) {
                self.out.push(format!("{at}: not allowed"));
            }
            return;
        };
        if let Some(Value::String(target)) = rules.get("$ref") {
            let target = target.trim_start_matches('#');
            let target = self.root.pointer(target).unwrap_or_else(|| panic!("no {target}"));
            self.value(target, value, at, is_closed);
        }
        if rules.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
            return;
        }
        if !has_type(rules, value) {
            self.out.push(format!("{at}: {value} is no {}", rules["type"]));
            return;
        }
        if let Some(Value::Array(words)) = rules.get("enum")
            && !words.contains(value)
        {
            self.out.push(format!("{at}: {value} is none of {}", Value::from(words.clone())));
        }
        if rules.get("const").is_some_and(|only| only != value) {
            self.out.push(format!("{at}: {value} is not {}", rules["const"]));
        }
        self.bounds(rules, value, at);
        self.choices(rules, value, at);
        match value {
            Value::Object(fields) => self.fields(rules, fields, at, is_closed),
            Value::Array(items) => {
                if let Some(item) = rules.get("items") {
                    for (index, value) in items.iter().enumerate() {
                        self.value(item, value, &format!("{at}[{index}]"), is_closed);
                    }
                }
            }
            _ => {}
        }
    }

    fn bounds(&mut self, rules: &Map<String, Value>, value: &Value, at: &str) {
        let bound = |key| rules.get(key).and_then(Value::as_f64);
        let (size, least, most) = match value {
            Value::Number(number) => (number.as_f64(), bound("minimum"), bound("maximum")),
            Value::String(text) => {
                (Some(text.chars().count() as f64), bound("minLength"), bound("maxLength"))
            }
            Value::Array(items) => (Some(items.len() as f64), bound("minItems"), bound("maxItems")),
            _ => return,
        };
        let Some(size) = size else { return };
        if least.is_some_and(|least| size < least) || most.is_some_and(|most| size > most) {
            self.out.push(format!("{at}: {size} is not within {least:?} to {most:?}"));
        }
    }

    fn choices(&mut self, rules: &Map<String, Value>, value: &Value, at: &str) {
        let fits = |this: &Self, schema: &Value| {
            let mut inner = Check { root: this.root, dialect: this.dialect, out: Vec::new() };
            inner.value(schema, value, at, false);
            inner.out
        };
        for (key, least, most) in [("anyOf", 1, usize::MAX), ("oneOf", 1, 1)] {
            let Some(Value::Array(schemas)) = rules.get(key) else { continue };
            let outcomes: Vec<_> = schemas.iter().map(|schema| fits(self, schema)).collect();
            let count = outcomes.iter().filter(|findings| findings.is_empty()).count();
            if !(least..=most).contains(&count) {
                self.out.push(format!("{at}: {count} of {key} fit: {outcomes:?}"));
            }
        }
        if let Some(Value::Array(schemas)) = rules.get("allOf") {
            for schema in schemas {
                let found = fits(self, schema);
                self.out.extend(found);
            }
        }
        if rules.get("not").is_some_and(|schema| fits(self, schema).is_empty()) {
            self.out.push(format!("{at}: excluded"));
        }
    }

    fn fields(
        &mut self,
        rules: &Map<String, Value>,
        fields: &Map<String, Value>,
        at: &str,
        is_closed: bool,
    ) {
        for name in rules.get("required").and_then(Value::as_array).into_iter().flatten() {
            if !name.as_str().is_some_and(|name| fields.contains_key(name)) {
                self.out.push(format!("{at}: {name} is missing"));
            }
        }
        let known = rules.get("properties").and_then(Value::as_object);
        let others = rules.get("additionalProperties");
        for (name, value) in fields {
            let at = format!("{at}.{name}");
            match (known.and_then(|known| known.get(name)), others) {
                (Some(schema), _) => self.value(schema, value, &at, is_closed),
                (None, Some(Value::Bool(false))) => self.out.push(format!("{at}: unknown")),
                (None, Some(schema)) => self.value(schema, value, &at, is_closed),
                (None, None) if is_closed && known.is_some() => {
                    self.out.push(format!("{at}: unknown"));
                }
                (None, None) => {}
            }
        }
    }
}

fn has_type(rules: &Map<String, Value>, value: &Value) -> bool {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("unknown type {other}"),
    };
    match rules.get("type") {
        Some(Value::String(name)) => is(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(is),
        _ => true,
    }
}
