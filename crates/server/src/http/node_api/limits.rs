//! Limits of users and vhosts.

use std::collections::BTreeMap;

use management::{Change, Unchanged, UserLimit, VhostLimit};

use super::change;
use crate::node::Node;

impl management::Limits for Node {
    fn set_user_limit(
        &self,
        user: &str,
        limit: UserLimit,
        to: Option<i64>,
    ) -> Change<'_, Result<(), Unchanged>> {
        let name = user.to_owned();
        change(move || {
            self.change_user(&name, |user| {
                set(&mut user.limits, limit, to);
                Ok(())
            })
        })
    }

    fn replace_vhost_limits(
        &self,
        vhost: &str,
        limits: BTreeMap<VhostLimit, i64>,
    ) -> Change<'_, Result<(), Unchanged>> {
        let name = vhost.to_owned();
        change(move || self.change_settings(&name, |settings| settings.limits = limits))
    }

    fn set_vhost_limit(
        &self,
        vhost: &str,
        limit: VhostLimit,
        to: Option<i64>,
    ) -> Change<'_, Result<(), Unchanged>> {
        let name = vhost.to_owned();
        change(move || self.change_settings(&name, |settings| set(&mut settings.limits, limit, to)))
    }
}

fn set<L: Ord>(limits: &mut BTreeMap<L, i64>, limit: L, to: Option<i64>) {
    match to {
        Some(max) => limits.insert(limit, max),
        None => limits.remove(&limit),
    };
}
