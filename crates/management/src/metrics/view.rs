//! Groups of families, written for each object or as sums.

use server::snapshot::queue::QueueView;
use server::snapshot::queue_fields::QueueGroup;
use server::snapshot::scrape::{
    ChannelScrape, ConnectionScrape, ExchangeScrape, Scrape, VhostScrape,
};

use crate::metrics::deaths::{self, DeathCounts};
use crate::metrics::family::{Detail, Family, Objects, write};
use crate::metrics::group::Group;
use crate::metrics::text::{Kind, Labels, Namespace, Text};
use crate::metrics::{clients, exchanges, node, queues, sums};

/// The numbers to write, with the labels of all objects formatted once.
#[derive(Debug)]
pub(super) struct MetricsView<'a> {
    scrape: &'a Scrape,
    namespace: Namespace,
    queues: ObjectSet<'a, QueueView>,
    channels: ObjectSet<'a, ChannelScrape>,
    /// Labels of channels in the families that also name the vhost.
    channels_in_vhosts: Labels,
    connections: ObjectSet<'a, ConnectionScrape>,
    exchanges: ObjectSet<'a, ExchangeScrape>,
}

/// The objects of one kind.
#[derive(Debug)]
enum ObjectSet<'a, T> {
    Sum(Box<T>),
    /// Each object with the name of its vhost.
    Each(Vec<(&'a str, &'a T)>, Labels),
}

impl<'a, T> ObjectSet<'a, T> {
    fn objects(&self) -> Objects<'_, T> {
        match self {
            Self::Sum(sum) => Objects::Sum(sum),
            Self::Each(each, labels) => Objects::Each(each, labels),
        }
    }

    /// All objects that `list` finds in the vhosts and `select` selects.
    fn each(
        vhosts: &'a [VhostScrape],
        list: impl Fn(&'a VhostScrape) -> &'a [T],
        select: impl Fn(&T) -> bool,
        label: impl Fn(&mut Labels, &str, &T),
    ) -> Self {
        let (mut each, mut labels) = (Vec::new(), Labels::default());
        for vhost in vhosts {
            for object in list(vhost).iter().filter(|object| select(object)) {
                label(&mut labels, &vhost.name, object);
                each.push((&*vhost.name, object));
            }
        }
        Self::Each(each, labels)
    }
}

/// Selects every object.
fn all<T>(_: &T) -> bool {
    true
}

impl<'a> MetricsView<'a> {
    /// Sums over all objects.
    pub(super) fn totals(scrape: &'a Scrape) -> Self {
        let vhosts = &scrape.vhosts;
        Self {
            scrape,
            namespace: Namespace::Plain,
            queues: ObjectSet::Sum(Box::new(sums::queues(vhosts))),
            channels: ObjectSet::Sum(Box::new(sums::channels(vhosts))),
            channels_in_vhosts: Labels::default(),
            connections: ObjectSet::Sum(Box::new(sums::connections(vhosts))),
            exchanges: ObjectSet::Sum(Box::new(sums::exchanges(vhosts))),
        }
    }

    /// Every object; of the queues, the ones that `select` selects.
    pub(super) fn each(
        scrape: &'a Scrape,
        namespace: Namespace,
        select: impl Fn(&QueueView) -> bool,
    ) -> Self {
        let vhosts = &scrape.vhosts;
        let queues = ObjectSet::each(
            vhosts,
            |v| &v.queues,
            select,
            |labels, vhost, queue| {
                labels.push(&[("vhost", vhost), ("queue", &queue.name)]);
            },
        );
        let channels = ObjectSet::each(
            vhosts,
            |v| &v.channels,
            all,
            |labels, _, channel| {
                labels.push(&[("channel", &channel.pid)]);
            },
        );
        let mut channels_in_vhosts = Labels::default();
        if let ObjectSet::Each(channels, _) = &channels {
            for (vhost, channel) in channels {
                channels_in_vhosts.push(&[("channel", &channel.pid), ("vhost", vhost)]);
            }
        }
        // RabbitMQ's label of connections is `channel`, too.
        let connections = ObjectSet::each(
            vhosts,
            |v| &v.connections,
            all,
            |labels, _, connection| {
                labels.push(&[("channel", &connection.pid)]);
            },
        );
        let exchanges = ObjectSet::each(
            vhosts,
            |v| &v.exchanges,
            all,
            |labels, vhost, exchange| {
                labels.push(&[("vhost", vhost), ("exchange", &exchange.name)]);
            },
        );
        Self { scrape, namespace, queues, channels, channels_in_vhosts, connections, exchanges }
    }

    /// Writes the families of a group.
    pub(super) fn write(&self, text: &mut Text, group: Group) {
        let Self { scrape, namespace, .. } = *self;
        match group {
            Group::ConnectionChurn => node::write(text, namespace, &node::CHURN, scrape),
            Group::NodeCoarse => node::write(text, namespace, &node::COARSE, scrape),
            Group::Node => node::write(text, namespace, &node::METRICS, scrape),
            Group::NodePersister => node::files(text, namespace, scrape),
            Group::AuthAttempts => node::logins(text, namespace, scrape),
            Group::QueueCoarse => self.queues(text, QueueGroup::Coarse),
            Group::QueueConsumerCount => self.queues(text, QueueGroup::ConsumerCount),
            Group::Queue => {
                self.queues(text, QueueGroup::ConsumerCount);
                self.queues(text, QueueGroup::Queue);
            }
            Group::QueueDelivery => self.queues(text, QueueGroup::Delivery),
            Group::QueuePublished => self.published(text),
            Group::QueueTime => self.queues(text, QueueGroup::Time),
            Group::QueueDeath => {
                self.deaths(text);
                deaths::given_reasons(text, namespace, &scrape.vhosts);
            }
            Group::ExpiryLateness => deaths::lateness(text, namespace, &scrape.vhosts),
            Group::Channel => write(text, namespace, &clients::CHANNEL, &self.channels.objects()),
            Group::ChannelExchange => self.channels(text, &clients::PUBLISHES),
            Group::ChannelQueue => self.channels(text, &clients::DELIVERIES),
            Group::ConnectionCoarse => self.connections(text, &clients::TRAFFIC),
            Group::Connection => self.connections(text, &clients::CONNECTION),
            Group::Exchange => {
                let objects = self.exchanges.objects();
                write(text, namespace, &exchanges::METRICS, &objects);
                self.confirmed(text);
            }
            Group::QueueExchange => {
                write(text, namespace, &exchanges::ROUTED, &self.exchanges.objects());
            }
            Group::VhostStatus => self.vhost_status(text),
            Group::ExchangeNames => self.named_exchanges(text, &exchanges::NAMES),
            Group::ExchangeBindings => self.named_exchanges(text, &exchanges::BINDINGS),
        }
    }

    /// Writes the type of each queue.
    pub(super) fn queue_info(&self, text: &mut Text) {
        let ObjectSet::Each(queues, _) = &self.queues else { return };
        let help = "1 for every queue, with its type";
        let mut samples = text.family(self.namespace, "queue_info", Kind::Gauge, help);
        let mut labels = Labels::default();
        for (vhost, queue) in queues {
            labels.push(&[
                ("vhost", vhost),
                ("queue", &queue.name),
                ("queue_type", queue.kind.module()),
                ("membership", "leader"),
            ]);
        }
        labels.iter().for_each(|labels| samples.put(labels, 1));
    }

    fn queues(&self, text: &mut Text, group: QueueGroup) {
        queues::write(text, self.namespace, group, &self.queues.objects());
    }

    /// RabbitMQ names these labels differently than elsewhere.
    fn published(&self, text: &mut Text) {
        let mut labels = Labels::default();
        let objects = match &self.queues {
            ObjectSet::Sum(sum) => Objects::Sum(&**sum),
            ObjectSet::Each(queues, _) => {
                for (vhost, queue) in queues {
                    labels.push(&[("queue_vhost", vhost), ("queue", &queue.name)]);
                }
                Objects::Each(queues, &labels)
            }
        };
        queues::write(text, self.namespace, QueueGroup::Published, &objects);
    }

    /// Sums are by vhost here.
    fn deaths(&self, text: &mut Text) {
        match &self.queues {
            ObjectSet::Sum(_) => {
                let mut labels = Labels::default();
                let vhosts = &self.scrape.vhosts;
                vhosts.iter().for_each(|vhost| labels.push(&[("vhost", &vhost.name)]));
                let counts: Vec<DeathCounts> = vhosts.iter().map(DeathCounts::from).collect();
                deaths::write(text, self.namespace, &counts, &labels, Detail::Totals);
            }
            ObjectSet::Each(queues, labels) => {
                let counts: Vec<DeathCounts> =
                    queues.iter().map(|(_, queue)| DeathCounts::from(*queue)).collect();
                deaths::write(text, self.namespace, &counts, labels, Detail::PerObject);
            }
        }
    }

    fn channels(&self, text: &mut Text, families: &[Family<ChannelScrape>]) {
        let objects = match &self.channels {
            ObjectSet::Sum(sum) => Objects::Sum(&**sum),
            ObjectSet::Each(channels, _) => Objects::Each(channels, &self.channels_in_vhosts),
        };
        write(text, self.namespace, families, &objects);
    }

    fn connections(&self, text: &mut Text, families: &[Family<ConnectionScrape>]) {
        write(text, self.namespace, families, &self.connections.objects());
    }

    /// Publisher confirms, which are counted by vhost, not by exchange.
    fn confirmed(&self, text: &mut Text) {
        let help = "Publishes confirmed, by vhost";
        let name = "exchange_messages_confirmed_total";
        let mut samples = text.family(self.namespace, name, Kind::Counter, help);
        let vhosts = self.scrape.vhosts.iter();
        if let ObjectSet::Sum(_) = self.exchanges {
            samples.put("", vhosts.map(|vhost| vhost.counters.confirmed).sum::<u64>());
            return;
        }
        let mut labels = Labels::default();
        vhosts.clone().for_each(|vhost| labels.push(&[("vhost", &vhost.name)]));
        for (vhost, labels) in vhosts.zip(labels.iter()) {
            samples.put(labels, vhost.counters.confirmed);
        }
    }

    fn vhost_status(&self, text: &mut Text) {
        let help = "1 for every vhost, all of which run";
        let mut samples = text.family(Namespace::Cluster, "vhost_status", Kind::Gauge, help);
        let mut labels = Labels::default();
        self.scrape.vhosts.iter().for_each(|vhost| labels.push(&[("vhost", &vhost.name)]));
        labels.iter().for_each(|labels| samples.put(labels, 1));
    }

    /// Writes families of the named exchanges, with their types as labels.
    fn named_exchanges(&self, text: &mut Text, families: &[Family<ExchangeScrape>]) {
        let ObjectSet::Each(exchanges, _) = &self.exchanges else { return };
        let mut labels = Labels::default();
        let named = exchanges.iter().filter(|(_, exchange)| !exchange.name.is_empty());
        let named: Vec<(&str, &ExchangeScrape)> = named.copied().collect();
        for (vhost, exchange) in &named {
            let kind = exchange.kind.as_str();
            labels.push(&[("vhost", vhost), ("exchange", &exchange.name), ("type", kind)]);
        }
        write(text, Namespace::Cluster, families, &Objects::Each(&named, &labels));
    }
}
