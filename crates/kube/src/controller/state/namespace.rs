//! The pods of a namespace, and whose they are.

use std::collections::HashMap;
use std::sync::Arc;

use config::ApiGroup;
use k8s_openapi::api::core::v1::Pod;

use super::Due;
use crate::controller::key::Key;
use crate::controller::queue::Extent;
use crate::controller::rollout::{Trouble, gateway_pod};
use crate::fleet::{Fleet, Standing, Target};
use crate::pod::PodView;

#[derive(Debug, Default)]
pub(super) struct Namespace {
    fleet: Fleet,
    /// Whose the fleet's targets are, one after the other.
    owners: Vec<Key>,
    /// First target of each gateway, and how many it has.
    parts: HashMap<Key, (usize, usize)>,
    /// A gateway came, went or changed: the targets are those of before.
    pub is_stale: bool,
    /// Pods that gateways run in, by name: the gateway's name, and what is wrong.
    gateways: HashMap<Arc<str>, (String, Option<Trouble>)>,
    pods: usize,
}

impl Namespace {
    pub(super) fn pods(&self) -> usize {
        self.pods
    }

    /// A pod is there or changed; `None`: it is gone.
    pub(super) fn put_pod(
        &mut self,
        namespace: &Arc<str>,
        name: &Arc<str>,
        pod: Option<Pod>,
    ) -> Due {
        let mut due = Due::new();
        let own = pod.as_ref().and_then(gateway_pod);
        let before = match own.clone() {
            Some(own) => self.gateways.insert(name.clone(), own),
            None => self.gateways.remove(name),
        };
        if before != own {
            let names = before.into_iter().chain(own).map(|(gateway, _)| gateway);
            for gateway in names {
                for group in [ApiGroup::Wicketgate, ApiGroup::Aws] {
                    let namespace = namespace.clone();
                    let key = Key { group, namespace, name: gateway.as_str().into() };
                    due.push((key, Extent::Status));
                }
            }
        }
        let touched = self.fleet.change(name, pod.and_then(PodView::of));
        self.pods = self.fleet.pods();
        due.extend(
            touched
                .into_iter()
                .filter_map(|at| Some((self.owners.get(at)?.clone(), Extent::Status))),
        );
        due
    }

    /// Looks for the pods of these gateways from now on.
    pub(super) fn settle(&mut self, gateways: Vec<(Key, Vec<Target>)>) {
        self.owners.clear();
        self.parts.clear();
        let mut all = Vec::new();
        for (key, targets) in gateways {
            self.parts.insert(key.clone(), (all.len(), targets.len()));
            self.owners.extend(std::iter::repeat_n(key, targets.len()));
            all.extend(targets);
        }
        self.fleet.set_targets(all);
        self.is_stale = false;
    }

    /// How the pools of a gateway stand, in its document's order.
    pub(super) fn standings(&self, key: &Key) -> Vec<Standing> {
        let (first, count) = self.parts.get(key).copied().unwrap_or_default();
        (first..first + count).map(|at| self.fleet.standing(at)).collect()
    }

    /// What is wrong with one of a gateway's pods.
    pub(super) fn trouble(&self, gateway: &str) -> Option<&Trouble> {
        let own = self.gateways.values().filter(|(name, _)| name == gateway);
        own.filter_map(|(_, trouble)| trouble.as_ref()).min()
    }
}
