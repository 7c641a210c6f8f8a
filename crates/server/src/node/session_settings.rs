//! Settings of sessions: limits, server properties and login mechanisms that are offered to clients.

use std::sync::Arc;

use amqp::table::Table;
use session::{ServerIdentity, SessionOptions};

use crate::config::{AnonymousLogin, CertificateLogin, Config};
use crate::node::identity::NodeIdentity;

/// Settings of all sessions.
#[derive(Debug)]
pub(crate) struct SessionSettings {
    options: Arc<SessionOptions>,
    /// Options for clients with a verified certificate: only they are offered a login by certificate.
    certified_options: Arc<SessionOptions>,
    pub(crate) certificate_login: CertificateLogin,
    pub(crate) anonymous_login: AnonymousLogin,
}

impl SessionSettings {
    pub(crate) fn new(config: &Config, identity: &NodeIdentity) -> Self {
        let mut options = config.session.clone();
        options.server_properties = server_properties(identity);
        options.mechanisms = config.mechanisms();
        let certified_options = options.clone();
        options.mechanisms.retain(|name| *name != session::EXTERNAL);
        Self {
            options: Arc::new(options),
            certified_options: Arc::new(certified_options),
            certificate_login: config.certificate_login,
            anonymous_login: config.anonymous_login.clone(),
        }
    }

    /// Options of a session with a client.
    pub(crate) fn options(&self, has_certificate: bool) -> &Arc<SessionOptions> {
        match has_certificate {
            true => &self.certified_options,
            false => &self.options,
        }
    }

    /// Names of all login mechanisms.
    pub(crate) fn mechanisms(&self) -> &[&'static str] {
        &self.certified_options.mechanisms
    }
}

/// Properties of the server in `connection.start`.
fn server_properties(identity: &NodeIdentity) -> Table {
    session::server_properties(ServerIdentity {
        product: &identity.product.product,
        version: &identity.product.version,
        leveret_version: env!("CARGO_PKG_VERSION"),
        cluster_name: &identity.default_cluster_name,
    })
}
