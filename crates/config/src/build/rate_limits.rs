//! `rateLimits`.

use std::collections::BTreeSet;
use std::num::{NonZeroU32, NonZeroU64};

use limits::{Amount, Factor, Match, Override, Per, Rule, Weight};
use types::Priority;

use super::View;

pub(super) fn rule(view: View<'_>) -> Rule {
    let weight = view.get("tokens").get("outputWeight").number().and_then(Weight::new);
    let per = view.get("per").texts();
    let has = |property: &str| per.iter().any(|own| own == property);
    Rule {
        per: Per {
            tenant: has("tenant"),
            key: has("key"),
            model: has("model"),
            route: has("route"),
        },
        matches: matches(view.get("match")),
        requests: amount(view.get("requests")),
        input_tokens: amount(view.get("inputTokens")),
        output_tokens: amount(view.get("outputTokens")),
        tokens: amount(view.get("tokens")),
        output_weight: weight.unwrap_or(Weight::ONE),
        concurrent: view.get("concurrent").integer::<u32>().and_then(NonZeroU32::new),
        shadow: view.get("shadow").flag().unwrap_or(false),
        overrides: view.get("overrides").items().map(other).collect(),
        ..Rule::new(view.get("name").word().unwrap_or_default())
    }
}

fn amount(view: View<'_>) -> Amount {
    let number = |key| view.get(key).integer::<u64>().and_then(NonZeroU64::new);
    Amount {
        per_second: number("perSecond"),
        per_minute: number("perMinute"),
        per_hour: number("perHour"),
        per_day: number("perDay"),
        burst: number("burst"),
    }
}

fn other(view: View<'_>) -> Override {
    let factor = view.get("factor").number().and_then(Factor::new);
    Override { matches: matches(view), factor: factor.unwrap_or(Factor::ONE) }
}

fn matches(view: View<'_>) -> Match {
    let names = |key| -> BTreeSet<Box<str>> {
        view.get(key).items().filter_map(View::word).map(Box::from).collect()
    };
    let priorities = view.get("priorities").items().filter_map(View::word);
    Match {
        tenants: names("tenants"),
        keys: names("keys"),
        models: names("models"),
        routes: names("routes"),
        priorities: priorities.filter_map(Priority::parse).collect(),
    }
}
