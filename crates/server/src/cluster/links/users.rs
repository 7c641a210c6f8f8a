//! Counts of the clients of each user, which nodes tell each other for the limits of users.

use std::sync::Arc;

use tokio::time::sleep;

use super::registry::{Links, stopped};
use crate::auth::user_slots::ClientCounts;
use crate::cluster::frames::control::Control;
use crate::cluster::peer::OpenLink;
use crate::limits::USERS_TOLD_INTERVAL;

impl Links {
    /// The clients that a user has at other nodes, as far as they have told.
    pub(crate) fn clients_elsewhere(&self, user: &str) -> ClientCounts {
        let peers = self.peers();
        let counts = peers.iter().filter_map(|peer| peer.state.lock().users.get(user).copied());
        counts.fold(ClientCounts::default(), ClientCounts::add)
    }

    /// Tells the counts of this node on a new link.
    pub(super) fn tell_users_on(&self, link: &OpenLink) {
        let Some(local) = self.local.get() else { return };
        let _in_order = self.users.told.lock();
        link.tell(&Control::Users(local.users()));
    }

    fn tell_users(&self) {
        let Some(local) = self.local.get() else { return };
        let mut told = self.users.told.lock();
        let users = local.users();
        if users != *told {
            told.clone_from(&users);
            let users = Control::Users(users);
            self.peers().iter().for_each(|peer| peer.tell(&users));
        }
    }
}

/// Tells all peers the counts of this node when they change, but not more often than at an interval.
pub(super) async fn tell_users(links: Arc<Links>) {
    let mut stopping = links.stopping.subscribe();
    loop {
        tokio::select! {
            () = links.users.due.notified() => {}
            () = stopped(&mut stopping) => return,
        }
        links.tell_users();
        sleep(USERS_TOLD_INTERVAL).await;
    }
}
