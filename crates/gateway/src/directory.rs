//! Who is there: from the document, and from what endpoints say they serve.
//!
//! The directory is the one writer of the [`Catalog`]. It keeps what must survive a reload: each
//! endpoint's live state, its slot, and the pace of each pool.

mod found;
mod names;
mod picker;
mod plan;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use config::{EngineType, Spec};
use engines::models::ServedModel;
use sched::{EjectionConfig, EndpointState, Profile, RetryConfig};
use telemetry::{Metrics, PoolMetrics};
use types::{Endpoint, EndpointAddress, EndpointId, PoolName, Slot};

use crate::admission::Admission;
use crate::catalog::Catalog;
use crate::member::{Member, PoolMember};
use crate::pool::{Pace, Pool, Secret};
use crate::rewrite::Rollouts;
use crate::shadow::Shadow;

pub use found::Found;
use found::FoundEndpoints;
use plan::{Plan, endpoints_of, planned_by_discovery, planned_by_schedulers};

/// Which rule chooses endpoints, where it is not the document's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// What each pool's part of the document says.
    #[default]
    Document,
    /// The field's 2/2/3 on what the engines said last.
    Reference,
    RoundRobin,
    LeastRequest,
}

/// The memory behind the catalog.
#[derive(Debug)]
pub(crate) struct Directory {
    members: HashMap<EndpointAddress, Arc<Member>>,
    served: HashMap<EndpointAddress, Vec<ServedModel>>,
    paces: HashMap<PoolName, Arc<Pace>>,
    admissions: HashMap<PoolName, Arc<Admission>>,
    pools: HashMap<PoolName, Vec<String>>,
    found: FoundEndpoints,
    free_slots: Vec<Slot>,
    next_slot: u16,
    next_id: u32,
    policy: Policy,
    rollouts: Rollouts,
}

/// A new catalog and what changed with it.
#[derive(Default)]
pub(crate) struct Rebuilt {
    pub(crate) catalog: Catalog,
    /// Slots that were given back: whoever remembers something by slot must forget it.
    pub(crate) freed: Vec<Slot>,
    /// Queues in which nothing waits any more from now on.
    pub(crate) dismissed: Vec<Arc<Admission>>,
    /// Things that a person should look at.
    pub(crate) warnings: Vec<String>,
}

impl Directory {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            members: HashMap::new(),
            served: HashMap::new(),
            paces: HashMap::new(),
            admissions: HashMap::new(),
            pools: HashMap::new(),
            found: FoundEndpoints::default(),
            free_slots: Vec::new(),
            next_slot: 0,
            next_id: 0,
            policy,
            rollouts: Rollouts::default(),
        }
    }

    /// Everybody who is to be watched.
    pub(crate) fn members(&self) -> Vec<Arc<Member>> {
        let mut members: Vec<_> = self.members.values().cloned().collect();
        members.sort_by_key(|member| member.endpoint.id);
        members
    }

    /// Endpoints that are known.
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// Notes what an endpoint serves. Whether that is news.
    pub(crate) fn note_served(
        &mut self,
        address: &EndpointAddress,
        models: Vec<ServedModel>,
    ) -> bool {
        if !self.members.contains_key(address) || self.served.get(address) == Some(&models) {
            return false;
        }
        self.served.insert(address.clone(), models);
        true
    }

    /// Notes which endpoints were found, in place of those found before. Whether that is news.
    pub(crate) fn note_found(&mut self, found: HashMap<PoolName, Arc<[Found]>>) -> bool {
        self.found.replace(found)
    }

    /// Works out the catalog anew.
    ///
    /// * `authorization`: what the endpoints of a scheduler ask for, by where its key stands.
    pub(crate) fn rebuild(
        &mut self,
        spec: &Spec,
        metrics: &Metrics,
        authorization: Authorization<'_>,
    ) -> Rebuilt {
        let mut rebuilt = Rebuilt { catalog: Catalog::default(), ..Rebuilt::default() };
        rebuilt.freed = self.admit_and_dismiss(spec, authorization, &mut rebuilt.warnings);

        let mut plans = planned_by_schedulers(spec, &self.found, &self.served, authorization);
        for found in planned_by_discovery(spec, &self.served) {
            // A discovered endpoint joins the scheduler whose model it serves.
            match plans.iter_mut().find(|plan| plan.model == found.model) {
                Some(plan) => {
                    plan.addresses.extend(found.addresses);
                    plan.addresses.sort();
                    plan.addresses.dedup();
                }
                None => plans.push(found),
            }
        }
        let pools: Vec<(Plan, Arc<Pool>)> = plans
            .into_iter()
            .map(|plan| {
                let pool = self.pool(&plan, spec, metrics);
                (plan, pool)
            })
            .collect();

        let catch_all =
            (!spec.bbr.enabled).then(|| pools.first().map(|(_, pool)| pool.clone())).flatten();
        let mut catalog = Catalog::new(catch_all);
        for (plan, pool) in &pools {
            self.claim_names(
                plan,
                pool,
                spec.routes.is_some(),
                &mut catalog,
                &mut rebuilt.warnings,
            );
        }
        catalog.set_pools(pools.into_iter().map(|(_, pool)| pool).collect());
        rebuilt.dismissed = self.dismiss_queues(&catalog);
        self.rollouts.build(spec, &mut catalog, metrics, &mut rebuilt.warnings);
        self.forget_series(&catalog, metrics);
        rebuilt.catalog = catalog;
        rebuilt
    }

    pub(crate) fn admissions(&self) -> Vec<Arc<Admission>> {
        self.admissions.values().cloned().collect()
    }

    /// The queue of a pool, where requests queue at all.
    fn admission(
        &mut self,
        pool: &PoolName,
        spec: &Spec,
        metrics: &Arc<PoolMetrics>,
    ) -> Option<Arc<Admission>> {
        let settings = spec.flow_control.as_ref()?;
        let queue = self.admissions.entry(pool.clone()).or_insert_with(|| {
            Arc::new(Admission::new(pool.clone(), settings.clone(), metrics.clone()))
        });
        queue.apply(settings);
        Some(queue.clone())
    }

    /// Forgets the queues of pools that are gone or have none any more.
    fn dismiss_queues(&mut self, catalog: &Catalog) -> Vec<Arc<Admission>> {
        let kept: HashSet<&PoolName> = catalog
            .pools
            .iter()
            .filter(|pool| pool.admission.is_some())
            .map(|pool| &pool.name)
            .collect();
        let (kept, dismissed): (HashMap<_, _>, HashMap<_, _>) =
            self.admissions.drain().partition(|(name, _)| kept.contains(name));
        self.admissions = kept;
        dismissed.into_values().collect()
    }

    /// Makes members of new endpoints, and lets go of those that no longer stand in the document.
    fn admit_and_dismiss(
        &mut self,
        spec: &Spec,
        authorization: Authorization<'_>,
        warnings: &mut Vec<String>,
    ) -> Vec<Slot> {
        let ejection = ejection_config(spec);
        let replaced: HashSet<EndpointAddress> = self.found.replaced().into_iter().collect();
        let wanted: HashSet<&EndpointAddress> = spec
            .schedulers
            .iter()
            .flat_map(|scheduler| endpoints_of(scheduler, &self.found))
            .chain(&spec.discover)
            .map(|endpoint| &endpoint.url)
            .collect();
        let mut freed = Vec::new();
        self.members.retain(|address, member| {
            let stays = wanted.contains(address) && !replaced.contains(address);
            if !stays {
                self.served.remove(address);
                freed.push(member.endpoint.slot);
            }
            stays
        });
        self.free_slots.extend(&freed);
        // Put aside rather than copied: where pods are thousands, each change of one comes by here.
        let found = std::mem::take(&mut self.found);
        for scheduler in &spec.schedulers {
            let key = authorization(scheduler.endpoint_api_key.as_ref());
            for endpoint in endpoints_of(scheduler, &found) {
                self.admit(
                    endpoint,
                    &scheduler.metrics_path,
                    scheduler.engine_type,
                    key.clone(),
                    ejection,
                    warnings,
                );
            }
        }
        self.found = found;
        for endpoint in &spec.discover {
            self.admit(endpoint, METRICS_PATH, EngineType::Auto, None, ejection, warnings);
        }
        freed
    }

    fn admit(
        &mut self,
        spec: &config::EndpointSpec,
        metrics_path: &str,
        engine: EngineType,
        authorization: Option<Secret>,
        ejection: EjectionConfig,
        warnings: &mut Vec<String>,
    ) {
        let engine = engine.kind();
        if let Some(known) = self.members.get(&spec.url)
            && known.metrics_path == metrics_path
            && known.engine == engine
            && known.authorization == authorization
            && known.endpoint.labels == spec.labels
        {
            return;
        }
        let reused = self
            .members
            .get(&spec.url)
            .map(|known| (known.endpoint.slot, known.endpoint.id, known.state.clone()));
        let (slot, id, state) = match reused {
            Some(known) => known,
            None => {
                let Some(slot) = self.take_slot() else {
                    warnings.push(format!(
                        "endpoint {} is left out: more than 65,535 endpoints",
                        spec.url
                    ));
                    return;
                };
                let id = EndpointId(self.next_id);
                self.next_id += 1;
                (slot, id, Arc::new(EndpointState::with_ejection(id, slot, ejection)))
            }
        };
        let endpoint =
            Endpoint { id, slot, address: spec.url.clone(), labels: spec.labels.clone() };
        let mut member = Member::new(endpoint, state, metrics_path.to_owned(), engine);
        member.authorization = authorization;
        self.members.insert(spec.url.clone(), Arc::new(member));
    }

    fn take_slot(&mut self) -> Option<Slot> {
        self.free_slots.pop().or_else(|| {
            let slot = Slot(self.next_slot);
            self.next_slot = self.next_slot.checked_add(1)?;
            Some(slot)
        })
    }

    fn pool(&mut self, plan: &Plan, spec: &Spec, metrics: &Metrics) -> Arc<Pool> {
        let mut members: Vec<PoolMember> = plan
            .addresses
            .iter()
            .filter_map(|address| self.members.get(address))
            .map(|member| PoolMember {
                gauges: metrics.endpoint(&plan.name, &member.authority),
                member: member.clone(),
            })
            .collect();
        members.sort_by_key(|member| member.member.endpoint.id);
        let mut profile = match self.policy {
            Policy::RoundRobin => Profile::round_robin(),
            Policy::LeastRequest => Profile::least_request(),
            Policy::Reference => Profile::from_weights(&sched::Weights::REFERENCE),
            Policy::Document => match &plan.picker {
                Some(config) => picker::profile(config, &members),
                None => Profile::from_weights(&sched_weights(plan.policy, &plan.weights)),
            },
        };
        let shadow = plan.shadow.map(|shadow| {
            let mut profile = Profile::from_weights(&sched_weights(shadow.policy, &shadow.weights))
                .with_ejected_max(spec.ejection.share.get());
            profile.saturation = Some(plan.settings.saturation);
            Shadow { profile, share: shadow.share.get() }
        });
        profile = profile.with_ejected_max(spec.ejection.share.get());
        if let Some(limits) = &mut profile.saturation {
            *limits = plan.settings.saturation;
        }
        let retry = RetryConfig {
            share: spec.retry.budget_ratio.get(),
            floor_per_second: spec.retry.budget_floor_per_second as f32,
        };
        let pace = match self.paces.get(&plan.name) {
            Some(pace) if pace.retry == retry => pace.clone(),
            _ => Arc::new(Pace::new(retry)),
        };
        self.paces.insert(plan.name.clone(), pace.clone());
        let metrics = metrics.pool(&plan.name);
        let admission = self.admission(&plan.name, spec, &metrics);
        Arc::new(Pool {
            name: plan.name.clone(),
            model: plan.model.clone(),
            members,
            settings: plan.settings.clone(),
            metrics,
            admission,
            scores_prefix: scores_prefix(&profile)
                || shadow.as_ref().is_some_and(|shadow| scores_prefix(&shadow.profile)),
            shadow,
            profile: Arc::new(profile),
            pace,
        })
    }

    /// Removes the metric series of pools and endpoints that are gone.
    fn forget_series(&mut self, catalog: &Catalog, metrics: &Metrics) {
        let now: HashMap<PoolName, Vec<String>> = catalog
            .pools
            .iter()
            .map(|pool| {
                let labels =
                    pool.members.iter().map(|member| member.member.authority.clone()).collect();
                (pool.name.clone(), labels)
            })
            .collect();
        for (pool, labels) in &self.pools {
            match now.get(pool) {
                None => metrics.forget_pool(pool),
                Some(kept) => {
                    for gone in labels.iter().filter(|label| !kept.contains(label)) {
                        metrics.forget_endpoint(pool, gone);
                    }
                }
            }
        }
        self.paces.retain(|name, _| now.contains_key(name));
        self.pools = now;
    }
}

/// Where an endpoint's metrics are unless the document says otherwise.
const METRICS_PATH: &str = "/metrics";

fn ejection_config(spec: &Spec) -> EjectionConfig {
    EjectionConfig {
        failures: spec.ejection.failures.get(),
        failure_step: spec.ejection.base,
        failure_max: spec.ejection.max,
        ..EjectionConfig::default()
    }
}

/// Whether a scorer or a filter asks who holds the prompt.
fn scores_prefix(profile: &Profile) -> bool {
    let asks = |name: &str| {
        matches!(
            name,
            "prefix"
                | "prefix-length"
                | "prefix-affinity"
                | "no-hit-lru"
                | "token-load"
                | "expected-time"
        )
    };
    profile.scorers.iter().any(|weighted| asks(weighted.scorer.name()))
        || profile.filters.iter().any(|filter| asks(filter.name()))
}

/// Finds what endpoints ask for by where the document says that it stands.
pub(crate) type Authorization<'a> = &'a dyn Fn(Option<&config::SecretSource>) -> Option<Secret>;

fn sched_weights(policy: config::Policy, weights: &config::Weights) -> sched::Weights {
    sched::Weights {
        queue: weights.queue as f32,
        kv_cache: weights.kv_cache as f32,
        prefix: weights.prefix as f32,
        running_requests: weights.running_requests as f32,
        lora_affinity: weights.lora_affinity as f32,
        no_hit_lru: weights.lru as f32,
        expected_time: weights.predicted_latency as f32,
        session_affinity: 0.0,
        signals: match policy {
            config::Policy::Wicketgate => sched::Signals::Accounted,
            config::Policy::Reference => sched::Signals::Scraped,
        },
    }
}
