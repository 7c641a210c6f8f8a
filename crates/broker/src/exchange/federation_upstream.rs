//! `x-federation-upstream` exchanges: to every binding, except what the cluster behind them has had already.
//!
//! The federation link of another cluster, a RabbitMQ, declares such an exchange here, binds it to the exchange that it
//! follows, and consumes from a queue behind it. Each link that a message passes adds itself to the header
//! `x-received-from`; a message that has passed too many, or the cluster behind this exchange, goes no further.

use amqp::table::{ArrayRef, TableRef, Value};

use super::binding::{Binding, Destination};
use super::fanout::Fanout;
use crate::refusal::Refusal;

/// The argument with the number of links that a message may pass.
pub(crate) const MAX_HOPS: &str = "x-max-hops";
/// The header with the links that a message has passed, as tables.
const RECEIVED_FROM: &str = "x-received-from";

/// The destinations, and the cluster behind them.
#[derive(Debug)]
pub(super) struct FederationUpstream {
    destinations: Fanout,
    max_hops: i64,
    downstream: Option<Downstream>,
}

/// The cluster and vhost whose link declared the exchange.
#[derive(Debug)]
struct Downstream {
    cluster_name: Box<[u8]>,
    vhost: Box<[u8]>,
}

impl FederationUpstream {
    /// Creates an exchange without bindings.
    ///
    /// # Errors
    /// 406 if `x-max-hops` is missing or no integer.
    pub(super) fn new(arguments: TableRef<'_>) -> Result<Self, Refusal> {
        let max_hops = match arguments.get(MAX_HOPS) {
            None => Err(format!("Argument {MAX_HOPS} missing")),
            Some(value) => value
                .as_integer()
                .ok_or_else(|| format!("Argument {MAX_HOPS} must be of type long")),
        };
        let text = |name| arguments.get(name)?.as_long_str().map(Box::from);
        let cluster_name = text("x-downstream-name");
        let vhost = text("x-downstream-vhost");
        Ok(Self {
            destinations: Fanout::default(),
            max_hops: max_hops.map_err(Refusal::precondition_failed)?,
            downstream: cluster_name
                .zip(vhost)
                .map(|(cluster_name, vhost)| Downstream { cluster_name, vhost }),
        })
    }

    pub(super) fn bind(&mut self, binding: &Binding) {
        self.destinations.bind(binding);
    }

    pub(super) fn unbind(&mut self, binding: &Binding) {
        self.destinations.unbind(binding);
    }

    pub(super) fn route(&self, headers: TableRef<'_>, found: &mut dyn FnMut(Destination)) {
        let goes_on = match headers.get(RECEIVED_FROM) {
            Some(Value::Array(links)) => self.forwards(links),
            _ => true,
        };
        if goes_on {
            self.destinations.route(found);
        }
    }

    /// True if a message that has passed these links goes on.
    fn forwards(&self, links: ArrayRef<'_>) -> bool {
        let hops = i64::try_from(links.iter().count()).unwrap_or(i64::MAX);
        hops < self.max_hops && !links.iter().any(|link| self.is_of_downstream(&link))
    }

    fn is_of_downstream(&self, link: &Value<'_>) -> bool {
        let (Value::Table(link), Some(downstream)) = (link, &self.downstream) else {
            return false;
        };
        let is = |key, text: &[u8]| link.get(key).and_then(|v| v.as_long_str()) == Some(text);
        is("cluster-name", &downstream.cluster_name) && is("vhost", &downstream.vhost)
    }
}

#[cfg(test)]
mod tests {
    use amqp::table::{Table, TableBuilder};

    use super::*;

    fn exchange(max_hops: Value<'_>) -> Result<FederationUpstream, Refusal> {
        let mut arguments = TableBuilder::new();
        arguments.insert(MAX_HOPS, max_hops);
        arguments.insert("x-downstream-name", Value::LongStr(b"here"));
        arguments.insert("x-downstream-vhost", Value::LongStr(b"/"));
        FederationUpstream::new(arguments.as_ref())
    }

    /// The headers of a message that has passed a link of each of these clusters and vhosts.
    fn passed(links: &[(&str, &str)]) -> Table {
        let mut headers = TableBuilder::new();
        headers.array(RECEIVED_FROM, |array| {
            for (cluster_name, vhost) in links {
                array.table(|link| {
                    link.insert("cluster-name", Value::LongStr(cluster_name.as_bytes()));
                    link.insert("vhost", Value::LongStr(vhost.as_bytes()));
                });
            }
        });
        headers.finish()
    }

    fn forwards(exchange: &FederationUpstream, headers: &Table) -> bool {
        match headers.get(RECEIVED_FROM) {
            Some(Value::Array(links)) => exchange.forwards(links),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn messages_go_on_for_so_many_links() {
        let two = exchange(Value::I64(2)).unwrap();
        assert!(forwards(&two, &passed(&[])));
        assert!(forwards(&two, &passed(&[("a", "/")])));
        assert!(!forwards(&two, &passed(&[("a", "/"), ("b", "/")])));
        assert!(!forwards(&exchange(Value::I64(0)).unwrap(), &passed(&[])));
        assert!(!forwards(&exchange(Value::I64(-1)).unwrap(), &passed(&[])));
    }

    #[test]
    fn messages_do_not_go_back_to_the_vhost_they_came_from() {
        let many = exchange(Value::I64(9)).unwrap();
        assert!(!forwards(&many, &passed(&[("a", "/"), ("here", "/")])));
        assert!(forwards(&many, &passed(&[("here", "other")])));
        let mut odd = TableBuilder::new();
        odd.array(RECEIVED_FROM, |array| {
            array.push(Value::LongStr(b"here"));
            array.table(|link| {
                link.insert("cluster-name", Value::LongStr(b"here"));
            });
        });
        assert!(forwards(&many, &odd.finish()));
    }

    #[test]
    fn exchanges_without_a_downstream_count_links_only() {
        let mut arguments = TableBuilder::new();
        arguments.insert(MAX_HOPS, Value::I64(2));
        let exchange = FederationUpstream::new(arguments.as_ref()).unwrap();
        assert!(forwards(&exchange, &passed(&[("here", "/")])));
    }

    #[test]
    fn exchanges_need_their_number_of_links() {
        assert!(FederationUpstream::new(TableRef::EMPTY).is_err());
        assert!(exchange(Value::LongStr(b"1")).is_err());
    }
}
