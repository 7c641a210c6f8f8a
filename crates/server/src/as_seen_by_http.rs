//! The node as HTTP sees it: what is the case is copied under the vhosts' locks, and logins are those of
//! AMQP.

use std::net::IpAddr;
use std::sync::Arc;

use broker::{Policy, PolicyKind};
use management::{
    BindingDetails, BindingsOf, Caller, Change, ConsumerDetails, Credentials, ExchangeDetails,
    Login, LoginRefused, NodeSnapshot, ProcessSnapshot, QueueDetails, VhostSnapshot, VhostTotals,
};
use rustix::process::{Resource, getrlimit};

use crate::alarms::{self, Alarm};
use crate::auth::LoginError;
use crate::node::Node;

impl management::Node for Node {
    fn snapshot(&self) -> NodeSnapshot {
        let alarm = *self.alarm.borrow();
        NodeSnapshot {
            name: self.name.clone(),
            version: env!("CARGO_PKG_VERSION"),
            cluster_name: self.cluster_name.clone(),
            durability: self.durability.as_str(),
            listeners: self.listeners.clone(),
            uptime_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            resident_bytes: alarms::resident_bytes(),
            memory_watermark_bytes: self.memory_watermark_bytes,
            memory_alarm: alarm.is_some_and(Alarm::is_of_memory),
            disk_free_bytes: alarms::free_bytes(&self.data_dir),
            disk_free_limit_bytes: self.disk_free_limit_bytes,
            disk_alarm: alarm.is_some_and(Alarm::is_of_disk),
        }
    }

    fn process(&self) -> ProcessSnapshot {
        let open = std::fs::read_dir("/proc/self/fd");
        ProcessSnapshot {
            id: std::process::id(),
            // One of them is the directory that is read here.
            fd_used: open.ok().map(|open| (open.count() as u64).saturating_sub(1)),
            fd_total: getrlimit(Resource::Nofile).current,
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            data_dir: self.data_dir.display().to_string(),
        }
    }

    fn vhosts(&self) -> Vec<VhostSnapshot> {
        self.vhosts.all().iter().map(|cell| cell.with(|v, _| VhostSnapshot::of(v))).collect()
    }

    fn vhost_names(&self) -> Vec<String> {
        self.vhosts.ids().into_iter().map(|(name, _)| name).collect()
    }

    fn vhost_totals(&self, name: &str, user: Option<&str>) -> Option<VhostTotals> {
        Some(self.vhosts.get(name)?.with(|v, _| VhostTotals::of(v, user)))
    }

    fn policies(&self, vhost: &str, kind: PolicyKind) -> Option<Vec<Arc<Policy>>> {
        let cell = self.vhosts.get(vhost)?;
        Some(cell.with(|v, _| v.policies().iter(kind).cloned().collect()))
    }

    fn set_policy(
        &self,
        vhost: &str,
        kind: PolicyKind,
        policy: Policy,
    ) -> Change<'_, Option<bool>> {
        let cell = self.vhosts.get(vhost);
        Box::pin(async move {
            let cell = cell?;
            let (is_new, lsn) = cell.with(|v, now| {
                let is_new = v.policies().get(kind, &policy.name).is_none();
                v.set_policy(now, kind, policy);
                (is_new, v.last_lsn())
            });
            cell.durable_at(lsn).await;
            Some(is_new)
        })
    }

    fn clear_policy(&self, vhost: &str, kind: PolicyKind, name: &str) -> Change<'_, bool> {
        let (cell, name) = (self.vhosts.get(vhost), name.to_owned());
        Box::pin(async move {
            let Some(cell) = cell else { return false };
            let (existed, lsn) =
                cell.with(|v, now| (v.clear_policy(now, kind, &name), v.last_lsn()));
            cell.durable_at(lsn).await;
            existed
        })
    }

    fn queues(&self, vhost: &str) -> Option<Vec<QueueDetails>> {
        Some(self.vhosts.get(vhost)?.with(|v, _| QueueDetails::all(v)))
    }

    fn queue(&self, vhost: &str, name: &str) -> Option<(QueueDetails, Vec<ConsumerDetails>)> {
        self.vhosts.get(vhost)?.with(|v, _| QueueDetails::one(v, name))
    }

    fn exchanges(&self, vhost: &str) -> Option<Vec<ExchangeDetails>> {
        Some(self.vhosts.get(vhost)?.with(|v, _| ExchangeDetails::all(v)))
    }

    fn exchange(&self, vhost: &str, name: &str) -> Option<ExchangeDetails> {
        self.vhosts.get(vhost)?.with(|v, _| ExchangeDetails::one(v, name))
    }

    fn bindings(&self, vhost: &str, which: BindingsOf<'_>) -> Option<Vec<BindingDetails>> {
        self.vhosts.get(vhost)?.with(|v, _| BindingDetails::of(v, which))
    }

    fn login(&self, credentials: Credentials, peer: IpAddr) -> Login<'_> {
        Box::pin(async move {
            let Credentials { user, password } = credentials;
            let credentials =
                session::Credentials { user: user.clone(), password, mechanism: "HTTP Basic" };
            match self.auth.login(credentials, peer).await {
                Ok(user) => Ok(Caller {
                    name: user.name.clone(),
                    tags: user.tags.clone(),
                    vhosts: user.permissions.keys().cloned().collect(),
                    is_loopback_only: self.auth.is_loopback_only(&user.name),
                }),
                Err(reason) => {
                    tracing::warn!(%peer, user, mechanism = "HTTP Basic", %reason, "login refused");
                    Err(match reason {
                        LoginError::Credentials => LoginRefused::Credentials,
                        LoginError::NotLoopback => LoginRefused::NotLoopback,
                        LoginError::Unavailable => LoginRefused::Unavailable,
                    })
                }
            }
        })
    }
}
