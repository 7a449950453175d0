//! The series of the global tier; a gateway that has no part in it shows none.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use prometheus_client::encoding::DescriptorEncoder;

use super::fleet::{FleetMemberMetrics, FleetMetrics, MembershipMetrics};
use super::{Metrics, describe};
use crate::names;

#[derive(Debug, Default)]
pub(super) struct Clusters {
    fleet: OnceLock<Arc<FleetMetrics>>,
    members: Mutex<BTreeMap<Box<str>, Arc<FleetMemberMetrics>>>,
    membership: OnceLock<Arc<MembershipMetrics>>,
}

impl Metrics {
    /// A router's metrics, made on the first call.
    pub fn fleet(&self) -> Arc<FleetMetrics> {
        self.0.clusters.fleet.get_or_init(Arc::default).clone()
    }

    /// The metrics of a router's member, made on the first call.
    pub fn fleet_member(&self, member: &str) -> Arc<FleetMemberMetrics> {
        Arc::clone(self.0.clusters.members().entry(member.into()).or_default())
    }

    /// Takes the series of all members off the page that are not among these.
    pub fn keep_fleet_members(&self, members: &[&str]) {
        self.0.clusters.members().retain(|member, _| members.contains(&&**member));
    }

    /// The metrics of a gateway that reports to routers, made on the first call.
    pub fn membership(&self) -> Arc<MembershipMetrics> {
        self.0.clusters.membership.get_or_init(Arc::default).clone()
    }
}

impl Clusters {
    pub(super) fn is_router(&self) -> bool {
        self.fleet.get().is_some()
    }

    fn members(&self) -> MutexGuard<'_, BTreeMap<Box<str>, Arc<FleetMemberMetrics>>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if let Some(fleet) = self.fleet.get() {
            for metric in names::FLEET {
                let mut series = describe(encoder, metric)?;
                fleet.write(&mut series.of(&[]));
                series.finish()?;
            }
            let members = self.members();
            for metric in names::FLEET_MEMBER {
                let mut series = describe(encoder, metric)?;
                for (member, metrics) in members.iter() {
                    metrics.write(&mut series.of(&[("member", member)]));
                }
                series.finish()?;
            }
        }
        if let Some(membership) = self.membership.get() {
            for metric in names::MEMBERSHIP {
                let mut series = describe(encoder, metric)?;
                membership.write(&mut series.of(&[]));
                series.finish()?;
            }
        }
        Ok(())
    }
}
