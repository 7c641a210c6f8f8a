//! Where clients connect: every listener of the configuration, bound before the node starts and served
//! from then on.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::serve::ListenerExt;
use tokio::sync::mpsc;

use crate::config::Config;
use crate::http::HttpListener;
use crate::listener::{Listener, accept_amqp};
use crate::node::{Node, StartError};
use crate::path_prefix;

/// The listeners.
#[derive(Debug)]
pub(crate) struct Endpoints {
    amqp: Vec<Listener>,
    http: Option<Listener>,
    prometheus: Option<Listener>,
    path_prefix: Option<String>,
}

impl Endpoints {
    /// Listens.
    ///
    /// # Errors
    /// When an address is taken or not ours; it names the address.
    pub(crate) fn bind(config: &Config) -> Result<Self, StartError> {
        let bind = |what, address: Option<SocketAddr>| {
            address.map(|address| Listener::bind(what, address)).transpose()
        };
        let amqp = config.amqp_listeners.iter().map(|address| Listener::bind("AMQP", *address));
        Ok(Self {
            amqp: amqp.collect::<Result<_, _>>()?,
            http: bind("HTTP", config.http_listener())?,
            prometheus: bind("Prometheus", config.prometheus.address())?,
            path_prefix: config.path_prefix.clone(),
        })
    }

    /// Each with the word that clients are told for it.
    fn all(&self) -> impl Iterator<Item = (&Listener, &'static str)> {
        let amqp = self.amqp.iter().map(|listener| (listener, "amqp"));
        let http = self.http.iter().map(|listener| (listener, "http"));
        let prometheus = self.prometheus.iter().map(|listener| (listener, "http/prometheus"));
        amqp.chain(http).chain(prometheus)
    }

    /// What the management API shows of them.
    pub(crate) fn shown(&self) -> Vec<management::Listener> {
        let shown = self.all().filter_map(|(listener, protocol)| {
            Some(management::Listener { protocol, address: listener.local_addr().ok()? })
        });
        shown.collect()
    }

    /// The same in words: `AMQP on 127.0.0.1:5672, HTTP on ...`.
    pub(crate) fn in_words(&self) -> String {
        let mut words: Vec<(&str, String)> = Vec::new();
        for (listener, _) in self.all() {
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

    /// Accepts clients from now on. Each of AMQP's holds a clone of `alive` for as long as it lasts.
    pub(crate) fn serve(self, node: &Arc<Node>, alive: &mpsc::Sender<()>) {
        for listener in self.amqp {
            tokio::spawn(accept_amqp(listener, Arc::clone(node), alive.clone()));
        }
        let as_seen_by_http: Arc<dyn management::Node> = Arc::clone(node) as _;
        let router = management::router(Arc::clone(&as_seen_by_http));
        let router = path_prefix::below(self.path_prefix, router);
        if let Some(listener) = self.http {
            serve_http(HttpListener::new(listener), router);
        }
        if let Some(listener) = self.prometheus {
            serve_http(HttpListener::new(listener), management::metrics_router(as_seen_by_http));
        }
    }
}

fn serve_http(listener: HttpListener, router: Router) {
    let router = router.into_make_service_with_connect_info::<SocketAddr>();
    // Of a listener that is tapped axum knows that its clients have addresses.
    tokio::spawn(axum::serve(listener.tap_io(|_| {}), router).into_future());
}
