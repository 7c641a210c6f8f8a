//! Endpoints: every listener of the configuration, bound before the node starts and served afterwards.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn;
use axum::serve::ListenerExt;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::cluster::{LinkEvents, Purpose, RunningLinks};
use crate::config::Config;
use crate::connection::accept::accept_amqp;
use crate::http::path_prefix;
use crate::http::{self, HttpListener, HttpPeer};
use crate::limits::{HTTP_STOP_TIMEOUT, HTTP_THREADS, LINK_HANDSHAKE_TIMEOUT};
use crate::node::Node;
use crate::node::cluster::NodeForLinks;
use crate::peers::ServedPeers;
use crate::sockets::listener::Listener;
use crate::sockets::refusals::Refusals;
use crate::start::http_services::HttpServices;
use crate::start::start_error::StartError;
use crate::tls::Tls;

/// A listening socket, with its TLS if there is one.
#[derive(Debug)]
struct Endpoint {
    listener: Listener,
    tls: Option<Arc<Tls>>,
    /// RabbitMQ's name of the protocol.
    protocol: &'static str,
}

/// The listeners of all protocols.
#[derive(Debug)]
pub(crate) struct Endpoints {
    amqp: Vec<Endpoint>,
    http: Vec<Endpoint>,
    prometheus: Vec<Endpoint>,
    /// Listeners for links from other nodes.
    cluster: Vec<Endpoint>,
    path_prefix: Option<String>,
}

impl Endpoints {
    /// Binds all listeners and reads their certificates.
    ///
    /// # Errors
    /// If an address is in use or not local, or a certificate is unusable; the error names the address or the
    /// file.
    pub(crate) fn bind(config: &Config) -> Result<Self, StartError> {
        let timeout = Duration::from_millis(config.tls_handshake_timeout_ms);
        let mut amqp = Vec::new();
        for address in &config.amqp_listeners {
            amqp.push(plain("AMQP", "amqp", *address)?);
        }
        if !config.amqps_listeners.is_empty() {
            let tls = Arc::new(Tls::for_amqp(config.tls.clone(), timeout)?);
            for address in &config.amqps_listeners {
                let endpoint = plain("AMQPS", "amqp/ssl", *address)?;
                amqp.push(Endpoint { tls: Some(Arc::clone(&tls)), ..endpoint });
            }
        }
        let mut prometheus = Vec::new();
        if let Some(address) = config.prometheus.address() {
            prometheus.push(plain("Prometheus", "http/prometheus", address)?);
        }
        let mut cluster = Vec::new();
        let own_name = config.full_node_name();
        if config.cluster.is_on() {
            let tls = match config.cluster.has_tls() {
                true => {
                    Some(Arc::new(Tls::for_links(&config.cluster.tls, LINK_HANDSHAKE_TIMEOUT)?))
                }
                false => None,
            };
            for address in config.cluster.listen_on(&own_name) {
                let endpoint = plain("links", "clustering", address)?;
                cluster.push(Endpoint { tls: tls.clone(), ..endpoint });
            }
        }
        Ok(Self { amqp, prometheus, cluster, ..Self::bind_http(config)? })
    }

    /// Binds only the HTTP listeners.
    ///
    /// # Errors
    /// As [`Self::bind`].
    pub(crate) fn bind_http(config: &Config) -> Result<Self, StartError> {
        let mut http = Vec::new();
        if let Some(address) = config.http_listener() {
            http.push(plain("HTTP", "http", address)?);
        }
        if let Some(address) = config.https.address() {
            let timeout = Duration::from_millis(config.tls_handshake_timeout_ms);
            let tls = Tls::for_http(config.https_options(), timeout)?;
            let endpoint = plain("HTTPS", "https", address)?;
            http.push(Endpoint { tls: Some(Arc::new(tls)), ..endpoint });
        }
        let path_prefix = config.path_prefix.clone();
        let (amqp, prometheus, cluster) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { amqp, http, prometheus, cluster, path_prefix })
    }

    fn all(&self) -> impl Iterator<Item = &Endpoint> {
        self.amqp.iter().chain(&self.http).chain(&self.prometheus).chain(&self.cluster)
    }

    /// The listeners as shown in the management API.
    pub(crate) fn shown(&self) -> Vec<crate::snapshot::node::Listener> {
        let shown = self.all().filter_map(|endpoint| {
            let address = endpoint.listener.local_addr().ok()?;
            Some(crate::snapshot::node::Listener { protocol: endpoint.protocol, address })
        });
        shown.collect()
    }

    /// The listeners as text: `AMQP on 127.0.0.1:5672, HTTP on ...`.
    pub(crate) fn in_words(&self) -> String {
        let mut words: Vec<(&str, String)> = Vec::new();
        for Endpoint { listener, .. } in self.all() {
            let address = listener.local_addr().map(|a| a.to_string()).unwrap_or_default();
            match words.last_mut() {
                Some((what, addresses)) if *what == listener.what() => {
                    addresses.push_str(" and ");
                    addresses.push_str(&address);
                }
                _ => words.push((listener.what(), address)),
            }
        }
        let words = words.iter().map(|(what, addresses)| format!("{what} on {addresses}"));
        words.collect::<Vec<_>>().join(", ")
    }

    /// The TLS of the listeners, each once.
    pub(crate) fn certificates(&self) -> Vec<Arc<Tls>> {
        let mut all: Vec<Arc<Tls>> = self.all().filter_map(|one| one.tls.clone()).collect();
        all.dedup_by(|a, b| Arc::ptr_eq(a, b));
        all
    }

    /// Starts the links of a node with a cluster.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    pub(crate) fn start_links(
        &mut self,
        node: &Arc<Node>,
        events: Arc<dyn LinkEvents>,
    ) -> Result<Option<RunningLinks>, StartError> {
        let Some(links) = &node.cluster else { return Ok(None) };
        let endpoints = std::mem::take(&mut self.cluster);
        if let Some(tls) = endpoints.iter().find_map(|endpoint| endpoint.tls.clone()) {
            links.tls.set(tls).expect("links start once");
        }
        let listeners = endpoints.into_iter().map(|endpoint| endpoint.listener).collect();
        let local = Arc::new(NodeForLinks(Arc::downgrade(node)));
        let links = Arc::clone(links);
        let running = RunningLinks::start(links, listeners, events, local, &node.refusals)?;
        Ok(Some(running))
    }

    /// Accepts clients until the node stops. Each AMQP connection holds a clone of `alive` until it has
    /// ended.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    pub(crate) fn serve(
        mut self,
        node: &Arc<Node>,
        alive: &mpsc::Sender<()>,
        http: &HttpServices,
    ) -> Result<Servers, StartError> {
        let mut accepting = JoinSet::new();
        for Endpoint { listener, tls, .. } in self.amqp.drain(..) {
            accepting.spawn(accept_amqp(listener, tls, Arc::clone(node), alive.clone()));
        }
        let stopping = node.lifecycle.stopping.subscribe();
        let metrics = (http.metrics)(Arc::clone(node));
        let prometheus: Vec<Endpoint> = self.prometheus.drain(..).collect();
        let clients = (http.clients)(Arc::clone(node));
        let mut servers = self.serve_http(clients, &stopping, &node.refusals)?;
        if let Some(runtime) = &servers.runtime {
            node.threads.hold_watch.watch_over(runtime.handle().clone());
        }
        if let (Some(links), Some(runtime)) = (&node.cluster, &servers.runtime) {
            let router = (http.peers)(Arc::clone(node));
            let runtime = runtime.handle().clone();
            links.streams.serve(
                Purpose::Http,
                Arc::new(ServedPeers { router, runtime, links: Arc::clone(links) }),
            );
        }
        for endpoint in prometheus {
            servers.add(endpoint, metrics.clone(), stopping.clone(), Arc::clone(&node.refusals));
        }
        servers.accepting = accepting;
        Ok(servers)
    }

    /// Serves HTTP until `stopping` is true.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    pub(crate) fn serve_http(
        self,
        router: Router,
        stopping: &watch::Receiver<bool>,
        refusals: &Arc<Refusals>,
    ) -> Result<Servers, StartError> {
        let router = path_prefix::below(self.path_prefix, router);
        let mut servers = Servers::start().map_err(StartError::Http)?;
        for endpoint in self.http {
            servers.add(endpoint, router.clone(), stopping.clone(), Arc::clone(refusals));
        }
        Ok(servers)
    }
}

/// The tasks that accept AMQP clients, and running HTTP servers. The servers are on threads of their own: an
/// answer may take a processor for seconds, which must not delay publishers and consumers.
#[derive(Debug)]
pub(crate) struct Servers {
    /// One task for each AMQP listener.
    accepting: JoinSet<()>,
    servers: Vec<JoinHandle<io::Result<()>>>,
    /// Taken only on drop.
    runtime: Option<Runtime>,
}

impl Servers {
    fn start() -> io::Result<Self> {
        let mut threads = tokio::runtime::Builder::new_multi_thread();
        let runtime = threads.worker_threads(HTTP_THREADS).thread_name("http").enable_all();
        Ok(Self { accepting: JoinSet::new(), servers: Vec::new(), runtime: Some(runtime.build()?) })
    }

    fn add(
        &mut self,
        endpoint: Endpoint,
        router: Router,
        mut stopping: watch::Receiver<bool>,
        refusals: Arc<Refusals>,
    ) {
        let Some(runtime) = &self.runtime else { return };
        let listener = HttpListener::new(endpoint.listener, endpoint.tls, refusals);
        let router = router.layer(from_fn(http::follow));
        let router = router.into_make_service_with_connect_info::<HttpPeer>();
        // axum provides client addresses only for a tapped listener.
        let server = axum::serve(listener.tap_io(|_| {}), router)
            .with_graceful_shutdown(async move { drop(stopping.wait_for(|is| *is).await) });
        self.servers.push(runtime.spawn(server.into_future()));
    }

    /// Waits until the AMQP listeners of a stopping node are closed.
    pub(crate) async fn amqp_listeners_closed(&mut self) {
        while self.accepting.join_next().await.is_some() {}
    }

    /// Waits a moment for pending requests to be answered.
    pub(crate) async fn over(mut self) {
        let over = async {
            for server in std::mem::take(&mut self.servers) {
                drop(server.await);
            }
        };
        drop(tokio::time::timeout(HTTP_STOP_TIMEOUT, over).await);
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        // Does not block: the drop may run inside another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn plain(
    what: &'static str,
    protocol: &'static str,
    address: SocketAddr,
) -> Result<Endpoint, StartError> {
    Ok(Endpoint { listener: Listener::bind(what, address)?, tls: None, protocol })
}
