//! `modelRewrites[]`.

use types::{ModelName, PoolName};

use super::View;
use crate::spec::{Mirror, ModelRewrite, RewriteRule, RewriteTarget, Rollback, Sticky};

pub(super) fn model_rewrite(view: View<'_>) -> ModelRewrite {
    ModelRewrite {
        name: view.get("name").word().unwrap_or_default().into(),
        pool: view.get("poolRef").get("name").word().map(PoolName::from),
        rules: view.get("rules").items().map(rule).collect(),
    }
}

fn rule(view: View<'_>) -> RewriteRule {
    let names = view.get("matches").items().map(|item| item.get("model").get("value"));
    RewriteRule {
        matches: names.filter_map(View::word).map(ModelName::from).collect(),
        targets: view.get("targets").items().map(target).collect(),
        sticky: match view.get("sticky").word() {
            Some("session") => Sticky::Session,
            Some("user") => Sticky::User,
            _ => Sticky::None,
        },
        mirror: view.get("mirror").present().map(mirror),
        rollback: view.get("rollback").present().map(rollback),
    }
}

fn target(view: View<'_>) -> RewriteTarget {
    RewriteTarget {
        model: ModelName::from(view.get("modelRewrite").word().unwrap_or_default()),
        // The rules see to it that all have a weight or none.
        weight: view.get("weight").integer().unwrap_or(1),
        stable: view.get("stable").flag().unwrap_or(false),
    }
}

fn mirror(view: View<'_>) -> Mirror {
    let model = ModelName::from(view.get("modelRewrite").word().unwrap_or_default());
    let default = Mirror::new(model);
    Mirror {
        share: view.get("share").ratio().unwrap_or(default.share),
        concurrency_max: view.get("concurrencyMax").positive().unwrap_or(default.concurrency_max),
        ..default
    }
}

fn rollback(view: View<'_>) -> Rollback {
    let default = Rollback::default();
    Rollback {
        error_rate: view.get("errorRate").ratio().unwrap_or(default.error_rate),
        ttft_ratio: view.get("ttftRatio").number().unwrap_or(default.ttft_ratio),
        ttft_slack: view.get("ttftSlack").duration().unwrap_or(default.ttft_slack),
        window: view.get("window").duration().unwrap_or(default.window),
        requests_min: view.get("minRequests").positive().unwrap_or(default.requests_min),
    }
}
