//! What metrics are made of.

use std::sync::Arc;

use management::{ConnectionScrape, Made, Scrape, Scraping, Status as _, VhostScrape};

use crate::connection::clients::Client;
use crate::limits::SAMPLED_PER_LOCK;
use crate::node::Node;
use crate::vhost::VhostHandle;

impl management::Metrics for Node {
    fn scrape(&self, wants: &dyn Fn(&str) -> bool) -> Scrape {
        let node = self.snapshot();
        let clients = self.clients.all();
        let mut handles = self.vhosts.all();
        handles.retain(|handle| wants(handle.name()));
        Scrape {
            started_s: (self.clock.now().wall_ms.saturating_sub(node.uptime_ms)) / 1000,
            process: self.process(),
            logins: self.auth.counts.attempts(),
            vhosts: handles.iter().map(|handle| scrape_vhost(handle, &clients)).collect(),
            node,
        }
    }

    fn aside(&self, make: Box<dyn FnOnce() -> String + Send>) -> Made<'_> {
        Box::pin(async move {
            // The semaphore is never closed.
            let _turn = self.metrics_permits.acquire().await.ok();
            match tokio::task::spawn_blocking(make).await {
                Ok(text) => text,
                Err(error) => {
                    tracing::error!(%error, "metrics cannot be made");
                    String::new()
                }
            }
        })
    }
}

/// Copies a vhost, a slice of its queues at a time, so that its clients never wait for all of them.
fn scrape_vhost(handle: &Arc<VhostHandle>, clients: &[Arc<Client>]) -> VhostScrape {
    let traffic = handle.traffic();
    let queues = handle.read(|v, _| Scraping::queues(v));
    let mut scraping = Scraping::default();
    for slice in queues.chunks(SAMPLED_PER_LOCK) {
        handle.write(|v, now| scraping.slice(v, now, slice));
    }
    let here = clients.iter().filter(|client| Arc::ptr_eq(&client.handle, handle));
    handle.read(|v, client_of| {
        // One that has gone since is not shown.
        let connections = here.filter_map(|client| {
            let channels = v.connection(client.id)?.open_channels().count();
            let traffic = client.socket.traffic();
            Some(ConnectionScrape::new(&client.description, traffic, channels))
        });
        scraping.end(v, client_of, (connections.collect(), traffic))
    })
}
