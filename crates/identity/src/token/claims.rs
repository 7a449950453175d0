//! What claims say.

use config::{ClaimType, RequiredClaim};
use serde_json::Value;

use super::Claims;

/// A claim by its whole name, else by the path that its dots make: `realm_access.roles`.
fn find<'a>(claims: &'a Claims, name: &str) -> Option<&'a Value> {
    if let Some(value) = claims.get(name) {
        return Some(value);
    }
    let mut parts = name.split('.');
    let first = claims.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

/// A claim that is text.
pub(crate) fn text<'a>(claims: &'a Claims, name: &str) -> Option<&'a str> {
    find(claims, name)?.as_str()
}

/// Whether a claim is this text, or a list with it.
pub(crate) fn has_value(claims: &Claims, name: &str, value: &str) -> bool {
    match find(claims, name) {
        Some(Value::String(own)) => own == value,
        Some(Value::Array(items)) => items.iter().any(|item| item.as_str() == Some(value)),
        _ => false,
    }
}

/// Whether the token is meant for one of these.
pub(super) fn is_for(claims: &Claims, audiences: &[String]) -> bool {
    audiences.iter().any(|audience| match claims.get("aud") {
        Some(Value::String(own)) => own == audience,
        Some(Value::Array(items)) => items.iter().any(|item| item.as_str() == Some(audience)),
        _ => false,
    })
}

/// Whether a claim has the wanted shape and one of the accepted values.
pub(super) fn has(claims: &Claims, required: &RequiredClaim) -> bool {
    let accepted = |text: &str| required.values.iter().any(|value| value == text);
    match (find(claims, &required.name), required.value_type) {
        (Some(Value::String(own)), ClaimType::String) => accepted(own),
        (Some(Value::Array(items)), ClaimType::StringArray) => {
            items.iter().filter_map(Value::as_str).any(accepted)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims() -> Claims {
        let claims = json!({
            "groups": ["ml", "ops"], "org": "acme", "level": 3,
            "realm_access": { "roles": ["user"] }, "https://x.test/team": "blue",
        });
        claims.as_object().unwrap().clone()
    }

    fn required(name: &str, value_type: ClaimType, value: &str) -> RequiredClaim {
        RequiredClaim { name: name.to_owned(), value_type, values: vec![value.to_owned()] }
    }

    #[test]
    fn a_claim_of_another_shape_does_not_count() {
        let (one, list) = (ClaimType::String, ClaimType::StringArray);
        assert!(has(&claims(), &required("org", one, "acme")));
        assert!(!has(&claims(), &required("org", list, "acme")));
        assert!(has(&claims(), &required("groups", list, "ops")));
        assert!(!has(&claims(), &required("groups", one, "ops")));
        assert!(!has(&claims(), &required("groups", list, "op")));
        assert!(!has(&claims(), &required("level", one, "3")));
        assert!(!has(&claims(), &required("absent", one, "")));
    }

    #[test]
    fn dots_lead_into_objects_unless_they_are_part_of_the_name() {
        assert!(has_value(&claims(), "realm_access.roles", "user"));
        assert_eq!(text(&claims(), "https://x.test/team"), Some("blue"));
        assert_eq!(text(&claims(), "realm_access.roles.0"), None);
    }
}
