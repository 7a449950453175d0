//! Which pods serve which pool: a state without I/O, fed with what the API server says.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use config::EndpointSpec;
use config::spec::LabelSelector;
use gateway::Found;
use types::PoolName;

use crate::pod::PodView;
use crate::selector;

/// Pods that one pool is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub pool: PoolName,
    pub selector: LabelSelector,
    /// Each port of each pod is an endpoint.
    pub ports: Vec<u16>,
}

/// All pods of the namespace, and what they make of each pool.
///
/// A change of one pod costs what its own pools cost, not what all do: pools are found by one of their
/// labels, and each list of endpoints is kept until one of its pods changes.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    pods: HashMap<Arc<str>, PodView>,
    targets: Vec<Chosen>,
    /// Targets by one label that their pods must have.
    by_label: HashMap<(String, String), Vec<usize>>,
    /// Targets that name no label.
    any_label: Vec<usize>,
}

/// How many pods a target has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// That match, whether or not they take requests.
    pub pods: usize,
    /// That take requests.
    pub endpoints: usize,
}

#[derive(Debug)]
struct Chosen {
    target: Target,
    /// Names of the pods that match, whether or not they take requests.
    pods: BTreeSet<Arc<str>>,
    found: Arc<[Found]>,
}

impl Fleet {
    /// Looks for these pools from now on. Whether that is news.
    pub(crate) fn set_targets(&mut self, targets: Vec<Target>) -> bool {
        if self.targets.iter().map(|chosen| &chosen.target).eq(&targets) {
            return false;
        }
        self.by_label.clear();
        self.any_label.clear();
        for (at, target) in targets.iter().enumerate() {
            match target.selector.match_labels.first_key_value() {
                Some((key, value)) => {
                    self.by_label.entry((key.clone(), value.clone())).or_default().push(at);
                }
                None => self.any_label.push(at),
            }
        }
        let chosen = |target| Chosen { target, pods: BTreeSet::new(), found: Arc::default() };
        self.targets = targets.into_iter().map(chosen).collect();
        let matching: Vec<_> =
            self.pods.values().map(|pod| (pod.name.clone(), self.targets_of(pod))).collect();
        for (name, targets) in matching {
            for at in targets {
                self.targets[at].pods.insert(name.clone());
            }
        }
        (0..self.targets.len()).for_each(|at| self.list_anew(at));
        true
    }

    /// Takes over all pods at once. Whether some pool changed.
    pub(crate) fn replace(&mut self, pods: impl IntoIterator<Item = PodView>) -> bool {
        let pods: HashMap<_, _> = pods.into_iter().map(|pod| (pod.name.clone(), pod)).collect();
        let gone: Vec<_> =
            self.pods.keys().filter(|name| !pods.contains_key(*name)).cloned().collect();
        let mut is_news = false;
        for name in gone {
            is_news |= self.remove(&name);
        }
        for pod in pods.into_values() {
            is_news |= self.apply(pod);
        }
        is_news
    }

    /// A pod is there, or changed. Whether some pool changed.
    pub(crate) fn apply(&mut self, pod: PodView) -> bool {
        let touched = self.put(pod);
        self.list_all_anew(touched)
    }

    /// A pod is gone. Whether some pool changed.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let touched = self.take(name);
        self.list_all_anew(touched)
    }

    /// As [`Self::apply`] and, for `None`, [`Self::remove`]: which targets have another pod now, or one that changed.
    pub(crate) fn change(&mut self, name: &str, pod: Option<PodView>) -> BTreeSet<usize> {
        let touched = match pod {
            Some(pod) => self.put(pod),
            None => self.take(name),
        };
        touched.iter().for_each(|at| self.list_anew(*at));
        touched
    }

    /// Those that are looked for.
    #[cfg(test)]
    pub(crate) fn targets(&self) -> Vec<Target> {
        self.targets.iter().map(|chosen| chosen.target.clone()).collect()
    }

    /// How the target at this place of the list stands.
    pub(crate) fn standing(&self, at: usize) -> Standing {
        let Some(Chosen { pods, found, .. }) = self.targets.get(at) else {
            return Standing::default();
        };
        Standing { pods: pods.len(), endpoints: found.len() }
    }

    /// Pods that are known, whether or not they belong to a target.
    pub(crate) fn pods(&self) -> usize {
        self.pods.len()
    }

    fn put(&mut self, pod: PodView) -> BTreeSet<usize> {
        let name = pod.name.clone();
        let before = self.pods.get(&name);
        if before == Some(&pod) {
            return BTreeSet::new();
        }
        let mut touched: BTreeSet<usize> =
            before.map(|pod| self.targets_of(pod)).into_iter().flatten().collect();
        for at in &touched {
            self.targets[*at].pods.remove(&name);
        }
        for at in self.targets_of(&pod) {
            self.targets[at].pods.insert(name.clone());
            touched.insert(at);
        }
        self.pods.insert(name, pod);
        touched
    }

    fn take(&mut self, name: &str) -> BTreeSet<usize> {
        let Some(pod) = self.pods.remove(name) else { return BTreeSet::new() };
        let touched: BTreeSet<usize> = self.targets_of(&pod).into_iter().collect();
        for at in &touched {
            self.targets[*at].pods.remove(name);
        }
        touched
    }

    /// The endpoints of each pool, in the order of their pods' names.
    pub(crate) fn found(&self) -> HashMap<PoolName, Arc<[Found]>> {
        let pair = |chosen: &Chosen| (chosen.target.pool.clone(), chosen.found.clone());
        self.targets.iter().map(pair).collect()
    }

    fn targets_of(&self, pod: &PodView) -> Vec<usize> {
        let by_label = pod.labels.iter().filter_map(|(key, value)| {
            // The key of a map of pairs can only be asked for as a pair.
            self.by_label.get(&(key.clone(), value.clone()))
        });
        by_label
            .flatten()
            .chain(&self.any_label)
            .copied()
            .filter(|at| selector::matches(&self.targets[*at].target.selector, &pod.labels))
            .collect()
    }

    fn list_all_anew(&mut self, touched: impl IntoIterator<Item = usize>) -> bool {
        touched.into_iter().fold(false, |is_news, at| {
            let before = self.targets[at].found.clone();
            self.list_anew(at);
            is_news | (before != self.targets[at].found)
        })
    }

    fn list_anew(&mut self, at: usize) {
        let Chosen { target, pods, .. } = &self.targets[at];
        let pods = pods.iter().filter_map(|name| self.pods.get(name));
        self.targets[at].found = pods.flat_map(|pod| endpoints(pod, &target.ports)).collect();
    }
}

/// The endpoints that a pod is now: one for each port, none while it takes no requests.
fn endpoints<'a>(pod: &'a PodView, ports: &'a [u16]) -> impl Iterator<Item = Found> + 'a {
    let ip = pod.takes_requests_at();
    let served = ports.iter().filter(move |port| pod.serves_on(**port));
    ip.into_iter().flat_map(move |ip| {
        served.clone().filter_map(move |port| {
            let endpoint = EndpointSpec { url: address(ip, *port)?, labels: pod.labels.clone() };
            Some(Found { endpoint, instance: pod.uid.clone() })
        })
    })
}

fn address(ip: IpAddr, port: u16) -> Option<types::EndpointAddress> {
    format!("http://{}", SocketAddr::new(ip, port)).parse().ok()
}
