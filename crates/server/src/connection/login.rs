//! Login of a client, and opening of its vhost.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use amqp::method::MethodId;
use broker::Lsn;
use broker::refusal::Refusal;
use session::{Credentials, Session};

use crate::auth::{LoginError, User};
use crate::connection::task::{Connection, End, sleep};
use crate::node::clients::Client;
use crate::requests::UserLimit;
use crate::snapshot::client::ClientDescription;
use crate::snapshot::condition::ConnectionRefusal;
use crate::snapshot::logins::Protocol;
use crate::sockets::counters::Socket;
use crate::sockets::slots::ConnectionSlots;
use crate::tls;
use crate::vhost::{OpenRefused, OpeningClient, VhostHandle};

/// The method `connection.open`, reported with the refusal of a vhost.
const OPEN: MethodId = MethodId { class_id: 10, method_id: 40 };

impl Connection {
    /// Checks a login and answers it. A refusal is answered after a delay.
    pub(super) async fn login(&mut self, mut credentials: Credentials) -> Result<(), End> {
        let mechanism = credentials.mechanism;
        if mechanism == session::ANONYMOUS {
            let configured = &self.node.sessions.anonymous_login;
            credentials.user = configured.user.clone().unwrap_or_default();
            credentials.password = configured.password.clone().into_bytes();
        }
        let user = credentials.user.clone();
        // Logins may wait long in the queue.
        let timeout = self.timeout();
        let accepted = match mechanism {
            session::EXTERNAL => self.accept_certificate(),
            _ => tokio::select! {
                accepted =
                    self.node.auth.login(Protocol::Amqp091, credentials, self.peer.ip()) => accepted,
                () = sleep(timeout) => return Err(End::TimedOut),
                _ = self.stopping.changed() => return Err(End::Stopped),
                () = self.admitted.evicted() => return Err(End::Evicted),
            },
        };
        self.node.auth.counts.count(Protocol::Amqp091, accepted.is_ok());
        match accepted {
            Ok(user) => {
                self.admitted.progressed();
                self.user = Some(user);
                self.send_own(Session::login_accepted);
            }
            Err(reason) => {
                tracing::warn!(peer = %self.peer, user, mechanism, %reason, "login refused");
                self.node.refusals.login(self.peer.ip(), &user, Instant::now());
                let penalty = self.node.auth.penalty(&user, self.peer.ip());
                tokio::select! {
                    () = tokio::time::sleep(penalty) => {}
                    _ = self.stopping.changed() => return Err(End::Stopped),
                    () = self.admitted.evicted() => return Err(End::Evicted),
                }
                let now = self.node.clock.time();
                self.send_own(|session, out| session.login_refused(now, out));
            }
        }
        Ok(())
    }

    /// A client with a verified certificate needs no password.
    fn accept_certificate(&self) -> Result<Arc<User>, LoginError> {
        let der = self.tls.as_ref().and_then(|tls| tls.certificate_der.as_deref());
        let name = der.and_then(|der| tls::user_name(der, self.node.sessions.certificate_login));
        let user = name.and_then(|name| self.node.auth.user(&name));
        let user = user.ok_or(LoginError::Credentials)?;
        if self.node.auth.is_loopback_only(&user.name)
            && !self.peer.ip().to_canonical().is_loopback()
        {
            return Err(LoginError::NotLoopback);
        }
        Ok(user)
    }

    /// Opens a vhost and answers, if necessary with a refusal.
    pub(super) fn open_vhost(&mut self, name: &str) {
        if let Err(refusal) = self.enter_vhost(name) {
            self.refuse_vhost(name, &refusal);
        }
    }

    /// Refuses to open a vhost.
    pub(super) fn refuse_vhost(&mut self, name: &str, refusal: &Refusal) {
        let reason = refusal.explanation.as_str();
        tracing::warn!(peer = %self.peer, vhost = name, reason, "vhost refused");
        let now = self.node.clock.time();
        self.send_own(|session, out| session.fail(now, refusal, OPEN, out));
    }

    /// Takes a slot on the node for a client that has connected to it.
    ///
    /// # Errors
    /// If no slot is free.
    pub(super) fn take_place(&mut self) -> Result<(), Refusal> {
        if self.place.is_some() || self.entry.is_some() {
            return Ok(());
        }
        let place = self.node.permits.connections.as_ref().map(ConnectionSlots::take).transpose();
        let full = |_: &Refusal| {
            self.node.refusals.connection(ConnectionRefusal::NodeLimit, "", Instant::now());
        };
        self.place = place.inspect_err(full)?;
        Ok(())
    }

    /// Opens a vhost. Checks in RabbitMQ's order: slot on the node, existence of the vhost, its limit, the
    /// user's limit, permissions.
    fn enter_vhost(&mut self, name: &str) -> Result<(), Refusal> {
        let login = self.user.as_ref().map(|user| user.name.clone()).unwrap_or_default();
        let refusals = Arc::clone(&self.node.refusals);
        let full = |reason, of: &str| refusals.connection(reason, of, Instant::now());
        let open_refused = |open_refused| match open_refused {
            OpenRefused::Deleted => Refusal::not_allowed(format!("vhost {name} not found")),
            OpenRefused::Full(max) => {
                full(ConnectionRefusal::VhostLimit, name);
                refused(name, &login, &format!(": connection limit ({max}) is reached"))
            }
            OpenRefused::NotLeading(problem) => problem.into(),
        };
        self.take_place()?;
        let handle =
            self.node.vhosts.get(name).ok_or_else(|| open_refused(OpenRefused::Deleted))?;
        handle.check_room().map_err(open_refused)?;
        // The current state of the user: tags, limits and permissions may have changed since the login.
        let user = self.node.auth.user(&login).ok_or_else(|| refused(name, &login, ""))?;
        let max = user.maximum(UserLimit::MaxConnections);
        let elsewhere = self.node.clients_elsewhere(&user);
        let slot = self.node.user_slots.take(&login, max, elsewhere).ok_or_else(|| {
            full(ConnectionRefusal::UserLimit, &login);
            let max = max.unwrap_or_default();
            Refusal::not_allowed(format!(
                "connection refused for user '{login}': user connection limit ({max}) is reached"
            ))
        })?;
        let access = user.access(name).ok_or_else(|| refused(name, &login, ""))?;
        let client = self.session.client();
        let cancel_notify = client.capabilities.consumer_cancel_notify;
        let connection_name = client.connection_name.clone().unwrap_or_default();
        let tls = self.tls.as_ref().map(|tls| tls.details.protocol);
        let now = self.node.clock.time();
        let description = Arc::new(self.description(name, &login));
        let socket = Socket {
            writer: Arc::clone(&self.socket_writer),
            read_counters: Arc::clone(&self.read_counters),
        };
        let welcome = || self.send_own(|session, out| session.vhost_opened(now, out));
        let opening = OpeningClient {
            description: Arc::clone(&description),
            socket: socket.clone(),
            access,
            cancel_notify,
        };
        let id = handle.open(opening, welcome).map_err(open_refused)?;
        let peer = self.peer;
        tracing::info!(%peer, user = login, vhost = name, connection_name, tls, "connected");
        self.slot = Some(slot);
        self.admission = None;
        let client = Arc::new(Client { description, handle: Arc::clone(&handle), id, socket });
        self.node.clients.add(&client);
        self.opened.send_replace(Some(client));
        self.node.recheck(&handle, id, &user);
        Ok(())
    }

    /// Description of the client for the management API.
    fn description(&self, vhost: &str, user: &str) -> ClientDescription {
        let ends = [self.peer, self.local];
        // An IPv6 socket that also accepts IPv4 maps the addresses of IPv4 clients.
        let [peer, local] = ends.map(|end| SocketAddr::new(end.ip().to_canonical(), end.port()));
        let client = self.session.client();
        ClientDescription {
            pid: self.node.clients.next_pid(),
            name: crate::snapshot::client::connection_name(peer, local),
            peer,
            local,
            entry_node: self.entry.clone(),
            user: user.to_owned(),
            mechanism: self.session.mechanism(),
            vhost: vhost.to_owned(),
            properties: client.properties.clone(),
            connection_name: client.connection_name.clone(),
            channel_max: self.session.channel_max(),
            frame_max: self.session.frame_max(),
            heartbeat_s: self.session.heartbeat_s(),
            tls: self.tls.as_ref().map(|tls| tls.details.clone()),
            connected_at_ms: self.node.clock.now().wall_ms(),
        }
    }

    /// Leaves the vhost. Returns it with the log position that covers everything the client did.
    pub(super) fn leave_vhost(&self) -> Option<(Arc<VhostHandle>, Lsn)> {
        let client = self.opened.send_replace(None)?;
        let lsn = client.handle.close(client.id);
        self.node.clients.remove(&client);
        Some((Arc::clone(&client.handle), lsn))
    }
}

/// Refusal of a vhost that a user may not open.
fn refused(vhost: &str, user: &str, why: &str) -> Refusal {
    Refusal::not_allowed(format!("access to vhost '{vhost}' refused for user '{user}'{why}"))
}
