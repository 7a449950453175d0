//! Makes the rules from the document, and keeps the splits whose rule did not change.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use config::{ModelRewrite, RewriteRule, Spec};
use openai::ModelCard;
use rand::RngExt;
use rollout::{Guard, Plan, Rollout, Target as Part};
use telemetry::metrics::{DecisionKey, RuleKey};
use telemetry::{Metrics, clock};
use types::ModelName;

use super::copies::{Mirroring, Tally};
use super::{Matched, Rewrites, Rule, RuleTarget};
use crate::catalog::{Catalog, Target};

/// As the field's metrics have it for rules without matches: not the client's text.
const ANY_MODEL: &str = "*";

/// The splits, which outlive catalogs.
#[derive(Debug, Default)]
pub(crate) struct Rollouts {
    kept: HashMap<(Box<str>, usize), Kept>,
}

#[derive(Debug)]
struct Kept {
    rule: RewriteRule,
    rollout: Arc<Rollout>,
    mirror: Arc<Tally>,
    /// Which targets were served last.
    served: Vec<bool>,
}

/// Series that are in use.
#[derive(Default)]
struct Used {
    decisions: BTreeSet<DecisionKey>,
    targets: BTreeSet<RuleKey>,
    mirrors: BTreeSet<RuleKey>,
}

impl Rollouts {
    /// Puts the document's rules into the catalog, whose names and pools are complete.
    pub(crate) fn build(
        &mut self,
        spec: &Spec,
        catalog: &mut Catalog,
        metrics: &Metrics,
        warnings: &mut Vec<String>,
    ) {
        let mut rewrites = Rewrites::default();
        let mut used = Used::default();
        let mut last = std::mem::take(&mut self.kept);
        for rewrite in &spec.model_rewrites {
            for (index, rule) in rewrite.rules.iter().enumerate() {
                let key = (rewrite.name.clone(), index);
                let kept = last.remove(&key).filter(|kept| kept.rule == *rule);
                let mut kept = kept.unwrap_or_else(|| Kept::new(rule));
                let built = kept.build(rewrite, index, catalog, metrics, &mut used, warnings);
                self.kept.insert(key, kept);
                rewrites.add(Arc::new(built), catalog, metrics, &mut used);
            }
        }
        metrics.keep_rewrites(&used.decisions, &used.targets, &used.mirrors);
        let aliases = rewrites.aliases(catalog).map(|(name, rule)| card(name, rule, catalog));
        for card in aliases.collect::<Vec<_>>() {
            catalog.cards.insert(ModelName::new(&card.id), card);
        }
        catalog.rewrites = rewrites;
    }
}

/// An alias as a model: with the context of what it mostly stands for.
fn card(name: &ModelName, rule: &Rule, catalog: &Catalog) -> ModelCard {
    let home = rule.home().and_then(|target| catalog.cards.get(target.name.as_str()));
    ModelCard {
        id: name.as_str().to_owned(),
        owned_by: "wicketgate".to_owned(),
        parent: None,
        max_model_len: home.and_then(|card| card.max_model_len),
        created: 0,
    }
}

impl Kept {
    fn new(rule: &RewriteRule) -> Self {
        let targets = rule.targets.iter().map(|target| Part {
            name: target.model.as_str().into(),
            weight: target.weight,
            is_stable: target.stable,
        });
        let guard = rule.rollback.as_ref().map(|rollback| Guard {
            error_rate: rollback.error_rate.get().into(),
            ttft_ratio: rollback.ttft_ratio,
            ttft_slack: rollback.ttft_slack,
            window: rollback.window,
            requests_min: rollback.requests_min.get(),
        });
        let mut rng = rand::rng();
        Self {
            rule: rule.clone(),
            rollout: Arc::new(Rollout::new(
                Plan { targets: targets.collect(), guard },
                rng.random(),
            )),
            mirror: Arc::new(Tally::new(rng.random())),
            served: Vec::new(),
        }
    }

    fn build(
        &mut self,
        rewrite: &ModelRewrite,
        index: usize,
        catalog: &Catalog,
        metrics: &Metrics,
        used: &mut Used,
        warnings: &mut Vec<String>,
    ) -> Rule {
        let key = |target: &ModelName| RuleKey {
            rewrite: rewrite.name.clone(),
            rule: index.to_string().into(),
            target: target.as_str().into(),
        };
        let targets: Vec<_> = self
            .rule
            .targets
            .iter()
            .map(|target| {
                used.targets.insert(key(&target.model));
                RuleTarget {
                    name: target.model.clone(),
                    found: served(&target.model, catalog),
                    metrics: metrics.rewrite_target(key(&target.model)),
                }
            })
            .collect();
        let now: Vec<_> = targets.iter().map(|target| target.found.is_some()).collect();
        for (target, was) in targets.iter().zip(&self.served) {
            if *was && target.found.is_none() {
                let (name, rewrite) = (&target.name, &rewrite.name);
                warnings.push(format!(
                    "nobody serves `{name}` any more: its share of `{rewrite}` goes to the other targets"
                ));
            }
        }
        self.served = now;
        let mirroring = self.rule.mirror.as_ref().map(|mirror| {
            used.mirrors.insert(key(&mirror.model));
            Mirroring {
                name: mirror.model.clone(),
                found: served(&mirror.model, catalog),
                share: mirror.share.get().into(),
                concurrency_max: mirror.concurrency_max.get(),
                metrics: metrics.mirror(key(&mirror.model)),
                tally: self.mirror.clone(),
            }
        });
        let rule = Rule {
            rewrite: (*rewrite.name).into(),
            index,
            pool: rewrite.pool.clone(),
            matches: self.rule.matches.clone(),
            sticky: self.rule.sticky,
            rollout: self.rollout.clone(),
            targets,
            mirroring,
        };
        rule.publish(clock::now());
        rule
    }
}

/// What a name stands for, whoever asks for it.
fn served(name: &ModelName, catalog: &Catalog) -> Option<Target> {
    if let Some(target) = catalog.get(name.as_str()) {
        return Some(target.clone());
    }
    // Without body-based routing the one pool serves whatever it is asked for.
    let pool = catalog.catch_all.as_ref()?;
    Some(Target { pool: pool.clone(), name: pool.model.clone(), adapter: None })
}

impl Rewrites {
    /// Adds a rule after those that go before it.
    fn add(&mut self, rule: Arc<Rule>, catalog: &Catalog, metrics: &Metrics, used: &mut Used) {
        let mut matched = |model: &str| {
            let decisions = rule.targets.iter().map(|target| {
                let key = DecisionKey {
                    rewrite: (&*rule.rewrite).into(),
                    model: model.into(),
                    target: target.name.as_str().into(),
                };
                used.decisions.insert(key.clone());
                metrics.rewrite_decisions(key)
            });
            Arc::new(Matched { decisions: decisions.collect(), rule: rule.clone() })
        };
        if let Some(pool) = &rule.pool {
            let own = self.of_pools.entry(pool.clone()).or_default();
            for name in &rule.matches {
                let exact = own.exact.entry(name.clone());
                exact.or_insert_with(|| matched(name.as_str()));
            }
            if rule.matches.is_empty() {
                own.catch_all.get_or_insert_with(|| matched(ANY_MODEL));
            }
        }
        for name in &rule.matches {
            let home = served(name, catalog).map(|target| target.pool.name.clone());
            let is_in_scope = rule.pool.is_none() || home.is_none() || rule.pool == home;
            if is_in_scope && !self.exact.contains_key(name) {
                self.exact.insert(name.clone(), matched(name.as_str()));
            }
        }
        if rule.matches.is_empty() {
            self.catch_all.push(matched(ANY_MODEL));
        }
        self.rules.push(rule);
    }
}
