//! Logins, which are those of AMQP.

use std::net::IpAddr;

use management::{Caller, Credentials, Delay, Login, LoginAttempts, LoginRefused, Protocol};

use crate::auth::LoginError;
use crate::node::Node;

impl management::Logins for Node {
    fn login(&self, credentials: Credentials, peer: IpAddr) -> Login<'_> {
        Box::pin(async move {
            let Credentials { user, password, is_token } = credentials;
            if is_token {
                let vhosts = management::Vhosts::vhost_names(self);
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
                Ok(user) => Ok(Caller {
                    name: user.name.clone(),
                    tags: user.tags.clone(),
                    vhosts: user.permissions.keys().cloned().collect(),
                    is_loopback_only: self.auth.is_loopback_only(&user.name),
                    is_local_administrator: false,
                }),
                Err(reason) => {
                    tracing::warn!(%peer, user, mechanism = "HTTP Basic", %reason, "login refused");
                    Err(match reason {
                        LoginError::Credentials => LoginRefused::Credentials,
                        LoginError::NotLoopback => LoginRefused::NotLoopback,
                        LoginError::Unavailable | LoginError::Busy => LoginRefused::Unavailable,
                    })
                }
            }
        })
    }

    fn hold_back(&self, user: String, peer: IpAddr) -> Delay<'_> {
        Box::pin(async move { tokio::time::sleep(self.auth.penalty(&user, peer)).await })
    }
}

impl management::LoginCounts for Node {
    fn login_attempts(&self) -> Vec<LoginAttempts> {
        self.auth.counts.attempts()
    }

    fn forget_login_attempts(&self) {
        self.auth.counts.forget();
    }
}
