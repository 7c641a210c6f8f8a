//! Logins over HTTP, checked like those over AMQP.

use std::net::IpAddr;
use std::time::Instant;

use crate::auth::{LoginError, User};
use crate::node::Node;
use crate::requests::{Caller, Credentials, LoginRefused};
use crate::snapshot::logins::Protocol;

impl Node {
    /// A user who has logged in.
    pub(super) fn caller(&self, user: &User) -> Caller {
        Caller {
            name: user.name.clone(),
            tags: user.tags.clone(),
            vhosts: user.permissions.keys().cloned().collect(),
            is_loopback_only: self.auth.is_loopback_only(&user.name),
            is_local_administrator: false,
            only_vhosts: None,
        }
    }

    /// Checks a login from `peer`.
    pub async fn login(
        &self,
        credentials: Credentials,
        peer: IpAddr,
    ) -> Result<Caller, LoginRefused> {
        let Credentials { user, password, is_token } = credentials;
        if is_token {
            let vhosts = self.vhost_names();
            let login = self.ctl_token.login(&password, peer, vhosts);
            if login.is_err() {
                tracing::warn!(%peer, mechanism = "HTTP Bearer", "login refused");
            }
            return login;
        }
        let credentials =
            session::Credentials { user: user.clone(), password, mechanism: "HTTP Basic" };
        let accepted = self.auth.login(Protocol::Http, credentials, peer).await;
        self.auth.counts.count(Protocol::Http, accepted.is_ok());
        match accepted {
            Ok(user) => Ok(self.caller(&user)),
            Err(reason) => {
                tracing::warn!(%peer, user, mechanism = "HTTP Basic", %reason, "login refused");
                self.refusals.login(peer, &user, Instant::now());
                Err(match reason {
                    LoginError::Credentials => LoginRefused::Credentials,
                    LoginError::NotLoopback => LoginRefused::NotLoopback,
                    LoginError::Unavailable | LoginError::Busy => LoginRefused::Unavailable,
                })
            }
        }
    }

    /// Completes when the answer to a refused login of `user` from `peer` may be sent.
    pub async fn hold_back(&self, user: String, peer: IpAddr) {
        tokio::time::sleep(self.auth.penalty(&user, peer)).await;
    }
}
